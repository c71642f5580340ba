"""Tests of the function that finds the accounts that could replace a file."""

from __future__ import annotations

import os
import pwd
import shutil

import pytest

from pgtrial.files.trust import (
    ExchangeableError,
    check_exchangeable,
    refusal_to_run_command,
    weakness_of,
    without_weak_folders,
)
from tests.conftest import public_directory, require_root

pytestmark = pytest.mark.machine


@pytest.fixture
def root(monkeypatch):
    """Yields a directory in /tmp that belongs to root. The sticky bit of /tmp keeps other accounts from
    replacing it.
    """
    require_root()
    monkeypatch.delenv("SUDO_UID", raising=False)
    path = public_directory()
    yield path
    shutil.rmtree(path)


def given_to_nobody(path):
    account = pwd.getpwnam("nobody")
    os.chown(path, account.pw_uid, account.pw_gid, follow_symlinks=False)
    return path


def test_what_root_alone_can_write_is_used(root):
    (root / "a").mkdir()
    assert weakness_of(root / "a" / "not" / "there" / "yet") is None


@pytest.mark.parametrize("depth", [0, 1, 2])
def test_a_directory_of_another_account_anywhere_on_the_way_is_found(root, depth):
    way = [root / "a", root / "a" / "b", root / "a" / "b" / "c"]
    way[-1].mkdir(parents=True)
    given_to_nobody(way[depth])
    found = weakness_of(way[-1] / "file")
    assert str(found) == f"{way[depth]} belongs to the account nobody"
    assert found.cure == "run pgtrial as nobody"


def test_whoever_could_exchange_a_link_on_the_way_is_found(root):
    """The path itself and its end are root's; the link in the middle of a chain of links is not."""
    home = given_to_nobody_in(root)
    (root / "end").mkdir()
    (home / "link").symlink_to(root / "end")
    (root / "first").symlink_to(home / "link")
    assert weakness_of(root / "first" / "file").path == home
    in_tmp = root.with_name(f"{root.name}-link")
    in_tmp.symlink_to(root / "end")
    given_to_nobody(in_tmp)
    try:
        assert weakness_of(in_tmp / "file").path == in_tmp
    finally:
        in_tmp.unlink()


def given_to_nobody_in(root):
    (root / "home").mkdir()
    return given_to_nobody(root / "home")


def test_a_directory_that_others_may_write_is_found_unless_each_exchanges_only_its_own(root):
    folder = root / "shared"
    folder.mkdir()
    folder.chmod(0o777)
    assert str(weakness_of(folder / "file")) == f"{folder} can be written by other accounts"
    folder.chmod(0o1777)
    assert weakness_of(folder / "file") is None
    (folder / "file").touch()
    given_to_nobody(folder / "file")
    assert weakness_of(folder / "file").path == folder / "file"


def test_links_that_lead_to_each_other_end(root):
    (root / "a").symlink_to(root / "b")
    (root / "b").symlink_to(root / "a")
    with pytest.raises(OSError, match="symbolic links"):
        weakness_of(root / "a")


def test_the_account_that_has_called_sudo_is_trusted(root, monkeypatch):
    home = given_to_nobody_in(root)
    with pytest.raises(ExchangeableError):
        check_exchangeable(home / "file")
    monkeypatch.setenv("SUDO_UID", str(pwd.getpwnam("nobody").pw_uid))
    check_exchangeable(home / "file")


@pytest.mark.parametrize("word", ["{}/script", "--file={}/script", "sh {}/script; true"])
def test_a_file_that_a_word_of_a_command_names_is_found(root, word):
    home = given_to_nobody_in(root)
    (home / "script").touch()
    assert "belongs to the account nobody" in refusal_to_run_command(["sh", word.format(home)], root, None)
    assert refusal_to_run_command(["sh", "-c", "true"], root, None) is None


def test_folders_of_others_go_out_of_path_and_tmpdir(root, monkeypatch):
    home = given_to_nobody_in(root)
    monkeypatch.setenv("PATH", f"{home}:{root}:/usr/bin")
    monkeypatch.setenv("TMPDIR", str(home))
    said = without_weak_folders()
    assert [sentence.partition(":")[0] for sentence in said] == ["PATH", "TMPDIR"]
    assert os.environ["PATH"] == f"{root}:/usr/bin"
    assert "TMPDIR" not in os.environ
