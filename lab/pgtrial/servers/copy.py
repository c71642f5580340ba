"""A fresh copy of a data directory: shared blocks where the file system can (reflink), else copied by the kernel."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
from pathlib import Path

from pgtrial.model.errors import ArmError

_FICLONE = 0x40049409  # linux/fs.h: _IOW(0x94, 9, int)
_CHUNK = 64 * 1024 * 1024
_UNSUPPORTED = (errno.EOPNOTSUPP, errno.ENOTTY, errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EPERM)


def copy_directory(source: Path, destination: Path, *, flush: bool = True) -> None:
    """Copy a tree with owners and modes. Raises ArmError, leaving nothing behind.

    With `flush` this and all else that is dirty on the host is on disk when it returns: neither the write-back of the
    copy nor what the trial before left behind may fall into the trial that follows.
    """
    try:
        _copy_tree(source, destination)
        if flush:
            os.sync()
    except OSError as error:
        shutil.rmtree(destination, ignore_errors=True)
        raise ArmError(copy_failure(source, destination, error)) from None


def move_wal(data: Path, wal: Path) -> None:
    """Move the WAL of a cluster that is at rest to a directory of its own, and link to it. Raises ArmError."""
    own = data / "pg_wal"
    copy_directory(own, wal)
    try:
        shutil.rmtree(own)
        own.symlink_to(wal)
        _same_owner(wal, own)
    except OSError as error:
        raise ArmError(f"cannot move the WAL to {wal}: {error.strerror}") from None


def copy_failure(source: Path, destination: Path, error: OSError) -> str:
    """The sentence for an operating-system error while copying."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        free = shutil.disk_usage(destination.parent).free / 1e6
        return (
            f"the disk is full: copying {source} to {destination.parent} failed with {free:,.0f} MB free; "
            "free some space, lower the scale, or set PGTRIAL_STATE to a directory on a larger disk"
        )
    return f"cannot copy {source} to {destination}: {error.strerror or error}; check the permissions and the disk"


def _copy_tree(source: Path, destination: Path) -> None:
    destination.mkdir()
    for entry in os.scandir(source):
        target = destination / entry.name
        if entry.is_symlink():
            target.symlink_to(os.readlink(entry.path))
        elif entry.is_dir():
            _copy_tree(Path(entry.path), target)
        elif entry.is_file():
            _copy_file(Path(entry.path), target)
    _same_owner(source, destination)
    shutil.copystat(source, destination)


def _copy_file(source: Path, target: Path) -> None:
    with source.open("rb") as reader, target.open("xb") as writer:
        _clone_or_copy(reader.fileno(), writer.fileno(), os.fstat(reader.fileno()).st_size)
    _same_owner(source, target)
    shutil.copystat(source, target)


def _same_owner(source: Path, target: Path) -> None:
    if os.geteuid() == 0:
        status = source.stat()
        os.chown(target, status.st_uid, status.st_gid)


def _clone_or_copy(reader: int, writer: int, size: int) -> None:
    if size == 0 or _cloned(reader, writer):
        return
    done = 0
    while done < size:
        copied = _copy_chunk(reader, writer, min(_CHUNK, size - done))
        if copied == 0:
            raise OSError(errno.EIO, "a file became shorter while it was copied")
        done += copied


def _cloned(reader: int, writer: int) -> bool:
    try:
        fcntl.ioctl(writer, _FICLONE, reader)
    except OSError as error:
        if error.errno in _UNSUPPORTED:
            return False
        raise
    return True


def _copy_chunk(reader: int, writer: int, count: int) -> int:
    if hasattr(os, "copy_file_range"):
        try:
            return os.copy_file_range(reader, writer, count)
        except OSError as error:
            if error.errno not in _UNSUPPORTED:
                raise
    return _write_all(writer, os.read(reader, min(count, 1024 * 1024)))


def _write_all(writer: int, content: bytes) -> int:
    view = memoryview(content)
    while view:
        view = view[os.write(writer, view) :]
    return len(content)
