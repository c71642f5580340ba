"""Reads regular files only. Other accounts may have put a pipe or a device in the place of a file, which could block
pgtrial or never end."""

from __future__ import annotations

import errno
import os
import stat
from io import BufferedReader
from pathlib import Path

MOST_BYTES = 256 * 2**20
"""The size in bytes of the longest file that pgtrial reads as a whole. Study files, scripts and records are far
shorter."""

_NOT_REGULAR = "it is not a regular file"
_PASSED = (Path("/dev/fd"), Path("/proc/self/fd"))
"""The directories whose entries are files that a shell has opened for this process, for example by `<(...)`."""

_kept: dict[tuple[int, int], bytes] = {}
"""The contents of the pipes that this process has read, by device and inode. A pipe can be read only once, so the
contents are kept."""


def is_passed(path: Path) -> bool:
    """True if the path names a file or pipe that the shell has opened for this process: /dev/stdin or /dev/fd/N."""
    return path.parent in _PASSED or path == Path("/dev/stdin")


def open_file(path: Path) -> BufferedReader:
    """Opens a regular file for reading, without blocking. Raises OSError for everything else.

    A pipe is accepted if the user has passed it as /dev/stdin or /dev/fd/N. Its content can be read only once.
    """
    passed = is_passed(path)
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | (0 if passed else os.O_NONBLOCK))
    kind = os.fstat(descriptor).st_mode
    if stat.S_ISREG(kind) or (passed and stat.S_ISFIFO(kind)):
        return open(descriptor, "rb")
    os.close(descriptor)
    if stat.S_ISDIR(kind):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    raise OSError(errno.EINVAL, _NOT_REGULAR, str(path))


def check_regular(path: Path) -> None:
    """Raises OSError if the path is not a regular file. It is called before a library opens the file by itself."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise OSError(errno.EINVAL, _NOT_REGULAR, str(path))


def read_bytes(path: Path) -> bytes:
    """Returns the content of a regular file. Raises OSError, also if the file is longer than 256 MB.

    The content of a pipe that the user has passed is kept, so that it can be read again.
    """
    pipe = _pipe(path)
    if pipe in _kept:
        return _kept[pipe]
    with open_file(path) as file:
        content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise OSError(errno.EFBIG, f"the file is longer than {MOST_BYTES // 2**20} MB", str(path))
    if pipe is not None:
        _kept[pipe] = content
    return content


def _pipe(path: Path) -> tuple[int, int] | None:
    """Returns the device and the inode of a pipe that the user has passed as /dev/stdin or /dev/fd/N; None for
    everything else."""
    if not is_passed(path) or not path.is_fifo():
        return None
    found = path.stat()
    return found.st_dev, found.st_ino


def read_text(path: Path, encoding: str = "utf-8", errors: str = "strict") -> str:
    """Returns the text of a regular file. Its line ends become \\n.

    Raises OSError as `read_bytes` does, and UnicodeDecodeError.
    """
    return read_bytes(path).decode(encoding, errors).replace("\r\n", "\n").replace("\r", "\n")
