"""Copies of data directories."""

from __future__ import annotations

import os
import pwd
import shutil
import stat
import subprocess

import pytest

from pgtrial.model.errors import ArmError
from pgtrial.servers.run_directory import copy_cluster, copy_directory
from tests.conftest import require, require_root

pytestmark = [pytest.mark.server, pytest.mark.machine]


@pytest.fixture
def place(fresh_state):
    """Returns a directory that the servers' account can reach, as those of a lab."""
    return fresh_state


@pytest.fixture(params=[copy_directory, copy_cluster])
def copy(request):
    """Returns the function that copies, for any directory or for that of a cluster."""
    return request.param


def _tree(root, account):
    """Makes a directory tree that belongs to this account, or to the account that runs the tests if it is None."""
    (root / "base" / "1").mkdir(parents=True)
    (root / "base" / "1" / "empty").write_bytes(b"")
    (root / "base" / "1" / "large").write_bytes(os.urandom(3 * 1024 * 1024 + 17))
    (root / "base" / "an odd name; $(x)").mkdir()
    (root / "secret").write_text("x")
    (root / "secret").chmod(0o600)
    (root / "pg_wal").symlink_to("base")
    root.chmod(0o700)
    for path in (root, *root.rglob("*")) if account is not None else ():
        entry = pwd.getpwnam(account)
        os.chown(path, entry.pw_uid, entry.pw_gid, follow_symlinks=False)
    return root


def _contents(root):
    return {
        str(path.relative_to(root)): (os.readlink(path) if path.is_symlink() else path.is_file() and path.read_bytes())
        for path in root.rglob("*")
    }


def _modes(root):
    return {str(path.relative_to(root)): stat.S_IMODE(path.lstat().st_mode) for path in (root, *root.rglob("*"))}


def test_a_copy_has_the_bytes_modes_and_links_of_its_source(workspace, place, copy):
    source = _tree(place / "a", workspace.account)
    copy(workspace, source, place / "b")
    assert _contents(place / "b") == _contents(source)
    assert _modes(place / "b") == _modes(source)


def test_a_copy_is_independent_of_its_source(workspace, place, copy):
    source = _tree(place / "a", workspace.account)
    before = _contents(source)
    copy(workspace, source, place / "b")
    with (place / "b" / "base" / "1" / "large").open("r+b") as file:
        file.write(b"changed")
    assert _contents(source) == before


def test_a_copy_belongs_to_the_servers_account(workspace, place, copy):
    require_root()
    source = _tree(place / "a", workspace.account)
    copy(workspace, source, place / "b")
    copied = place / "b"
    assert {path.lstat().st_uid for path in (copied, *copied.rglob("*"))} == {source.stat().st_uid}


def test_a_full_disk_is_told_in_one_sentence_and_nothing_stays(workspace, place, copy):
    require_root()
    small = place / "small"
    small.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", small], capture_output=True, check=False)
    require(mounted.returncode == 0, "the right to mount")
    try:
        with pytest.raises(ArmError, match=r"the disk is full.*MB free; free some space") as error:
            copy(workspace, _tree(place / "a", workspace.account), small / "b")
        assert "\n" not in str(error.value)
        assert list(small.iterdir()) == []
    finally:
        # whoever looks at what is mounted keeps it busy for a moment
        subprocess.run(["umount", "--lazy", small], check=True)


@pytest.fixture
def xfs(place):
    """Yields an empty xfs of 512 MB."""
    require_root()
    require(shutil.which("mkfs.xfs"), "xfs")
    image, mounted = place / "image", place / "xfs"
    mounted.mkdir()
    with image.open("wb") as file:
        file.truncate(512 << 20)
    subprocess.run(["mkfs.xfs", "-q", image], check=True)
    subprocess.run(["mount", "-o", "loop", image, mounted], check=True)
    yield mounted
    # whoever looks at what is mounted keeps it busy for a moment
    subprocess.run(["umount", "--lazy", mounted], check=True)


def test_where_files_can_share_blocks_a_copy_takes_next_to_no_room(workspace, xfs):
    source = workspace.private_directory(xfs / "a")
    (source / "large").write_bytes(os.urandom(128 << 20))
    workspace.machine.tool(["sync"])
    before = workspace.machine.free_bytes(xfs)
    copy_directory(workspace, source, xfs / "b")
    workspace.machine.tool(["sync"])
    assert before - workspace.machine.free_bytes(xfs) < 13 << 20
    assert (xfs / "b" / "large").read_bytes() == (source / "large").read_bytes()


def test_a_source_that_is_not_there_is_told(workspace, place, copy):
    with pytest.raises(ArmError, match="No such file or directory"):
        copy(workspace, place / "absent", place / "b")
    assert not (place / "b").exists()
