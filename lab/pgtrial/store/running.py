"""Handles the lock of a running study, and requests to stop it. The lab that runs a study locks its directory, so that
no other lab runs it. Other processes can find out whether a lab runs the study, and can ask it to stop after the
current block."""

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
"""The mode of the lock file of a study. It gives other accounts no access, since any account that can open the file
could lock it."""
_STOP = ".stop"
"""The file by which other processes ask the lab to stop. Its name is hidden, so that bundles do not include it."""

_TRIES, _WAIT_S = 20, 0.05
"""The largest number of attempts to get the lock, and the pause between two attempts in seconds. Several attempts are
needed, since `is_running` holds the lock for a moment."""


@contextmanager
def locked(study: Path) -> Iterator[None]:
    """A context that holds the lock of a study directory, for the lab that runs the study. Raises StoreError if another
    lab holds it."""
    with writing(study):
        check_exchangeable(study)
        file = open(study / _LOCK, "a", opener=_own)  # noqa: SIM115
        # the lock file of a study of an earlier version may be open to all accounts
        os.fchmod(file.fileno(), _OWN)
    with file:
        for _ in range(_TRIES):
            if _take(file, fcntl.LOCK_EX):
                break
            time.sleep(_WAIT_S)
        else:
            raise StoreError(f"another pgtrial is running this study in {study}; wait until it ends, or stop it")
        yield


def is_running(study: Path) -> bool:
    """True if a lab on this machine runs the study in this directory."""
    try:
        with open_file(study / _LOCK) as file:
            return not _take(file, fcntl.LOCK_SH)
    except PermissionError:  # the lock file belongs to another account
        return _is_listed(study / _LOCK)
    except OSError:
        return False


def _own(path: str, flags: int) -> int:
    return open_own(path, flags, _OWN)


def _is_listed(file: Path) -> bool:
    """True if Linux lists a lock on the file. The list, /proc/locks, shows the inodes of locked files to every
    account."""
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
    """Asks the lab that runs the study to stop after the current block. Raises StoreError if no lab runs it."""
    if not is_running(study):
        again = f"pgtrial run {shlex.quote(str(study))}"
        raise StoreError(
            f"no pgtrial on this machine runs {study}, so there is nothing to stop; {again} continues the study"
        )
    write_atomically(study / _STOP, "")


def stop_is_asked(study: Path) -> bool:
    """True if somebody has asked the study to stop after the current block."""
    return (study / _STOP).exists()


def forget_stop(study: Path) -> None:
    """Removes the request to stop, so that it does not stop the next run of the study. Raises StoreError if the file
    cannot be removed."""
    with writing(study):
        check_exchangeable(study)
        (study / _STOP).unlink(missing_ok=True)
