"""Functions for directory trees on this machine: they list the entries, measure the size on disk, and set the
rights."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from pgtrial.machines.machine import LOCAL

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def bytes_below(directory: Path) -> int:
    """Returns the disk space that everything below a directory takes, in bytes."""
    return sum(status.st_blocks * 512 for _, status in entries(directory))


def open_to_all(directory: Path) -> None:
    """Changes the modes of everything below a directory, so that every account can read and execute it, and only the
    owner can write to it. Raises HostError."""
    LOCAL.tool(["chmod", "-R", "u+rwX,go+rX,go-w", directory])


def entries(directory: Path) -> Iterator[tuple[str, os.stat_result]]:
    """Yields all files and directories below a directory: the path relative to it, and the result of lstat. Entries
    that are removed in the meantime are left out.

    A template has a thousand entries, which are read before each trial, so objects of pathlib would be too slow. Each
    directory is opened relative to its already opened parent, since the servers' account could replace a directory by a
    symbolic link.
    """
    with suppress(OSError):
        yield from _entries_of(os.open(directory, _FOLDER), "")


def _entries_of(folder: int, below: str) -> Iterator[tuple[str, os.stat_result]]:
    """Yields all files and directories below an open directory, and closes its file descriptor. `below` is the
    beginning of the yielded paths."""
    try:
        with os.scandir(folder) as scanned:
            entries = list(scanned)
        for entry in entries:
            name = f"{below}{entry.name}"
            with suppress(FileNotFoundError):
                yield name, entry.stat(follow_symlinks=False)
            if entry.is_dir(follow_symlinks=False):
                with suppress(OSError):
                    yield from _entries_of(os.open(entry.name, _FOLDER, dir_fd=folder), f"{name}/")
    finally:
        os.close(folder)
