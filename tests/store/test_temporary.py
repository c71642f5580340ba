"""Temporary folders and files: they end with their context; those of killed processes are found and removed."""

from __future__ import annotations

import os
import pwd
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from pgtrial.cli import main
from pgtrial.files.writing import new_beside
from pgtrial.model.errors import StoreError
from pgtrial.servers.leftovers import leftovers
from pgtrial.servers.workspace import Workspace
from pgtrial.store.temporary import remove_abandoned, temporary_folder
from tests.conftest import require_root

_HOLDER = """
import sys
from pgtrial.store.temporary import temporary_folder
with temporary_folder() as folder:
    (folder / "log").write_text("a value of a user")
    print(folder, flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def state(fresh_state, monkeypatch):
    """Gives the test a state directory of its own, since a process of another test may be killed at the same time."""
    monkeypatch.setenv("PGTRIAL_STATE", str(fresh_state))
    return fresh_state


@contextmanager
def held_by_another():
    """Yields the temporary folder of another process, which is killed at the end of the context."""
    with subprocess.Popen(
        [sys.executable, "-c", _HOLDER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            yield Path(process.stdout.readline().strip())
        finally:
            process.kill()


@pytest.fixture
def left():
    """Returns the folder of a killed process, as `pgtrial cleanup` names it."""
    with held_by_another() as folder:
        assert (folder / "log").exists()
    assert (folder / "log").exists()
    return folder.parent


def cleaned(capsys, *options):
    with pytest.raises(SystemExit) as ended:
        main(["cleanup", *options])
    assert not ended.value.code
    return capsys.readouterr().out


def test_a_folder_is_private_and_ends_with_its_context(state):
    with temporary_folder() as folder:
        assert folder.is_relative_to(state)
        assert folder.parent.stat().st_mode & 0o077 == 0
    assert [path.name for path in state.rglob("*")] == ["temporary"]


def test_cleanup_lists_what_a_killed_process_has_left_and_removes_that_alone(left, capsys):
    with held_by_another() as living, temporary_folder() as own:
        assert cleaned(capsys, "--dry-run").splitlines() == [
            f"would remove {left}: temporary files of a pgtrial that ended abruptly"
        ]
        assert left.exists()
        assert f"Removed {left}, temporary files of a pgtrial that ended abruptly." in cleaned(capsys)
        assert not left.exists()
        assert living.exists()
        assert own.exists()


def test_the_next_study_removes_what_a_killed_process_has_left(left):
    with Workspace() as workspace:
        assert workspace.notices == [f"Removed {left}, temporary files of a pgtrial that ended abruptly."]
    assert not left.exists()


def test_links_and_folders_of_other_accounts_are_left_alone(state, left, tmp_path):
    require_root()
    (tmp_path / "precious").write_text("")
    planted = left.with_name("1-planted")
    planted.symlink_to(tmp_path)
    theirs = left.with_name("2-theirs")
    theirs.mkdir()
    os.chown(theirs, pwd.getpwnam("nobody").pw_uid, -1)
    assert remove_abandoned(state) == [left]
    assert (tmp_path / "precious").exists()
    assert planted.is_symlink()
    assert theirs.exists()


def test_where_the_folders_of_a_state_belong_to_another_account_nothing_is_removed(state, left):
    require_root()
    os.chown(left.parent, pwd.getpwnam("nobody").pw_uid, -1)
    assert remove_abandoned(state) == []
    assert left.exists()
    with temporary_folder() as folder:
        assert not folder.is_relative_to(state)
        assert folder.stat().st_mode & 0o077 == 0
    assert not folder.exists()


def test_without_a_state_directory_a_folder_lies_where_tmpdir_says(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("PGTRIAL_STATE", str(tmp_path / "file" / "state"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with temporary_folder() as folder:
        assert folder.parent == tmp_path
    assert leftovers() == []
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "absent"))
    with pytest.raises(
        StoreError, match=r"pgtrial cannot create a temporary folder in .*file/state, nor in .*; set PGTRIAL_"
    ):
        temporary_folder().__enter__()


def test_cleanup_removes_temporary_files_of_killed_processes_and_no_others(state, capsys):
    (state / "kept").mkdir(parents=True)
    left = [state / ".noise.json.0123abcd.tmp", state / "kept" / ".plan.0123abcd.tmp"]
    for path in left:
        path.write_text("{")
    with new_beside(state / "certificates.json") as written:
        assert str(written.path) not in cleaned(capsys, "--dry-run")
        told = cleaned(capsys)
        assert written.path.exists()
    for path in left:
        assert f"Removed {path}, temporary files of a pgtrial that ended abruptly." in told
        assert not path.exists()
