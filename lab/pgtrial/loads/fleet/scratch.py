"""The folder of a Ray cluster that was made for one run, and what is left of those whose lab was killed.

The folder is in /tmp, since the paths of the sockets in it may have at most 107 bytes (unix(7)). Its lab holds a lock
on it.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import psutil

from pgtrial.machines.journal import Leftover
from pgtrial.machines.locks import open_lock, take, wait_for

ROOT = Path("/tmp") if Path("/tmp").is_dir() else Path(tempfile.gettempdir())
"""The folder in which the folders of all labs lie."""

_NAME = re.compile(r"pgt-ray-(\d+)-\w+")
"""Matches the names of such folders, which contain the process id of the lab."""
_LOCK = "lock"
_RAYS = "r"
_END_S = 5.0
_ROUNDS = 10
"""The number of passes that end the processes: one that is about to be ended may start another."""


@contextmanager
def scratch() -> Iterator[str]:
    """Makes a new folder for Ray, which is removed at the end of the context."""
    room = Path(tempfile.mkdtemp(prefix=f"pgt-ray-{os.getpid()}-", dir=ROOT))
    with ExitStack() as held:
        lock = held.enter_context(open_lock(room / _LOCK))
        # the folder is removed while the lock is held: otherwise another lab takes it for one that was left behind
        held.callback(shutil.rmtree, room, ignore_errors=True)
        wait_for(lock)
        # Ray makes its folder accessible to everyone, so it gets one within the lab's
        (room / _RAYS).mkdir()
        yield str(room / _RAYS)


def leftovers() -> list[Leftover]:
    """Returns the folders whose lab has ended without removing them."""
    return [Leftover(room, "the Ray cluster of a lab that ended abruptly") for room in _abandoned()]


def clean() -> list[str]:
    """Removes such folders, and ends what is left of their clusters. Returns sentences on what was done."""
    notices = []
    for room in _abandoned():
        ended = _end_processes(room)
        shutil.rmtree(room, ignore_errors=True)
        processes = f" and ended {ended} of its processes" if ended else ""
        notices.append(f"Removed {room}, the Ray cluster of a pgtrial that ended abruptly{processes}.")
    return notices


def _abandoned() -> Iterator[Path]:
    """Yields the folders of this account that no lab holds. They are held until the last one has been treated."""
    with ExitStack() as held:
        for room in sorted(ROOT.glob("pgt-ray-*")):
            named = _NAME.fullmatch(room.name)
            if named is not None and _is_ours(room) and _is_free(room, int(named[1]), held):
                yield room


def _is_ours(room: Path) -> bool:
    with suppress(FileNotFoundError):  # its lab has just removed the folder
        status = room.lstat()
        return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()
    return False


def _is_free(room: Path, lab: int, held: ExitStack) -> bool:
    """Returns true if no lab holds the folder, which is then held."""
    try:
        if not take(held.enter_context(open_lock(room / _LOCK, make=False))):
            return False
    except FileNotFoundError:
        locked = False
    else:
        # Ray's folder within it is made after the lock is taken, and removed before the lock is released
        locked = (room / _RAYS).exists()
    # if the lab lives, a folder that was never locked may have been made a moment ago, or is being removed
    return locked or (not psutil.pid_exists(lab) and room.exists())


def _end_processes(room: Path) -> int:
    """Ends the cluster's processes. Most of them end with their lab: its agents look for it every some seconds."""
    ended: set[psutil.Process] = set()
    for _ in range(_ROUNDS):
        processes = [process for process in psutil.process_iter() if _is_of(process, f"{room}{os.sep}")]
        if not processes:
            break
        for process in processes:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(processes, timeout=_END_S)
        ended.update(processes)
    return len(ended)


def _is_of(process: psutil.Process, below: str) -> bool:
    """True if it is a process of Ray that works in the folder: its workers rename themselves, and keep their logs."""
    try:
        if process.uids().real != os.geteuid():
            return False
        command = process.cmdline()
        rays = process.name() in ("raylet", "gcs_server") or any(
            word.startswith("ray::") or f"{os.sep}ray{os.sep}" in word for word in command
        )
        return rays and (
            any(below in word for word in command) or any(file.path.startswith(below) for file in process.open_files())
        )
    except (psutil.Error, OSError):
        return False
