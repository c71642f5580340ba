"""Writes files in such a way that no other account can divert them.

A file gets its content under a random name in a directory that is held open, and is then renamed. A crash leaves the
old file or the new one. Files and links that other accounts have put into the directory are neither followed nor
overwritten.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from pgtrial.files.trust import check_exchangeable

_LONGEST = 200
"""The number of characters of a name that its temporary name repeats; file systems take 255 bytes."""


@dataclass(frozen=True)
class NewFile:
    """A file that is being written."""

    path: Path
    """The file's temporary path, for a reader before the file is renamed."""
    file: BinaryIO
    folder: int
    """The descriptor of its directory."""

    def flush(self) -> None:
        """Writes the file's content through to the disk."""
        self.file.flush()
        os.fsync(self.file.fileno())

    def take_name(self, name: str) -> None:
        """Gives the file its name and replaces the file that has this name."""
        os.rename(self.path.name, name, src_dir_fd=self.folder, dst_dir_fd=self.folder)
        os.fsync(self.folder)


@contextmanager
def new_beside(path: Path) -> Iterator[NewFile]:
    """Yield a new file in the directory of `path`, which is gone at the end unless it has taken a name.

    Raises OSError, also where something else than a file has the path, and ExchangeableError.
    """
    if not path.name or path.name == ".." or (path.exists() and not path.is_file()):
        code = errno.EISDIR if path.is_dir() else errno.EEXIST
        raise OSError(code, "it is a directory" if path.is_dir() else "it is no regular file", str(path))
    with _opened(path.parent) as folder:
        name = f".{path.name[:_LONGEST]}.{secrets.token_hex(4)}.tmp"
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(name, flags, 0o666, dir_fd=folder)
        try:
            with open(descriptor, "w+b") as file:
                yield NewFile(path.with_name(name), file, folder)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(name, dir_fd=folder)


def replace_file(path: Path, data: bytes) -> None:
    """Replaces a file by one with this content. Raises OSError and ExchangeableError."""
    with new_beside(path) as new:
        new.file.write(data)
        new.flush()
        new.take_name(path.name)


def make_directory(path: Path, mode: int = 0o777) -> None:
    """Makes a directory with this mode, and those above it that do not exist. Raises OSError and ExchangeableError."""
    check_exchangeable(path)
    path.mkdir(mode=mode, parents=True, exist_ok=True)
    check_exchangeable(path)  # somebody may have been faster, in a directory such as /tmp


def open_own(path: str, flags: int, mode: int = 0o666) -> int:
    """Opens a file for writing that is no link, pipe or device. It serves as the opener of `open`. Raises OSError."""
    check_exchangeable(Path(path))
    descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, mode)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is no regular file", path)
    return descriptor


@contextmanager
def _opened(folder: Path) -> Iterator[int]:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        check_exchangeable(folder)
        yield descriptor
    finally:
        os.close(descriptor)
