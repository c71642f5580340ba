"""The lab that runs a study: one at a time, whether there is one, and the request that it stops after a block."""

from __future__ import annotations

import fcntl
import os
import shlex
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from pgtrial.files.reading import open_file
from pgtrial.files.trust import check_exchangeable
from pgtrial.files.writing import open_own
from pgtrial.model.errors import StoreError
from pgtrial.store.files import write_atomically, writing

_LOCK = ".lock"
_OWN = 0o600
"""Who can open a file can lock it."""
_STOP = ".stop"
"""Hidden files are the lab's own: no bundle has them."""

_TRIES, _WAIT_S = 20, 0.05
"""How often, and after how many seconds each, a lab tries to get the lock: `is_running` holds it for a moment."""


@contextmanager
def locked(study: Path) -> Iterator[None]:
    """Hold a study directory for one running lab. Raises StoreError when another one holds it."""
    with writing(study):
        check_exchangeable(study)
        file = open(study / _LOCK, "a", opener=_own)  # noqa: SIM115
        # a study of before had a file that every account could lock
        os.fchmod(file.fileno(), _OWN)
    with file:
        for _ in range(_TRIES):
            if _take(file, fcntl.LOCK_EX):
                break
            time.sleep(_WAIT_S)
        else:
            raise StoreError(f"another pgtrial is running this study in {study}; wait for it or stop it")
        yield


def is_running(study: Path) -> bool:
    """Whether a lab on this machine holds the study directory."""
    try:
        with open_file(study / _LOCK) as file:
            return not _take(file, fcntl.LOCK_SH)
    except PermissionError:  # of another account
        return _is_listed(study / _LOCK)
    except OSError:
        return False


def _own(path: str, flags: int) -> int:
    return open_own(path, flags, _OWN)


def _is_listed(file: Path) -> bool:
    """Whether Linux lists a lock on the file; it lists the inodes of locked files to every account."""
    with suppress(OSError):
        status = file.stat()
        inode = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
        return any(inode in line.split() for line in Path("/proc/locks").read_text().splitlines())
    return False


def _take(file: IO[Any], kind: int) -> bool:
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def ask_to_stop(study: Path) -> None:
    """Ask the lab that runs the study to end it after the block under way. Raises StoreError if no lab runs it."""
    if not is_running(study):
        again = f"pgtrial run {shlex.quote(str(study))}"
        raise StoreError(f"no lab on this machine runs {study}, so there is nothing to stop; {again} goes on with it")
    write_atomically(study / _STOP, "")


def stop_is_asked(study: Path) -> bool:
    """Whether the study is to end after the block under way."""
    return (study / _STOP).exists()


def forget_stop(study: Path) -> None:
    """Remove the request: it holds for one run of the lab. Raises StoreError."""
    with writing(study):
        check_exchangeable(study)
        (study / _STOP).unlink(missing_ok=True)
