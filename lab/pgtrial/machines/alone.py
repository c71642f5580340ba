"""Several labs on one machine: one at a time changes its kernel, and what a lab that is gone left behind.

Values that another lab has set would be put back as if they were the machine's own.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pgtrial.machines.machine import LOCAL, Machine
from pgtrial.model.errors import ArmError

_LOCK = Path("/sys/kernel")
"""A directory of the kernel's serves as the lock: there is nothing to make, and nothing to remove."""
_PATIENCE_S = 600.0
_LOOK_S = 0.1


_held: list[int] = []
"""The locks that this process holds: arms whose servers are up at the same time each ask for one."""


@contextmanager
def alone_changing(machine: Machine) -> Iterator[None]:
    """Wait for other labs of this machine, and keep them waiting inside; other machines are not looked after.

    Raises ArmError after ten minutes: what the other one does is no failure of an arm.
    """
    if machine is not LOCAL or not _LOCK.is_dir():
        yield
        return
    lock = os.open(_LOCK, os.O_RDONLY)
    try:
        deadline = time.monotonic() + _PATIENCE_S
        while not (_held or _taken(lock)):
            if time.monotonic() > deadline:
                raise ArmError(
                    "another pgtrial has been changing this machine's kernel parameters or huge pages for "
                    f"{_PATIENCE_S / 60:.0f} minutes; wait until its trial has ended"
                )
            time.sleep(_LOOK_S)
        _held.append(lock)
        try:
            yield
        finally:
            _held.remove(lock)
    finally:
        os.close(lock)


def _taken(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@dataclass(frozen=True)
class Leftover:
    """Something on this machine that no running lab holds."""

    path: Path
    what: str
