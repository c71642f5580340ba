"""Makes folders that exist as long as the process which made them runs, and finds folders of processes that were
killed.

The process holds a lock on its folder, and the kernel releases the lock when the process ends. A folder whose lock
nobody holds was therefore left behind, even if another process has the same process ID by now.
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
    """A file, directory or other object on this machine that a killed pgtrial process left behind."""

    path: Path
    what: str


@contextmanager
def held_folder(parent: Path, prefix: str = "") -> Iterator[Path]:
    """Makes a new folder that only this account can enter, and removes it at the end of the context.

    The folder is within another folder in `parent`, whose name begins with `prefix` and the ID of this process. Raises
    OSError.
    """
    outer = Path(tempfile.mkdtemp(prefix=f"{prefix}{os.getpid()}-", dir=parent))
    with open_lock(outer / IN_USE) as lock:
        try:
            wait_for(lock)
            (outer / _CONTENT).mkdir()
            yield outer / _CONTENT
        finally:
            # removed while the lock is held, or else another process could take the folder for one that was left behind
            shutil.rmtree(outer, ignore_errors=True)


def abandoned_folders(parent: Path, prefix: str = "") -> Iterator[Path]:
    """Yields the folders in `parent` that belong to this account and that no process uses any more, with all files in
    them.

    This process holds the locks of all these folders until the caller has finished with the last one. Links, and
    folders of other accounts, are skipped. Raises OSError.
    """
    named = re.compile(rf"{re.escape(prefix)}(\d+)-\w+")
    with ExitStack() as held:
        for outer in sorted(parent.glob(f"{prefix}*")):
            match = named.fullmatch(outer.name)
            if match is not None and _is_ours(outer) and _is_free(outer, int(match[1]), held):
                yield outer


def _is_ours(outer: Path) -> bool:
    with suppress(FileNotFoundError):  # the process that made the folder has just removed it
        status = outer.lstat()
        return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()
    return False


def _is_free(outer: Path, process: int, held: ExitStack) -> bool:
    """True if no process uses the folder. If the folder has a lock, this process then holds it until `held` is
    closed."""
    try:
        if not take(held.enter_context(open_lock(outer / IN_USE, make=False))):
            return False
    except FileNotFoundError:
        locked = False
    else:
        # a process makes the content after it has taken the lock, and removes it before it releases the lock
        locked = (outer / _CONTENT).exists()
    # while its process runs, a folder without a lock may be new, or the process may be removing it
    return locked or (not psutil.pid_exists(process) and outer.exists())
