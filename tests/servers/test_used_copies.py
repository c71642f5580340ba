"""Copies of templates that trials use one after the other: each begins as the template is."""

from __future__ import annotations

import os
import pwd
import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pgtrial.model.errors import ArmError
from pgtrial.servers.used_copies import copy_for_trial
from tests.servers.test_copy import _contents, _modes

pytestmark = [pytest.mark.server, pytest.mark.machine]

_LARGE = 1024 * 1024
_PATHS = (
    "base/1/112",
    "base/1/113",
    "base/1/large",
    "base/5/16399",
    "base/5/-n odd\nname; $(x)",
    "global/pg_control",
    "PG_VERSION",
)


@pytest.fixture
def template(workspace, fresh_state):
    """Returns a directory like that of a cluster, which belongs to the servers' account."""
    root = fresh_state / "template"
    for path in _PATHS:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(os.urandom(_LARGE + 3 if path.endswith("large") else 8192))
        (root / path).chmod(0o600)
    (root / "base" / "pgsql_tmp").mkdir()
    (root / "pg_link").symlink_to("base")
    root.chmod(0o700)
    _give_away(root, workspace.account)
    return root


def _give_away(root: Path, account: str | None) -> None:
    """Gives all files to the account; those that it has stay as they are, since the kernel notes each change."""
    if account is None:
        return
    owner = pwd.getpwnam(account)
    for path in (root, *root.rglob("*")):
        if path.lstat().st_uid != owner.pw_uid:
            os.chown(path, owner.pw_uid, owner.pw_gid, follow_symlinks=False)


def _trial(workspace, template, change=lambda data: None) -> Path:
    """Runs what a trial does to its copy, which has to begin as the template is."""
    with copy_for_trial(workspace, template, "s1") as data:
        assert _contents(data) == _contents(template)
        assert _modes(data) == _modes(template)
        change(data)
        _give_away(data, workspace.account)
    return data


def _inodes(data: Path) -> dict[str, int]:
    return {path: (data / path).lstat().st_ino for path in _PATHS}


def test_the_next_trial_keeps_small_files_that_nothing_changed_and_copies_all_others(workspace, template):
    first: dict[str, int] = {}

    def change(data):
        first.update(_inodes(data))
        with (data / "base/5/16399").open("r+b") as file:
            file.write(b"x")

    _trial(workspace, template, change)
    # files that take the place of removed ones could get their inodes
    for number in range(4):
        (workspace.root / f"taken {number}").write_bytes(b"x")
    with copy_for_trial(workspace, template, "s1") as data:
        second = _inodes(data)
    kept = {path for path in _PATHS if first[path] == second[path]}
    assert {"base/1/112", "base/1/113", "global/pg_control", "PG_VERSION"} <= kept
    assert not {"base/1/large", "base/5/16399"} & kept


def test_a_used_copy_takes_the_space_of_its_small_files_alone(workspace, template):
    data = _trial(workspace, template)
    assert not (data / "base/1/large").exists()
    assert (data / "base/1/112").exists()


def test_a_write_that_leaves_size_and_time_as_they_were_is_seen(workspace, template):
    def change(data):
        path = data / "base/1/112"
        before = path.stat()
        path.write_bytes(b"y" * before.st_size)
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))

    _trial(workspace, template, change)
    _trial(workspace, template)


def _makes_a_link_of_a_file(data):
    (data / "base/5/16399").unlink()
    (data / "base/5/16399").symlink_to("/etc/passwd")


def _leads_elsewhere(data):
    (data / "pg_link").unlink()
    (data / "pg_link").symlink_to("/etc")


def _makes_a_directory_of_a_link(data):
    (data / "pg_link").unlink()
    (data / "pg_link").mkdir()
    (data / "pg_link" / "x").write_text("x")


def _makes_many_files(data):
    for number in range(600):
        (data / "base/5" / f"{'n' * 200}{number}").write_text("x")


@pytest.mark.parametrize(
    "change",
    [
        _makes_a_link_of_a_file,
        _leads_elsewhere,
        _makes_a_directory_of_a_link,
        _makes_many_files,
        lambda data: shutil.rmtree(data / "base/5"),
        lambda data: (data / "base/5/16399").rename(data / "base/5/16400"),
        lambda data: (data / "PG_VERSION").unlink(),
        lambda data: (data / "base/7/deep").mkdir(parents=True),
        lambda data: os.mkfifo(data / "fifo"),
        lambda data: (data / os.fsdecode(b"no \xff text")).write_text("x"),
    ],
)
def test_whatever_a_trial_does_to_its_copy_the_next_begins_as_the_template_is(workspace, template, change):
    _trial(workspace, template, change)
    _trial(workspace, template)


_CHANGES = st.lists(
    st.tuples(st.sampled_from(["write", "append", "truncate", "remove", "touch", "add"]), st.sampled_from(_PATHS)),
    max_size=6,
)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(_CHANGES)
def test_after_any_changes_the_next_trial_begins_as_the_template_is(workspace, template, changes):
    def change(data):
        for kind, name in changes:
            path = data / name
            match kind:
                case "write":
                    path.write_bytes(os.urandom(8192))
                case "append":
                    with path.open("ab") as file:
                        file.write(b"x")
                case "truncate" if path.exists():
                    os.truncate(path, 10)
                case "remove":
                    path.unlink(missing_ok=True)
                case "touch":
                    path.touch()
                case "add":
                    path.with_name(f"{path.name}.new").write_bytes(b"x")

    _trial(workspace, template, change)


def test_a_copy_whose_trial_ended_with_an_error_goes(workspace, template):
    with pytest.raises(RuntimeError), copy_for_trial(workspace, template, "s1") as data:
        raise RuntimeError
    assert not data.exists()


def test_a_template_that_is_made_anew_gets_copies_of_its_own(workspace, template):
    _trial(workspace, template)
    template.rename(template.with_name("former"))
    shutil.copytree(template.with_name("former"), template, symlinks=True)
    (template / "PG_VERSION").write_bytes(b"19\n")
    _give_away(template, workspace.account)
    _trial(workspace, template)


def test_copies_that_are_used_at_the_same_time_are_two(workspace, template):
    _trial(workspace, template)
    with (
        copy_for_trial(workspace, template, "s1") as one,
        copy_for_trial(workspace, template, "s1") as other,
    ):
        assert one != other
        assert _contents(one) == _contents(other)


def test_a_rehearsal_makes_the_copies_that_trials_at_the_same_time_will_use(workspace, template):
    rehearsed = set()
    for _ in range(3):
        with copy_for_trial(workspace, template, "check", copies=2) as data:
            rehearsed.add(data)
    assert len(rehearsed) == 2
    with (
        copy_for_trial(workspace, template, "s1") as one,
        copy_for_trial(workspace, template, "s1") as other,
    ):
        assert {one, other} == rehearsed


def test_a_used_copy_that_cannot_be_completed_is_told_and_goes(workspace, template):
    data = _trial(workspace, template)
    (template / "base/1/large").unlink()
    with pytest.raises(ArmError, match="cannot copy"), copy_for_trial(workspace, template, "s1"):
        pass
    assert not data.exists()
