"""Locks of the lab on this machine, made with flock(2). They end with the process that holds them.

Everybody who can open a file can lock it, even one opened only for reading. So only its own account can open a lock
file.
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
"""The name of a lock file within a directory, which the processes hold that use the directory."""
NAME_LOCK = ".lock"
"""The ending of a lock file's name, behind the name of its directory."""


def open_lock(path: Path, *, make: bool = True) -> IO[bytes]:
    """Opens a lock file, and makes it if it does not exist. If this account owns the file, its mode is set to 0600.

    Raises OSError, also for a link, and FileNotFoundError without `make`.
    """
    flags = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | (os.O_CREAT if make else 0)
    descriptor = os.open(path, flags, _MODE)
    status = os.fstat(descriptor)
    if status.st_uid == os.geteuid() and stat.S_IMODE(status.st_mode) != _MODE:
        os.fchmod(descriptor, _MODE)
    return open(descriptor, "r+b", buffering=0)


def take(lock: IO[bytes] | int) -> bool:
    """Locks an open file for this process alone. Returns false if another process has locked it."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def is_held(path: Path) -> bool:
    """True if a process holds a lock file, alone or with others. A lock file of another account counts as held."""
    try:
        with open_lock(path, make=False) as lock:
            return not take(lock)
    except FileNotFoundError:
        return False
    except PermissionError:
        return True


def wait_for(lock: IO[bytes] | int, *, shared: bool = False) -> None:
    """Waits until no other process has locked an open file, and locks it for this process alone, or with others if
    `shared`."""
    fcntl.flock(lock, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)


def is_name_held(home: Path) -> bool:
    """Returns whether a process holds the lock of a directory's name: it makes, checks or removes that directory."""
    return is_held(name_lock(home))


@contextmanager
def holding_name(home: Path, wait: Callable[[], None]) -> Iterator[None]:
    """Holds the lock of a directory that exists or is about to be made. The lock file is removed if there is no
    directory at the end.

    `wait` is called before another process is waited for, and may raise.
    """
    path = name_lock(home)
    while True:
        with open_lock(path) as file:
            if not take(file):
                wait()
                wait_for(file)
            if not os.fstat(file.fileno()).st_nlink:
                continue  # its holder has removed it: another file is the lock now
            try:
                yield
            finally:
                if not home.exists():
                    path.unlink(missing_ok=True)
            return


def name_lock(home: Path) -> Path:
    """Returns the lock file of a directory's name, which lies beside it."""
    return home.with_name(f"{home.name}{NAME_LOCK}")
