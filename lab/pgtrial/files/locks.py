"""Locks of pgtrial on this machine, by flock(2). The kernel releases a lock when the process that holds it ends.

Everybody who can open a file, even only for reading, can lock it. Lock files can therefore be opened only by the
account that owns them.
"""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

_MODE = 0o600
IN_USE = "lock"
"""The name of the lock file within a directory. The processes that use the directory hold this lock."""
NAME_LOCK = ".lock"
"""The ending of the name of a lock file that is next to a directory. The name of the directory comes before it."""


def open_lock(path: Path, *, make: bool = True) -> IO[bytes]:
    """Opens a lock file, and makes it if it does not exist. If this account owns the file, its mode is set to 0600.

    Raises OSError if the file cannot be opened or is a symbolic link, and FileNotFoundError if it does not exist and
    `make` is false.
    """
    flags = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | (os.O_CREAT if make else 0)
    descriptor = os.open(path, flags, _MODE)
    status = os.fstat(descriptor)
    if status.st_uid == os.geteuid() and stat.S_IMODE(status.st_mode) != _MODE:
        os.fchmod(descriptor, _MODE)
    return open(descriptor, "r+b", buffering=0)


def take(lock: IO[bytes] | int) -> bool:
    """Tries to lock an open file for this process alone. Returns false if another process has locked it."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def is_held(path: Path) -> bool:
    """True if a process holds the lock of this file, alone or shared with others. A lock file of another account counts
    as held."""
    try:
        with open_lock(path, make=False) as lock:
            return not take(lock)
    except FileNotFoundError:
        return False
    except PermissionError:
        return True


def wait_for(lock: IO[bytes] | int, *, shared: bool = False) -> None:
    """Waits until no other process holds a conflicting lock of an open file, then locks the file: for this process
    alone or, if `shared`, together with others."""
    fcntl.flock(lock, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)


def is_name_held(home: Path) -> bool:
    """True if a process holds the lock for the name of a directory, because it makes, checks or removes this
    directory."""
    return is_held(name_lock(home))


@contextmanager
def holding_name(home: Path, wait: Callable[[], None]) -> Iterator[None]:
    """Holds the lock for the name of a directory that exists or that the caller is about to make. If the directory does
    not exist at the end of the context, the lock file is removed.

    If another process holds the lock, `wait` is called before this process waits. `wait` may raise an exception.
    """
    path = name_lock(home)
    while True:
        with open_lock(path) as file:
            if not take(file):
                wait()
                wait_for(file)
            if not os.fstat(file.fileno()).st_nlink:
                continue  # the former holder has removed this file, so that another file is the lock now
            try:
                yield
            finally:
                if not home.exists():
                    path.unlink(missing_ok=True)
            return


def name_lock(home: Path) -> Path:
    """Returns the path of the lock file for the name of a directory. The lock file is next to the directory."""
    return home.with_name(f"{home.name}{NAME_LOCK}")
