"""Tests that pgtrial reads regular files and the pipes of a shell, and nothing else."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from pgtrial.files import reading
from pgtrial.files.reading import open_file, read_bytes, read_text


@pytest.mark.parametrize("kind", ["pipe", "link to a pipe", "device that never ends"])
def test_anything_but_a_file_is_refused_without_waiting(tmp_path, kind):
    path = tmp_path / "there"
    if kind == "device that never ends":
        path.symlink_to("/dev/zero")
    else:
        os.mkfifo(tmp_path / "pipe")
        path = tmp_path / "pipe" if kind == "pipe" else path
        if kind != "pipe":
            path.symlink_to(tmp_path / "pipe")
    with pytest.raises(OSError, match="it is not a regular file"):
        read_bytes(path)


def test_a_directory_is_told_as_one(tmp_path):
    with pytest.raises(IsADirectoryError):
        read_bytes(tmp_path)


def test_a_pipe_that_the_shell_has_passed_is_read():
    ours, theirs = os.pipe()
    writer = threading.Thread(target=lambda: (os.write(theirs, b"SELECT 1"), os.close(theirs)))
    writer.start()
    with open_file(Path(f"/dev/fd/{ours}")) as file:
        assert file.read() == b"SELECT 1"
    writer.join()
    os.close(ours)


def test_a_file_that_is_too_long_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "MOST_BYTES", 2**20)
    path = tmp_path / "long"
    with path.open("wb") as file:
        file.truncate(2**20 + 1)
    with pytest.raises(OSError, match="longer than 1 MB"):
        read_bytes(path)


def test_line_ends_are_those_of_a_text(tmp_path):
    (tmp_path / "text").write_bytes(b"a\r\nb\rc\n")
    assert read_text(tmp_path / "text") == "a\nb\nc\n"


def test_a_pipe_that_the_shell_has_passed_is_read_again():
    ours, theirs = os.pipe()
    os.write(theirs, b"SELECT 1")
    os.close(theirs)
    try:
        assert [read_bytes(Path(f"/dev/fd/{ours}")) for _ in range(2)] == [b"SELECT 1"] * 2
    finally:
        os.close(ours)
