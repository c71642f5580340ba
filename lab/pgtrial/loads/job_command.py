"""A job that is a program: runs it once on the lab's machine, and reports it as the engine reports a load.

The program has the PG* variables of its server.
"""

from __future__ import annotations

import collections
import json
import os
import shutil
import signal
import subprocess
import threading
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self

import psutil

from pgtrial.files.trust import refusal_to_run_command
from pgtrial.loads.engine import EngineRun
from pgtrial.loads.events import Event, Summary, Times
from pgtrial.loads.load_run import Inbox
from pgtrial.loads.process import environment
from pgtrial.loads.target import Target
from pgtrial.model import marks
from pgtrial.model.errors import ArmError, TrialError

_TICK_S = 1.0
_MOST_OUTPUT = 16 * 2**20
"""The most characters of a program's output that are kept, so that one which never stops printing takes no memory."""
_MOST_LINES = 10_000
"""The most lines of a program's standard error in which numbers are looked for."""
_END_S = 10.0
_RUN = "PGTRIAL_JOB"
"""The variable in the environment of a job's processes that says to which run of the job they belong."""


def command_environment(target: Target) -> dict[str, str]:
    """Returns the environment of a program. On its PATH the programs of the server's own installation come first."""
    variables = environment(target.environment())
    if target.programs is not None:
        variables["PATH"] = f"{target.programs}{os.pathsep}{variables.get('PATH', os.defpath)}"
    return variables


def missing_program(words: Sequence[str], env: Mapping[str, str]) -> str | None:
    """Returns the first word of a command if it is no program that can be run, else None."""
    return words[0] if shutil.which(words[0], path=env.get("PATH")) is None else None


def end_programs(variable: str, value: str) -> None:
    """Ends the processes of a job and the groups that they are in, by force.

    They are found by this value of this variable in their environment, whatever parent or session they have by now.
    """
    groups = {os.getpgid(0)}
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if process.uids().real != os.geteuid() or process.environ().get(variable) != value:
                continue
            group = os.getpgid(process.pid)
            if group not in groups:
                groups.add(group)
                os.killpg(group, signal.SIGKILL)
            process.kill()
            process.wait(_END_S)


class CommandRun(EngineRun):
    """One run of a program. Its time is measured from its start to its end."""

    def __init__(
        self,
        words: Sequence[str],
        target: Target,
        *,
        events_file: Path,
        inbox: Inbox | None,
        keeps_output: bool = False,
    ) -> None:
        """Prepares the run, whose events arrive in the `inbox` as those of an engine do. With `keeps_output`, what the
        program prints is kept, to be read when it has ended."""
        super().__init__([], {}, events_file=events_file, inbox=inbox)
        self._words = words
        self._run = uuid.uuid4().hex
        self._env = {**command_environment(target), _RUN: self._run}
        self._begin = self._start
        self._began = 0.0
        self._keeps_output = keeps_output
        self._printed: list[str] = []
        self._characters = 0
        if keeps_output:  # its standard error may have the numbers as well
            self._tail = collections.deque(maxlen=_MOST_LINES)

    def __enter__(self) -> Self:
        super().__enter__()
        if self._keeps_output:
            reader = threading.Thread(target=self._keep, args=(self._process.stdout,), daemon=True)
            self._readers.append(reader)
            reader.start()
        return self

    def output(self) -> str:
        """Returns what the program has printed on its standard output, and then what it has on its standard error, once
        it has ended. Raises TrialError if that is too much to be kept."""
        if self._characters > _MOST_OUTPUT:
            raise TrialError(
                f"{self._words[0]} printed more than {_MOST_OUTPUT // 2**20} MB, in which no number is looked for; let "
                "it print less, or write its numbers into a file"
            )
        return "".join([*self._printed, *(f"{line}\n" for line in self._tail)])

    def _keep(self, stream: Iterable[str]) -> None:
        for line in stream:
            self._characters += len(line)
            if self._characters <= _MOST_OUTPUT:
                self._printed.append(line)

    @property
    def maker(self) -> str:
        """The program of the job, for sentences about its end."""
        return f"the program {self._words[0]!r}"

    def interrupt(self) -> None:
        """Asks the program to stop, and all that it has started."""
        self._signal(signal.SIGINT)

    def kill(self) -> None:
        """Kills the program, and all that it has started."""
        self._signal(signal.SIGKILL)

    def last_words(self) -> str:
        """Returns the last line of the program's standard error, or the signal that ended it."""
        status = self._process.poll()
        if status is not None and status < 0:
            return f"it was ended by {signal.Signals(-status).name}"
        return self._tail[-1] if self._tail else "it said nothing"

    def _end_what_it_left(self) -> None:
        end_programs(_RUN, self._run)

    def _start(self) -> subprocess.Popen[str]:
        self._began = time.monotonic()
        program = shutil.which(self._words[0], path=self._env.get("PATH"))
        why = refusal_to_run_command(self._words, Path.cwd(), Path(program) if program is not None else None)
        if why is not None:
            raise ArmError(f"{marks.key('load.job', 'command')}: {why}")
        try:
            return subprocess.Popen(
                self._words,
                executable=program,
                env=self._env,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE if self._keeps_output else subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                encoding="utf-8",
                errors="replace",
                process_group=0,
            )
        except OSError as error:
            raise ArmError(
                f"{marks.key('load.job', 'command')}: {self._words[0]} cannot be run: {error.strerror}"
            ) from None

    def _signal(self, number: int) -> None:
        if self._process.poll() is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, number)

    def _read_events(self, stream: Iterable[str]) -> None:
        """Reads events that the lab makes itself, since the program writes none."""
        super()._read_events(f"{json.dumps(event)}\n" for event in self._events())

    def _wait(self, ended: list[float], over: threading.Event) -> None:
        """Waits for the end of the program without a time limit: with one, Python would look again and again."""
        self._process.wait()
        ended.append(time.monotonic())
        over.set()

    def _events(self) -> Iterator[Event]:
        over = threading.Event()
        ended: list[float] = []
        threading.Thread(target=self._wait, args=(ended, over), daemon=True).start()
        yield {"event": "connected", "clients": 1, "connect_s": 0.0}
        yield {"event": "phase", "phase": "measure"}
        for second in range(10**9):
            if over.wait(max(0.0, self._began + (second + 1) * _TICK_S - time.monotonic())):
                break
            yield {"event": "tick", "phase": "measure", "second": second, "seconds": 1.0, "transactions": 0}
        took_s, status = ended[0] - self._began, self._process.returncode
        yield {"event": "done", "status": status, "measure": _summary(took_s, committed=int(status == 0))}


def _summary(took_s: float, *, committed: int) -> Summary:
    """Returns the measured part in the form of the engine's summaries."""
    us = 1e6 * took_s
    latency: Times = {"mean": us, "min": us, "p50": us, "p90": us, "p95": us, "p99": us, "p99.9": us, "max": us}
    latency["stddev"] = 0.0
    return {
        "duration_s": took_s,
        "transactions": committed,
        "failures": {},
        "tps": committed / took_s,
        "latency_us": latency if committed else None,
    }
