"""Manages the folder of a Ray cluster that was started for one run, and removes what is left of such clusters if their
lab was killed.

The folder is in /tmp, since the paths of the sockets in it may have at most 107 bytes (unix(7)). The lab that uses it
holds a lock on it.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from pgtrial.files.held_folders import Leftover, abandoned_folders, held_folder

ROOT = Path("/tmp") if Path("/tmp").is_dir() else Path(tempfile.gettempdir())
"""The directory that contains the folders of all labs."""

_PREFIX = "pgt-ray-"
_END_S = 5.0
_ROUNDS = 10
"""The number of times that the search for processes is repeated: a process that is about to be killed may start another
one."""


@contextmanager
def scratch() -> Iterator[str]:
    """Creates a new folder for the files of a Ray cluster, which is removed at the end of the context."""
    # Ray makes its own folder accessible to all accounts; the folder around it stays private
    with held_folder(ROOT, _PREFIX) as folder:
        yield str(folder)


def leftovers() -> list[Leftover]:
    """Returns the folders that belonged to labs which have ended without removing them, for instance because they were
    killed."""
    return [
        Leftover(folder, "the Ray cluster of a lab that ended abruptly") for folder in abandoned_folders(ROOT, _PREFIX)
    ]


def clean() -> list[str]:
    """Removes the folders of labs that were killed, and kills the processes that are left of their clusters. Returns
    sentences that say what was done."""
    notices = []
    for folder in abandoned_folders(ROOT, _PREFIX):
        ended = _end_processes(folder)
        shutil.rmtree(folder, ignore_errors=True)
        processes = f" and ended {ended} of its processes" if ended else ""
        notices.append(f"Removed {folder}, the Ray cluster of a pgtrial that ended abruptly{processes}.")
    return notices


def _end_processes(folder: Path) -> int:
    """Kills the processes of a cluster, and returns their number. Most of these processes check regularly whether the
    lab still runs, and end by themselves some seconds after it."""
    ended: set[psutil.Process] = set()
    for _ in range(_ROUNDS):
        processes = [process for process in psutil.process_iter() if _is_of(process, f"{folder}{os.sep}")]
        if not processes:
            break
        for process in processes:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(processes, timeout=_END_S)
        ended.update(processes)
    return len(ended)


def _is_of(process: psutil.Process, below: str) -> bool:
    """True if a process belongs to Ray and works in the folder `below`. Ray's workers change their command lines, but
    keep their log files open."""
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
