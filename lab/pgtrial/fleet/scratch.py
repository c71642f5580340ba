"""The folder of a Ray cluster that was made for one run, and what is left of those whose lab was killed.

It lies in /tmp, since the paths of the sockets in it may have 107 bytes (unix(7)). Its lab holds a lock on it.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil

from pgtrial.arm.workspace import Leftover

_NAME = re.compile(r"pgt-ray-(\d+)-\w+")
"""With the number of the lab's process."""
_LOCK = "lock"
_RAYS = "r"
_END_S = 5.0


@contextmanager
def scratch() -> Iterator[str]:
    """A new folder that Ray may have; removed at the end."""
    room = Path(tempfile.mkdtemp(prefix=f"pgt-ray-{os.getpid()}-", dir=_root()))
    try:
        with (room / _LOCK).open("wb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            # Ray opens its folder to everyone
            (room / _RAYS).mkdir()
            yield str(room / _RAYS)
    finally:
        shutil.rmtree(room, ignore_errors=True)


def leftovers() -> list[Leftover]:
    """Folders whose lab has ended without removing them."""
    with ExitStack() as held:
        return [Leftover(room, "the Ray cluster of a lab that ended abruptly") for room in _abandoned(held)]


def clean() -> list[str]:
    """Remove these folders, and end what is left of their clusters; sentences on what was done."""
    notices = []
    with ExitStack() as held:
        for room in _abandoned(held):
            ended = _end_processes(room)
            shutil.rmtree(room, ignore_errors=True)
            processes = f" and ended {ended} of its processes" if ended else ""
            notices.append(f"Removed {room}, the Ray cluster of a pgtrial that ended abruptly{processes}.")
    return notices


def _root() -> Path:
    common = Path("/tmp")
    return common if common.is_dir() else Path(tempfile.gettempdir())


def _abandoned(held: ExitStack) -> Iterator[Path]:
    """The folders of this account that no lab holds; they are held until `held` is closed."""
    for room in sorted(_root().glob("pgt-ray-*")):
        named = _NAME.fullmatch(room.name)
        if named is None or room.is_symlink() or not room.is_dir() or room.stat().st_uid != os.geteuid():
            continue
        try:
            fcntl.flock(held.enter_context((room / _LOCK).open("rb")), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            continue
        except FileNotFoundError:
            # killed before it was locked, or about to be
            if psutil.pid_exists(int(named[1])):
                continue
        yield room


def _end_processes(room: Path) -> int:
    """End the cluster's processes; most of them end with their lab, its agents look for it every some seconds."""
    found = [process for process in psutil.process_iter() if _is_of(process, f"{room}{os.sep}")]
    for process in found:
        try:
            process.kill()
        except psutil.NoSuchProcess:
            continue
    psutil.wait_procs(found, timeout=_END_S)
    return len(found)


def _is_of(process: psutil.Process, below: str) -> bool:
    """Whether it is a process of Ray that works in the folder: its workers rename themselves, and keep their logs."""
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
