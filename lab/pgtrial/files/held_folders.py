"""Makes folders that exist while their process lives, and finds those whose process was killed.

A folder's process holds a lock on it, which ends with the process. So a folder that nobody holds was left behind, even
if another process has the same number by now.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from pgtrial.files.locks import IN_USE, open_lock, take, wait_for

_CONTENT = "c"


@dataclass(frozen=True)
class Leftover:
    """Something on this machine that no running lab holds."""

    path: Path
    what: str


@contextmanager
def held_folder(parent: Path, prefix: str = "") -> Iterator[Path]:
    """Makes a new folder that only this account can enter, and removes it at the end of the context.

    It lies in a folder of `parent` whose name begins with `prefix` and this process's number. Raises OSError.
    """
    outer = Path(tempfile.mkdtemp(prefix=f"{prefix}{os.getpid()}-", dir=parent))
    with open_lock(outer / IN_USE) as lock:
        try:
            wait_for(lock)
            (outer / _CONTENT).mkdir()
            yield outer / _CONTENT
        finally:
            # while the lock is held: otherwise another process takes the folder for one that was left behind
            shutil.rmtree(outer, ignore_errors=True)


def abandoned_folders(parent: Path, prefix: str = "") -> Iterator[Path]:
    """Yields the folders of this account that no process holds, each with all that belongs to it.

    All of them are held until the caller has treated the last one. Links, and folders of other accounts, are passed
    over. Raises OSError.
    """
    named = re.compile(rf"{re.escape(prefix)}(\d+)-\w+")
    with ExitStack() as held:
        for outer in sorted(parent.glob(f"{prefix}*")):
            match = named.fullmatch(outer.name)
            if match is not None and _is_ours(outer) and _is_free(outer, int(match[1]), held):
                yield outer


def _is_ours(outer: Path) -> bool:
    with suppress(FileNotFoundError):  # its process has just removed the folder
        status = outer.lstat()
        return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()
    return False


def _is_free(outer: Path, process: int, held: ExitStack) -> bool:
    """Returns true if no process holds the folder, which is then held."""
    try:
        if not take(held.enter_context(open_lock(outer / IN_USE, make=False))):
            return False
    except FileNotFoundError:
        locked = False
    else:
        # the content is made after the lock is taken, and removed before the lock is released
        locked = (outer / _CONTENT).exists()
    # if the process lives, a folder that was never locked may have been made a moment ago, or is being removed
    return locked or (not psutil.pid_exists(process) and outer.exists())
