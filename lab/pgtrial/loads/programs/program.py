"""Runs a client program as a process. The program runs a batch of operations for each token (a line such as `go 3`)
that it reads, and answers with one line of JSON.

The lab writes the token `go 3` to the program's standard input; the program runs its third batch and writes `{"batch":
3, "ms": 12.3, "operations": 1000}` to its standard output. The first line of the program may give its name:
`{"program": "psycopg", "version": "3.2.1"}`. The program ends when its standard input is closed.
"""

from __future__ import annotations

import collections
import json
import math
import os
import queue
import signal
import subprocess
import threading
import time
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, NoReturn, Self

from pgtrial.loads.process import TAIL_LINES, environment, last_complaint
from pgtrial.loads.target import Target
from pgtrial.machines.interrupt import held_off
from pgtrial.model.errors import TrialError
from pgtrial.model.printable import printable
from pgtrial.model.quoting import quoted
from pgtrial.model.study.programs import words_of
from pgtrial.model.study.servers import Server
from pgtrial.model.units import format_duration, shortened
from pgtrial.store.programs import program_path

START_LIMIT_S = 60.0
"""The time limit, in seconds, for a program to start and to run its first batch, which is not measured."""
BATCH_LIMIT_S = 30.0
"""The time limit for each later batch, in seconds."""

_END_S = 5.0
_LONGEST_LINE = 65_536
"""The longest line that a program may write, in bytes."""
_LINES = 16
"""The number of lines of the program that the lab keeps before it needs them. A program that writes more lines has to
wait until the lab has used some of them."""
_SHOWN = 120
"""The length to which a message shortens a line, in characters."""
_MOST_OPERATIONS = 10**12
_TOO_MUCH, _ROUNDING_S = 1.02, 0.002
"""The tolerance for the time that a program reports for a batch: a factor, and seconds. The report is rejected if its
time exceeds the time that the lab measured, multiplied by the factor, plus the seconds."""
_LINE = '{{"batch": {number}, "ms": 12.3, "operations": 1000}}'


@dataclass(frozen=True)
class ProgramOrder:
    """The information that is needed to start a client program: its command, the directory in which it runs, and the
    address of its server."""

    command: str
    directory: Path
    env: Mapping[str, str] = field(repr=False)
    """The PG* variables with which the program finds its server, with the password."""


def program_order(server: Server, target: Target) -> ProgramOrder:
    """Returns what is needed to start the client program of an arm: the command, the directory, and the PG* variables
    of the arm's server. The arm must have a client program."""
    assert server.command is not None
    return ProgramOrder(server.command, Path(server.command_directory or ""), target.environment())


@dataclass(frozen=True)
class Batch:
    """One batch of operations of a client program: the time and the number of operations that the program reports for
    the batch, and the begin and end of the batch as the lab measured them (time.monotonic())."""

    claimed_s: float
    operations: int
    begin: float
    end: float

    @property
    def passed_s(self) -> float:
        """The time, in seconds, from the moment at which the lab wrote the token to the program until it read the
        program's answer."""
        return self.end - self.begin


class Program:
    """A client program as a process that runs batches. As a context manager it leaves no process behind."""

    def __init__(self, order: ProgramOrder) -> None:
        self._order = order
        self.command = order.command
        self._tail: collections.deque[str] = collections.deque(maxlen=TAIL_LINES)
        self._lines: queue.Queue[tuple[float, bytes]] = queue.Queue(_LINES)
        """The lines of the program's standard output, each with the time at which it was read. An empty line marks the
        end of the output."""
        self._readers: list[threading.Thread] = []
        self._process: subprocess.Popen[bytes]
        self._token = ""
        self._number = 0
        self._has_spoken = False
        self.name: str | None = None
        """The name and version that the program printed in its first line, such as `psycopg 3.2.1`; None if it has
        printed no name."""

    def __enter__(self) -> Self:
        """Starts the program. Raises TrialError if that is not possible."""
        program, *arguments = words_of(self._order.command)
        path = program_path(program, self._order.directory)
        if path is None:
            self._fail("the program does not exist any more; install it, or correct the command")
        with ExitStack() as on_failure:
            with held_off():
                try:
                    self._process = subprocess.Popen(
                        [str(path), *arguments],
                        cwd=self._order.directory,
                        env=environment(self._order.env),
                        stdin=subprocess.PIPE,
                        stdout=subprocess.PIPE,
                        stderr=subprocess.PIPE,
                        process_group=0,
                    )
                except OSError as error:
                    self._fail(
                        f"it cannot be started: {error.strerror}; correct the command, or make the file executable"
                    )
                on_failure.callback(self.__exit__)
                self._readers = [
                    threading.Thread(target=self._read_lines, args=(self._process.stdout,), daemon=True),
                    threading.Thread(target=self._read_messages, args=(self._process.stderr,), daemon=True),
                ]
                for reader in self._readers:
                    reader.start()
            on_failure.pop_all()
        return self

    def __exit__(self, *raised: object) -> None:
        self._end_input()
        if raised and raised[0] is None:
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_END_S)
        self.kill()
        self._process.wait()
        while any(reader.is_alive() for reader in self._readers):
            with suppress(queue.Empty):  # a reader thread may be waiting because the queue is full
                self._lines.get(timeout=0.01)
        for stream in (self._process.stdout, self._process.stderr):
            if stream is not None:
                stream.close()

    @property
    def label(self) -> str:
        """The phrase for the program in messages, such as `the client program 'node a.js'`."""
        return f"the client program {quoted(shortened(self.command, _SHOWN))}"

    @property
    def pid(self) -> int:
        """The process id of the program."""
        return self._process.pid

    def kill(self) -> None:
        """Kills the program and all processes of its group."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def run_batch(self, limit_s: float = BATCH_LIMIT_S) -> Batch:
        """Makes the program run one batch. Raises TrialError if it does not answer in time, or if its answer is not a
        valid report of the batch."""
        self._number += 1
        self._token = f"go {self._number}"
        if self._lines.qsize():
            _, early = self._lines.get()
            if not early:
                self._fail_ended()
            if self._has_spoken or not self._greets(early):
                self._fail(
                    "it wrote more than one line for a token; write one line for each batch, and then wait for the "
                    "next token"
                )
        begin = time.monotonic()
        with suppress(BrokenPipeError):  # if the program has ended, the error that is raised below says why
            assert self._process.stdin is not None
            self._process.stdin.write(f"{self._token}\n".encode())
            self._process.stdin.flush()
        end, line = self._next_line(begin + limit_s, limit_s)
        if not self._has_spoken and self._greets(line):
            end, line = self._next_line(begin + limit_s, limit_s)
        self._has_spoken = True
        return self._batch(line, begin, end)

    def _next_line(self, deadline: float, limit_s: float) -> tuple[float, bytes]:
        try:
            end, line = self._lines.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            self._fail(
                f"it has not answered the token `{self._token}` for {format_duration(limit_s)}{self._words()}; write a "
                "line after each batch and flush it, or make batches shorter"
            )
        if not line:
            self._fail_ended()
        return end, line

    def _greets(self, line: bytes) -> bool:
        """True if the program's first line has its name and not the report of a batch. The name is then stored in
        `name`."""
        self._has_spoken = True
        with suppress(ValueError, RecursionError):
            answer = json.loads(line)
            if isinstance(answer, dict) and isinstance(answer.get("program"), str) and "batch" not in answer:
                version = answer.get("version")
                words = [answer["program"], *([str(version)] if isinstance(version, str | int | float) else [])]
                self.name = shortened(printable(" ".join(" ".join(words).split())), _SHOWN) or None
                return True
        return False

    def _batch(self, line: bytes, begin: float, end: float) -> Batch:
        """Returns the batch that a line reports. Raises TrialError if the line is not a valid report."""
        wanted = f"write {_LINE.format(number=self._number)} for it, and everything else to standard error"
        if len(line) > _LONGEST_LINE:
            self._fail(f"its answer to `{self._token}` is longer than {_LONGEST_LINE:,} bytes; {wanted}")
        try:
            answer = json.loads(line)
        except (ValueError, RecursionError):
            self._fail(f"its answer to `{self._token}` is not JSON, {self._shown(line)}; {wanted}")
        if not isinstance(answer, dict):
            self._fail(f"its answer to `{self._token}` is not a JSON object, {self._shown(line)}; {wanted}")
        problem = self._objection(answer, end - begin)
        if problem is not None:
            self._fail(f"its answer to `{self._token}`, {self._shown(line)}: {problem}")
        return Batch(answer["ms"] / 1000, answer["operations"], begin, end)

    def _objection(self, answer: dict[str, Any], passed_s: float) -> str | None:
        """Returns what is wrong with the fields of the program's report `answer` and how to correct it; None if nothing
        is wrong. `passed_s` is the time that the lab measured for the batch."""
        for name in ("batch", "ms", "operations"):
            if name not in answer:
                return f'it has no "{name}"; write {_LINE.format(number=self._number)}'
        batch, ms, operations = answer["batch"], answer["ms"], answer["operations"]
        if not _is_whole(batch) or batch != self._number:
            return f"batch has to be the number of the token, {self._number}"
        if not _is_whole(operations) or not 1 <= operations <= _MOST_OPERATIONS:
            return f"operations has to be a whole number from 1 to {_MOST_OPERATIONS:,}; count what the batch did"
        if isinstance(ms, bool) or not isinstance(ms, int | float) or not 0 < ms < math.inf:
            return "ms has to be a number above 0; write the milliseconds that the batch took"
        if ms / 1000 > _TOO_MUCH * passed_s + _ROUNDING_S:
            return (
                f"it claims {ms:,.3f} ms, but only {1000 * passed_s:,.3f} ms passed from the token to the answer; "
                "write the elapsed time of the batch, not the sum of the times of several connections"
            )
        return None

    def _shown(self, line: bytes) -> str:
        return quoted(shortened(self._masked(line[: 4 * _SHOWN].decode(errors="replace").strip()), _SHOWN))

    def _masked(self, text: str) -> str:
        """Returns a text from the program in which the password is masked, if it has one."""
        password = self._order.env.get("PGPASSWORD")
        return printable(text.replace(password, "***") if password else text)

    def _words(self) -> str:
        """Returns the last error message that the program wrote to its standard error, as the end of a sentence; "" if
        there is none."""
        complaint = last_complaint([line for line in self._tail if line.strip()])
        return "" if complaint is None else f"; its last message: {shortened(self._masked(complaint.strip()), 300)}"

    def _fail_ended(self) -> NoReturn:
        self._end_input()  # the program may be waiting for a token
        for reader in self._readers:
            reader.join(_END_S)
        try:
            status = self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self._fail(f"it closed its standard output before it answered `{self._token}`{self._words()}; keep it open")
        how = f"was killed by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"
        words = self._words() or "; it wrote nothing to standard error"
        self._fail(f"it {how} before it answered `{self._token}`{words}")

    def _fail(self, problem: str) -> NoReturn:
        raise TrialError(f"{self.label}: {problem}")

    def _end_input(self) -> None:
        with suppress(BrokenPipeError):
            if self._process.stdin is not None:
                self._process.stdin.close()

    def _read_lines(self, stream: IO[bytes]) -> None:
        try:
            while line := stream.readline(_LONGEST_LINE + 1):
                if line.strip():
                    self._lines.put((time.monotonic(), line))
        finally:
            self._lines.put((time.monotonic(), b""))

    def _read_messages(self, stream: IO[bytes]) -> None:
        while line := stream.readline(_LONGEST_LINE):
            self._tail.append(line[: 4 * _SHOWN].decode(errors="replace"))


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
