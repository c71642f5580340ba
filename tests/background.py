"""Background processes of a server, by their titles."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import psutil

from pgtrial.servers.postmaster import server_processes


def background(data: Path, name: str) -> psutil.Process:
    """The process of the server in this data directory whose title has this name."""
    for process in server_processes(data):
        with suppress(psutil.NoSuchProcess):
            if name in " ".join(process.cmdline()):
                return process
    raise AssertionError(f"no {name} in {data}")
