"""Trees of files of this machine: their entries, what they take on the disk, and who may use them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from pgtrial.machines.machine import LOCAL

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def bytes_below(directory: Path) -> int:
    """What is below a directory takes on the disk."""
    return sum(status.st_blocks * 512 for _, status in entries(directory))


def open_to_all(directory: Path) -> None:
    """Let every account read and run what is below a directory, and none but the owner write. Raises HostError."""
    LOCAL.tool(["chmod", "-R", "u+rwX,go+rX,go-w", directory])


def entries(directory: Path) -> Iterator[tuple[str, os.stat_result]]:
    """What is below a directory, by its path there; what somebody removes meanwhile is left out.

    A template has a thousand, looked through before each trial: hence no objects of pathlib. Each directory is opened
    from the one that holds it: the servers' account could put a link to another one in its place.
    """
    with suppress(OSError):
        yield from _entries_of(os.open(directory, _FOLDER), "")


def _entries_of(folder: int, below: str) -> Iterator[tuple[str, os.stat_result]]:
    """What is below an open directory, which is closed."""
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
