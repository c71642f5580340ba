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
    """Yields a process with a child, whose command line has the word postgres, as long as the context lasts."""
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
    """Yields a process of somebody else's for a test."""
    with started_in(tmp_path / "elsewhere") as process:
        yield process


REUSED = ("boot", "born", "old")
"""The ways in which a job's record shows that its process number was given again: after another start of the machine,
to a later process, or not at all, as in records of former versions.
"""


def record_of_a_job(process: subprocess.Popen[bytes], reused: str) -> str:
    """Returns the record of a job whose process number this process has now."""
    script = f"{SHELL}echo $(this_boot) $(born {process.pid})"
    boot, born = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True).stdout.split()
    boot, born = ("other" if reused == "boot" else boot), ("1" if reused == "born" else born)
    return f"{process.pid}\n" if reused == "old" else f"{process.pid} {boot} {born}\n"


_TOUCHED = {psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP, psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD}


def is_untouched(process: subprocess.Popen[bytes]) -> bool:
    """True if the process and its child exist, and neither is stopped."""
    found = psutil.Process(process.pid)
    children = found.children()
    return process.poll() is None and bool(children) and not _TOUCHED & {each.status() for each in (found, *children)}
