"""The lock of a running study, and requests to it. A lab that runs a study locks its directory, so that no other lab
runs it. Other processes can find out whether a lab does, and can ask it to stop after the block in progress."""

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
"""The mode of the lock's file. Any account that can open the file can lock it."""
_STOP = ".stop"
"""The file that asks the lab to stop. It is hidden, so that no bundle has it."""

_TRIES, _WAIT_S = 20, 0.05
"""The most tries of a lab to get the lock, and the pause between two tries, seconds. `is_running` holds the lock for a
moment."""


@contextmanager
def locked(study: Path) -> Iterator[None]:
    """Holds the lock of a study directory for one running lab. Raises StoreError if another lab holds it."""
    with writing(study):
        check_exchangeable(study)
        file = open(study / _LOCK, "a", opener=_own)  # noqa: SIM115
        # the lock file of an older study could be locked by every account
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
    """True if a lab on this machine holds the study directory."""
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
    """True if Linux lists a lock on the file. It lists the inodes of locked files to every account."""
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
    """Asks the lab that runs the study to end it after the block in progress. Raises StoreError if no lab runs it."""
    if not is_running(study):
        again = f"pgtrial run {shlex.quote(str(study))}"
        raise StoreError(f"no lab on this machine runs {study}, so there is nothing to stop; {again} goes on with it")
    write_atomically(study / _STOP, "")


def stop_is_asked(study: Path) -> bool:
    """True if the study was asked to end after the block in progress."""
    return (study / _STOP).exists()


def forget_stop(study: Path) -> None:
    """Removes the request to stop, which holds for one run of the lab. Raises StoreError."""
    with writing(study):
        check_exchangeable(study)
        (study / _STOP).unlink(missing_ok=True)
