"""Runs a job that is a program, once, on the lab's machine, and reports it with the same events as a load of the
engine.

The environment of the program has the PG* variables of its server.
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
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import psutil

from pgtrial.files.trust import refusal_to_run_command
from pgtrial.loads.engine import EngineRun
from pgtrial.loads.events import Event, Summary, Times
from pgtrial.loads.load_run import Inbox
from pgtrial.loads.process import environment
from pgtrial.loads.target import Target
from pgtrial.model.errors import ArmError, TrialError
from pgtrial.model.quoting import quoted

_TICK_S = 1.0
_MOST_OUTPUT = 16 * 2**20
"""The largest number of characters that are kept of a program's output, so that a program that never stops printing
does not fill the memory."""
_MOST_LINES = 10_000
"""The largest number of lines of a program's standard error in which pgtrial searches for the numbers of a job."""
_END_S = 10.0
_RUN = "PGTRIAL_JOB"
"""The environment variable whose value identifies the run of a job to which a process belongs. Child processes inherit
it."""


@dataclass(frozen=True)
class JobProgram:
    """The program that is the job of an arm."""

    words: Sequence[str]
    """The program and its arguments."""
    key: str
    """The key of the study file that has the program, as a mark for messages."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Further environment variables of the program."""


def command_environment(target: Target) -> dict[str, str]:
    """Returns the environment for a program of the user: the PG* variables of the server, and a PATH on which the
    programs of the server's own installation come first."""
    variables = environment(target.environment())
    if target.programs is not None:
        variables["PATH"] = f"{target.programs}{os.pathsep}{variables.get('PATH', os.defpath)}"
    return variables


def missing_program(words: Sequence[str], env: Mapping[str, str]) -> str | None:
    """Returns the first word of a command if it does not name an executable program; None if it does."""
    return words[0] if shutil.which(words[0], path=env.get("PATH")) is None else None


def end_programs(variable: str, value: str) -> None:
    """Kills the processes of a job whose program runs or has left processes behind, and the process groups that they
    are in.

    The function finds the processes by the variable in their environment that has this value, whatever parent or
    session they have by now.
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
    """One run of a job's program. The measured time is that from the start of the program to its end."""

    def __init__(
        self,
        program: JobProgram,
        target: Target,
        *,
        events_file: Path,
        inbox: Inbox | None,
        keeps_output: bool = False,
    ) -> None:
        """Prepares the run without starting it. Its events arrive in `inbox`, like those of an engine. With
        `keeps_output`, pgtrial keeps what the program prints, so that `output` can return it later."""
        super().__init__([], {}, events_file=events_file, inbox=inbox)
        self._program, self._words = program, program.words
        self._run = uuid.uuid4().hex
        self._env = {**command_environment(target), **program.variables, _RUN: self._run}
        self._begin = self._start
        self._began = 0.0
        self._keeps_output = keeps_output
        self._printed: list[str] = []
        self._characters = 0
        if keeps_output:  # the numbers may be printed on standard error too
            self._tail = collections.deque(maxlen=_MOST_LINES)

    def __enter__(self) -> Self:
        super().__enter__()
        if self._keeps_output:
            reader = threading.Thread(target=self._keep, args=(self._process.stdout,), daemon=True)
            self._readers.append(reader)
            reader.start()
        return self

    def output(self) -> str:
        """Returns the standard output of the ended program, followed by its standard error. Raises TrialError if the
        output is longer than pgtrial keeps."""
        if self._characters > _MOST_OUTPUT:
            raise TrialError(
                f"{self._words[0]} printed more than {_MOST_OUTPUT // 2**20} MB, too much for pgtrial to search for "
                "numbers; make it print less, or write its numbers into a file"
            )
        return "".join([*self._printed, *(f"{line}\n" for line in self._tail)])

    def _keep(self, stream: Iterable[str]) -> None:
        for line in stream:
            self._characters += len(line)
            if self._characters <= _MOST_OUTPUT:
                self._printed.append(line)

    @property
    def maker(self) -> str:
        """The program of the job, as the subject of sentences about the end of the load."""
        return f"the program {quoted(self._words[0])}"

    def interrupt(self) -> None:
        """Sends SIGINT to the program and to all processes of its group."""
        self._signal(signal.SIGINT)

    def kill(self) -> None:
        """Sends SIGKILL to the program and to all processes of its group."""
        self._signal(signal.SIGKILL)

    def last_words(self) -> str:
        """Returns the last line of the program's standard error, or a sentence with the signal that killed it."""
        status = self._process.poll()
        if status is not None and status < 0:
            return f"it was ended by the signal {signal.Signals(-status).name}"
        return self._tail[-1] if self._tail else "it wrote no message"

    def _end_what_it_left(self) -> None:
        end_programs(_RUN, self._run)

    def _start(self) -> subprocess.Popen[str]:
        self._began = time.monotonic()
        program = shutil.which(self._words[0], path=self._env.get("PATH"))
        why = refusal_to_run_command(self._words, Path.cwd(), Path(program) if program is not None else None)
        if why is not None:
            raise ArmError(f"{self._program.key}: {why}")
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
            raise ArmError(f"{self._program.key}: {self._words[0]} cannot be run: {error.strerror}") from None

    def _signal(self, number: int) -> None:
        if self._process.poll() is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, number)

    def _read_events(self, stream: Iterable[str]) -> None:
        """Puts the events of the run into its inbox. The lab makes these events itself, since the program writes none,
        so the argument `stream` is not used."""
        super()._read_events(f"{json.dumps(event)}\n" for event in self._events())

    def _wait(self, ended: list[float], over: threading.Event) -> None:
        """Waits for the end of the program without a time limit: with a limit, Python would poll the process. Then
        notes the time in `ended` and sets `over`."""
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
    """Returns the totals of a job that took `took_s` seconds, in the form in which the engine reports a measured
    phase."""
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
