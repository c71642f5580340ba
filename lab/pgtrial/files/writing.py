"""Writes files so that no other account can redirect the output to another place.

A file is written under a random name, in a directory that pgtrial holds open, and then renamed. After a crash there is
either the old file or the new one. pgtrial neither follows nor overwrites files and links that other accounts have put
into the directory.

While a process writes a file, it holds a lock on it. A temporary file whose lock nobody holds was therefore left by a
process that was killed.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from pgtrial.files.locks import take, wait_for
from pgtrial.files.trust import check_exchangeable

_LONGEST = 200
"""The number of characters of a file's name that become part of its temporary name, which stays so below the 255 bytes
that file systems allow."""
TEMPORARY = ".*.tmp"
"""The pattern for `glob` that finds temporary files. It also finds other hidden files and directories."""
_TEMPORARY = re.compile(r"\..+\.[0-9a-f]{8}\.tmp", re.DOTALL)


@dataclass(frozen=True)
class NewFile:
    """A file that is being written under a temporary name."""

    path: Path
    """The temporary path, by which a reader can open the file before it is renamed."""
    file: BinaryIO
    folder: int
    """The file descriptor of the directory that has the file."""

    def flush(self) -> None:
        """Writes the file's content to the disk and waits until it is there."""
        self.file.flush()
        os.fsync(self.file.fileno())

    def take_name(self, name: str) -> None:
        """Renames the file from its temporary name to `name`. A file that has this name is replaced."""
        os.rename(self.path.name, name, src_dir_fd=self.folder, dst_dir_fd=self.folder)
        os.fsync(self.folder)


@contextmanager
def new_beside(path: Path) -> Iterator[NewFile]:
    """Yields a new file in the directory of `path`. At the end of the context the file is removed, unless it was
    renamed by `take_name`.

    Raises OSError, also if something that is not a regular file has the path, and ExchangeableError.
    """
    if not path.name or path.name == ".." or (path.exists() and not path.is_file()):
        code = errno.EISDIR if path.is_dir() else errno.EEXIST
        raise OSError(code, "it is a directory" if path.is_dir() else "it is not a regular file", str(path))
    with _opened(path.parent) as folder:
        name, descriptor = _created(path.name, folder)
        try:
            with open(descriptor, "w+b") as file:
                yield NewFile(path.with_name(name), file, folder)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(name, dir_fd=folder)


def abandoned_files(paths: Iterable[Path]) -> Iterator[Path]:
    """Yields those of the paths that are temporary files of this account whose processes have ended.

    This process holds the lock of a file until the caller asks for the next one.
    """
    for path in paths:
        if not _TEMPORARY.fullmatch(path.name):
            continue
        with suppress(OSError):  # its process has just removed or renamed it, or it is a link
            descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            with open(descriptor, "r+b", buffering=0) as file:
                status = os.fstat(descriptor)
                if stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid() and take(file):
                    yield path


def replace_file(path: Path, data: bytes) -> None:
    """Writes a file with this content, in place of the file that has the path. Raises OSError and ExchangeableError."""
    with new_beside(path) as new:
        new.file.write(data)
        new.flush()
        new.take_name(path.name)


def make_directory(path: Path, mode: int = 0o777) -> None:
    """Makes a directory with this mode, and the directories above it that do not exist. Raises OSError and
    ExchangeableError."""
    check_exchangeable(path)
    path.mkdir(mode=mode, parents=True, exist_ok=True)
    check_exchangeable(path)  # in a directory such as /tmp, another account may have made the directory first


def open_own(path: str, flags: int, mode: int = 0o666) -> int:
    """Opens a file for writing if it is a regular file, and not a link, pipe or device. It can be passed to `open` as
    its opener. Raises OSError."""
    check_exchangeable(Path(path))
    descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, mode)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is not a regular file", path)
    return descriptor


def _created(name: str, folder: int) -> tuple[str, int]:
    """Creates a temporary file in a directory, for the file `name`, and locks it. Returns its name and its file
    descriptor."""
    while True:
        temporary = f".{name[:_LONGEST]}.{secrets.token_hex(4)}.tmp"
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(temporary, flags, 0o666, dir_fd=folder)
        with suppress(OSError):  # on a file system without locks nobody can take the file for abandoned either
            wait_for(descriptor)
        if os.fstat(descriptor).st_nlink:
            return temporary, descriptor
        os.close(descriptor)  # another process has removed it in the moment before it was locked


@contextmanager
def _opened(folder: Path) -> Iterator[int]:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        check_exchangeable(folder)
        yield descriptor
    finally:
        os.close(descriptor)
