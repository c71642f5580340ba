"""Trees of files on this machine: their entries, their size on the disk, and who may use them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from pgtrial.machines.machine import LOCAL

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def bytes_below(directory: Path) -> int:
    """Returns the bytes on the disk of everything below a directory."""
    return sum(status.st_blocks * 512 for _, status in entries(directory))


def open_to_all(directory: Path) -> None:
    """Lets every account read and run what is below a directory, and only the owner write it. Raises HostError."""
    LOCAL.tool(["chmod", "-R", "u+rwX,go+rX,go-w", directory])


def entries(directory: Path) -> Iterator[tuple[str, os.stat_result]]:
    """Yields everything below a directory by its path from there, with its status. Entries that somebody removes
    meanwhile are left out.

    A template has a thousand entries, which are read before each trial; objects of pathlib would be too slow. Each
    directory is opened from the one that holds it: the servers' account could put a link to another one in its place.
    """
    with suppress(OSError):
        yield from _entries_of(os.open(directory, _FOLDER), "")


def _entries_of(folder: int, below: str) -> Iterator[tuple[str, os.stat_result]]:
    """Yields everything below an open directory, and closes that directory."""
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
