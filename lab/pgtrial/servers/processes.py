"""PostgreSQL servers as processes: found and ended by their data directory, never by name alone; their ports."""

from __future__ import annotations

import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

_PATIENCE_S = 15.0
_NAMES = ("postgres", "postmaster", "pgtrial-engine")


def stop_servers_below(directory: Path) -> int:
    """Stop at once every server whose data directory lies below `directory`; returns how many processes there were.

    A postmaster is asked first (immediate shutdown, so that it removes its shared memory); what remains is killed.
    Processes that are stopped go on first, or the postmaster would wait for them.
    """
    found = server_processes(directory)
    if not found:
        return 0
    for process in found:
        _signal(process, signal.SIGCONT)
        if _is_postmaster(process):
            _signal(process, signal.SIGQUIT)
    psutil.wait_procs(found, timeout=_PATIENCE_S if any(map(_is_postmaster, found)) else 0)
    remaining = server_processes(directory)
    for process in remaining:
        _signal(process, signal.SIGKILL)
    psutil.wait_procs(remaining, timeout=_PATIENCE_S)
    return len(found)


def server_processes(directory: Path) -> list[psutil.Process]:
    """Servers, null ones too, that work in `directory` or below: PostgreSQL's sit in their data directories."""
    wanted = directory.resolve()
    found = []
    for process in psutil.process_iter():
        if _works_below(process, wanted):
            with suppress(psutil.NoSuchProcess):
                # what the iterator has kept may be of an earlier process with this number, and signals no later one
                found.append(psutil.Process(process.pid))
    return found


def _works_below(process: psutil.Process, directory: Path) -> bool:
    try:
        if process.name() not in _NAMES:
            return False
        return Path(process.cwd().removesuffix(" (deleted)")).is_relative_to(directory)
    except psutil.Error:
        return False


def _is_postmaster(process: psutil.Process) -> bool:
    try:
        recorded = (Path(process.cwd()) / "postmaster.pid").read_text().split("\n", 1)[0]
        return recorded.strip() == str(process.pid)
    except (psutil.Error, OSError):
        return False


def _signal(process: psutil.Process, number: signal.Signals) -> None:
    with suppress(psutil.NoSuchProcess):
        process.send_signal(number)


LOOPBACK = "127.0.0.1"


@contextmanager
def reserved_port() -> Iterator[int]:
    """A TCP port of the loopback address that nobody listens on, and that the system gives to nobody else meanwhile.

    Of two that ask for SO_REUSEADDR, as PostgreSQL does, Linux lets one listen at a port that the other only has.
    """
    with socket.socket() as reserved:
        if sys.platform == "linux":
            reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        reserved.bind((LOOPBACK, 0))
        port: int = reserved.getsockname()[1]
        if sys.platform != "linux":
            reserved.close()
        yield port
