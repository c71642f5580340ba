"""Background processes of a server, by their titles."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path

import psutil

from pgtrial.servers.postmaster import server_processes

PATIENCE_S = 120.0


def background(data: Path, name: str) -> psutil.Process:
    """The process of the server in this data directory whose title has this name.

    A process that has just begun has no title yet, and a server takes connections meanwhile.
    """
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        for process in server_processes(data):
            with suppress(psutil.NoSuchProcess):
                if name in " ".join(process.cmdline()):
                    return process
        time.sleep(0.02)
    raise AssertionError(f"no {name} in {data}")
