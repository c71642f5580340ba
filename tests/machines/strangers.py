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


def is_untouched(process: subprocess.Popen[bytes]) -> bool:
    found = psutil.Process(process.pid)
    return process.poll() is None and {found.status(), *(child.status() for child in found.children())} == {"sleeping"}
