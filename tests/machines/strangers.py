"""A process that is none of the lab's, whose number a file of the lab's names."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from pgtrial.model.resources import resource

SHELL = resource("machines/processes.sh", "pgtrial")


@contextmanager
def started_in(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Yields a process whose command line contains the word postgres. It has a child, and lives as long as the
    context.
    """
    command = ["sh", "-c", "sleep 300 & exec tail -f postgresql-notes.txt"]
    folder.mkdir()
    (folder / "postgresql-notes.txt").touch()
    with subprocess.Popen(command, cwd=folder, start_new_session=True) as process:
        while not psutil.Process(process.pid).children():
            time.sleep(0.01)
        try:
            yield process
        finally:
            for each in [*psutil.Process(process.pid).children(), process]:
                each.kill()


@pytest.fixture
def stranger(tmp_path) -> Iterator[subprocess.Popen[bytes]]:
    """Yields a process that does not belong to pgtrial, which a test starts for itself."""
    with started_in(tmp_path / "elsewhere") as process:
        yield process


REUSED = ("boot", "born", "old")
"""How a job's record differs from the process that has its number now: the machine was started again (`boot`), the
process began later (`born`), or the record, of a former version, has nothing to compare (`old`).
"""


def record_of_a_job(process: subprocess.Popen[bytes], reused: str) -> str:
    """Returns the record of a job that had the same process number as this process, which is another one."""
    script = f"{SHELL}echo $(this_boot) $(born {process.pid})"
    boot, born = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True).stdout.split()
    boot, born = ("other" if reused == "boot" else boot), ("1" if reused == "born" else born)
    return f"{process.pid}\n" if reused == "old" else f"{process.pid} {boot} {born}\n"


_TOUCHED = {psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP, psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD}


def is_untouched(process: subprocess.Popen[bytes]) -> bool:
    """True if the process and its child still exist, and neither is stopped."""
    found = psutil.Process(process.pid)
    children = found.children()
    return process.poll() is None and bool(children) and not _TOUCHED & {each.status() for each in (found, *children)}
