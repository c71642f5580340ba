"""Processes and moments that tests and benchmarks follow: peaks of memory, processes that stand still, waiting."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

_SAMPLE_S = 0.02
_PATIENCE_S = 120.0


class Peak:
    """Follows the peak of a running process's resident memory, KiB; what a moment before its end adds is missed."""

    kib = 0

    def __init__(self, pid: int) -> None:
        self._status = Path(f"/proc/{pid}/status")
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._follow)

    def __enter__(self) -> Peak:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _follow(self) -> None:
        while not self._over.wait(_SAMPLE_S):
            try:
                peak = re.search(r"VmHWM:\s+(\d+)", self._status.read_text())
            except OSError:
                return
            self.kib = int(peak[1]) if peak else self.kib


# a small parent, since a process begins with the most memory that its parent ever had
_MEASURED = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


def peak_kib(command: Sequence[str]) -> int:
    """Runs a command to its end and returns the peak of its resident memory, KiB. The result is never below the 10 MiB
    of the parent process.
    """
    python = [sys.executable, "-S", "-c", _MEASURED, *command]
    return int(subprocess.run(python, stdout=subprocess.PIPE, text=True, check=True).stdout)


def send(processes: Iterable[psutil.Process], number: signal.Signals) -> None:
    """Send a signal to those that have not ended."""
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.send_signal(number)


@contextmanager
def stalling(processes: Callable[[], list[psutil.Process]], stall_s: float, each_s: float) -> Iterator[threading.Event]:
    """While the event is set, the processes stand still for a moment again and again."""
    wanted, ended = threading.Event(), threading.Event()

    def run() -> None:
        while not ended.wait(each_s - stall_s):
            stopped = processes() if wanted.is_set() else []
            send(stopped, signal.SIGSTOP)
            ended.wait(stall_s if stopped else 0)
            send(stopped, signal.SIGCONT)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield wanted
    finally:
        ended.set()
        thread.join()


def until(happened: Callable[[], bool], what: str, patience_s: float = _PATIENCE_S) -> None:
    """Wait for something that happens soon, however slow this machine is."""
    deadline = time.monotonic() + patience_s
    while not happened():
        assert time.monotonic() < deadline, f"it did not happen in {patience_s:.0f} s that {what}"
        time.sleep(0.02)
