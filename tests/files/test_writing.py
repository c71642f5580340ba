"""Files are written where their path says, whatever somebody else has put beside them."""

from __future__ import annotations

import os
import secrets
import stat
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from pgtrial.files import writing
from pgtrial.files.writing import abandoned_files, make_directory, new_beside, open_own, replace_file


def test_a_file_is_replaced_and_nothing_stays_beside_it(tmp_path):
    path = tmp_path / "report.md"
    for content in (b"one", b"two"):
        replace_file(path, content)
        assert path.read_bytes() == content
    assert list(tmp_path.iterdir()) == [path]


def test_what_is_planted_under_a_temporary_name_is_neither_followed_nor_overwritten(tmp_path, monkeypatch):
    """Somebody who guesses the random name wins a refusal."""
    victim = tmp_path / "victim"
    victim.write_text("another's")
    monkeypatch.setattr(secrets, "token_hex", lambda _: "0")
    planted = tmp_path / ".report.md.0.tmp"
    planted.symlink_to(victim)
    with pytest.raises(FileExistsError):
        replace_file(tmp_path / "report.md", b"ours")
    assert victim.read_text() == "another's"
    assert planted.is_symlink()
    assert not (tmp_path / "report.md").exists()


def test_a_link_to_a_file_is_replaced_and_not_followed(tmp_path):
    victim, path = tmp_path / "victim", tmp_path / "report.md"
    victim.write_text("another's")
    path.symlink_to(victim)
    replace_file(path, b"ours")
    assert victim.read_text() == "another's"
    assert (path.is_symlink(), path.read_bytes()) == (False, b"ours")


@pytest.mark.parametrize("kind", ["pipe", "device", "link to a device", "directory"])
def test_what_is_no_file_is_not_replaced(tmp_path, kind):
    path = tmp_path / "there"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "directory":
        path.mkdir()
    elif kind == "link to a device":
        path.symlink_to("/dev/null")
    else:
        path = tmp_path / "null"
        try:
            os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, 3))
        except PermissionError:
            pytest.skip("needs the right to make devices")
    before = path.lstat()
    with pytest.raises(OSError, match="it is a directory" if kind == "directory" else "it is not a regular file"):
        replace_file(path, b"ours")
    assert path.lstat().st_ino == before.st_ino


def test_a_directory_that_is_exchanged_meanwhile_gets_nothing(tmp_path):
    folder, other = tmp_path / "folder", tmp_path / "other"
    folder.mkdir()
    other.mkdir()
    with new_beside(folder / "report.md") as new:
        folder.rename(tmp_path / "moved")
        folder.symlink_to(other)
        new.file.write(b"ours")
        new.flush()
        new.take_name("report.md")
    assert list(other.iterdir()) == []
    assert [path.name for path in (tmp_path / "moved").iterdir()] == ["report.md"]


def test_an_error_leaves_neither_a_new_file_nor_a_temporary_one(tmp_path):
    def fail(path: Path) -> None:
        with new_beside(path) as new:
            new.file.write(b"ours")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail(tmp_path / "report.md")
    assert list(tmp_path.iterdir()) == []


def test_a_file_to_append_to_is_no_link_and_no_pipe(tmp_path):
    (tmp_path / "victim").write_text("another's")
    (tmp_path / "link").symlink_to(tmp_path / "victim")
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "pipe"):
        with pytest.raises(OSError), open(tmp_path / name, "a", opener=open_own):  # noqa: PT011 - the systems differ
            pytest.fail("it is open")
    with open(tmp_path / "own", "a", opener=open_own) as file:
        file.write("ours")
    assert (tmp_path / "own").read_text() == "ours"
    assert (tmp_path / "victim").read_text() == "another's"


def test_a_directory_that_another_account_made_first_is_not_used(tmp_path, monkeypatch):
    """This can happen in /tmp, where every account may make a directory of that name first."""
    seen = []
    monkeypatch.setattr(writing, "check_exchangeable", seen.append)
    make_directory(tmp_path / "results")
    assert seen == [tmp_path / "results"] * 2


@contextmanager
def being_written(path):
    """Yields the temporary file that another process writes for `path`. The process is killed at the end."""
    program = """
import sys
from pathlib import Path
from pgtrial.files.writing import new_beside
with new_beside(Path(sys.argv[1])) as new:
    print(new.path, flush=True)
    sys.stdin.read()
"""
    words = [sys.executable, "-c", program, str(path)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield Path(process.stdout.readline().strip())
        finally:
            process.kill()


def test_the_temporary_file_of_a_killed_process_is_known_from_that_of_a_running_one(tmp_path):
    planted = [tmp_path / ".link.01234567.tmp", tmp_path / ".folder.01234567.tmp", tmp_path / ".of-a-user.tmp"]
    planted[0].symlink_to(tmp_path / "victim")
    planted[1].mkdir()
    planted[2].write_text("")
    with being_written(tmp_path / "plan.json") as temporary:
        assert temporary.exists()
        assert list(abandoned_files(tmp_path.iterdir())) == []
    assert list(abandoned_files(tmp_path.iterdir())) == [temporary]


def test_a_temporary_file_that_is_taken_for_abandoned_before_it_is_locked_is_made_again(tmp_path, monkeypatch):
    removed = []

    def wait_for(descriptor):
        if not removed:
            [temporary] = tmp_path.iterdir()
            temporary.unlink()
            removed.append(temporary)

    monkeypatch.setattr(writing, "wait_for", wait_for)
    replace_file(tmp_path / "plan.json", b"ours")
    assert removed
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("plan.json", b"ours")]
