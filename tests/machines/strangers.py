"""A process that is none of the lab's, whose number a file of the lab's names."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator

import psutil
import pytest

from pgtrial.model.resources import resource

SHELL = resource("machines/processes.sh", "pgtrial")


@pytest.fixture
def stranger(tmp_path) -> Iterator[subprocess.Popen[bytes]]:
    """A process with a child, whose command line has the word postgres."""
    command = ["sh", "-c", "sleep 300 & exec tail -f postgresql-notes.txt"]
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "postgresql-notes.txt").touch()
    with subprocess.Popen(command, cwd=tmp_path / "elsewhere", start_new_session=True) as process:
        while not psutil.Process(process.pid).children():
            time.sleep(0.01)
        yield process
        for each in [*psutil.Process(process.pid).children(), process]:
            each.kill()


_TOUCHED = {psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP, psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD}


def is_untouched(process: subprocess.Popen[bytes]) -> bool:
    """Whether it and its child are there, and neither is stopped."""
    found = psutil.Process(process.pid)
    children = found.children()
    return process.poll() is None and bool(children) and not _TOUCHED & {each.status() for each in (found, *children)}
