"""Programs that load one server in turns: all but one are stopped, and every 250 ms another one goes on.

What disturbs the machine for longer than a turn disturbs all of them alike, so that a few rounds tell differences of
some percent where two runs, one after the other, differ by half. Each program has its own copy of the database, since
nobody else gets the locks that a stopped program holds.

A program's time is what it measured itself, without the time that it was stopped. All of the latter lies within the
former, because each program has the server to itself while it connects and at its end.
"""

from __future__ import annotations

import math
import os
import random
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import IO

from bench.programs import Failed, Ran
from pgtrial.loads.process import environment
from pgtrial.loads.target import Target

_TURN_S = 0.25
_PATIENCE_S = 60.0
"""The time by which a program may end later than expected, seconds."""


@dataclass(frozen=True)
class Turned:
    """The work of a program in its turns."""

    transactions: float
    active_s: float
    cpu_s: float

    @property
    def tps(self) -> float:
        """The throughput in the program's turns, transactions per second."""
        return self.transactions / self.active_s

    @property
    def cpu_us(self) -> float:
        """The client's own CPU, microseconds per transaction."""
        return 1e6 * self.cpu_s / self.transactions


def in_turns(
    targets: Mapping[str, Target], command: Callable[[str, int], Sequence[str]], clients: int, seconds: int
) -> dict[str, Turned]:
    """Lets the programs take turns, each with its own target, for about `seconds` each; returns the work of each.
    Raises Failed.

    `command` returns the command line of a program, by its name, for a run of a number of seconds.
    """
    connecting_s = 0.5 + clients / 100
    run_s = math.ceil(len(targets) * (connecting_s + seconds))
    with ExitStack() as stack:
        running: list[_Running] = []
        for name in random.sample(list(targets), len(targets)):
            for each in running:
                each.stop()
            output = stack.enter_context(tempfile.TemporaryFile("w+"))
            running.append(stack.enter_context(_Running(name, command(name, run_s), targets[name], output)))
            running[-1].wait(connecting_s)
        until = running[0].began + run_s
        while (left := until - time.monotonic()) >= _TURN_S * len(running):
            for each in random.sample(running, len(running)):
                _alone(each, running)
                each.wait(_TURN_S)
        for each in running:
            _alone(each, running)
            if not each.wait(left + connecting_s + _PATIENCE_S):
                raise Failed(f"{each.name} did not end after {run_s} s")
        return {each.name: each.turned() for each in running}


def _alone(one: _Running, running: Sequence[_Running]) -> None:
    for each in running:
        if each is not one:
            each.stop()
    one.go_on()


class _Running:
    """A program from its start to its end, sometimes stopped."""

    def __init__(self, name: str, command: Sequence[str], target: Target, output: IO[str]) -> None:
        self.name = name
        self._output = output
        self._process = subprocess.Popen(
            command,
            env=environment(target.environment()),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        self.began = time.monotonic()
        self._ended = os.pidfd_open(self._process.pid)
        self._stopped_at: float | None = None
        self._stopped_s = 0.0
        self._cpu_s: float | None = None

    def __enter__(self) -> _Running:
        return self

    def __exit__(self, *_: object) -> None:
        if self._cpu_s is None:
            self._process.kill()
            self._process.wait()
        os.close(self._ended)

    def stop(self) -> None:
        """Stops the program until `go_on`; does nothing if it is stopped or has ended."""
        if self._stopped_at is None and self._cpu_s is None:
            self._process.send_signal(signal.SIGSTOP)
            self._stopped_at = time.monotonic()

    def go_on(self) -> None:
        """Lets the program continue; does nothing if it is not stopped."""
        if self._stopped_at is not None:
            self._stopped_s += time.monotonic() - self._stopped_at
            self._stopped_at = None
            self._process.send_signal(signal.SIGCONT)

    def wait(self, seconds: float) -> bool:
        """Waits at most this time for the program to end; returns True if it has ended."""
        if self._cpu_s is None and select.select([self._ended], [], [], seconds)[0]:
            _, status, usage = os.wait4(self._process.pid, 0)
            self._process.returncode = os.waitstatus_to_exitcode(status)
            self._cpu_s = usage.ru_utime + usage.ru_stime
        return self._cpu_s is not None

    def turned(self) -> Turned:
        """Returns the work of a program that has ended. Raises Failed."""
        self._output.seek(0)
        text = self._output.read()
        if self._process.returncode != 0:
            raise Failed(f"{self.name} ended with status {self._process.returncode}: {text[-200:]}")
        ran = Ran(text, "", 0.0, self._cpu_s or 0.0, 0)
        active_s = ran.transactions / ran.tps - self._stopped_s
        return Turned(ran.transactions, active_s, ran.cpu_s)
