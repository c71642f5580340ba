"""Runs the load engine as a process: starts it with the options that a person would type, and reads the JSON Lines
events that it writes."""

from __future__ import annotations

import collections
import json
import os
import queue
import re
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, Self, cast

from pgtrial.loads.events import Event, Summary, Tick
from pgtrial.loads.load_run import Inbox, LoadRun
from pgtrial.loads.process import TAIL_LINES, begun, engine_path, finished, last_words, lines_of, starting
from pgtrial.machines.interrupt import held_off
from pgtrial.machines.machine import wait_or_kill
from pgtrial.model.errors import StudyError, TrialError
from pgtrial.model.quoting import quoted
from pgtrial.store.files import cannot_write

PROTOCOL = 2
"""The version of the event protocol that this version of the lab reads."""

PHASES = ("warmup", "measure")
"""The phases of a load. Transactions that are still running when the measured time is over are counted in neither of
the two."""

ENGINE_GRACE_S = 60.0
"""The time, in seconds, that pgtrial waits for an engine in addition to the lengths of its warm-up and its measured
phase. The engine needs it to connect and to finish its last transactions."""

_STOP_GRACE_S = 5.0
_NOTICE_S = 0.2
_HELP_TIMEOUT_S = 30.0
_PROGRAM = re.compile(r"((pgbench|pgtrial-engine replay): error|FATAL): ")
"""Matches the prefix of an error message of the engine, such as `pgbench: error: `."""

FrontEnd = Literal["pgbench", "sysbench", "tasks", "order-entry", "replay", "suite"]


def refusal_by_sysbench(test: str, options: Sequence[str], env: Mapping[str, str]) -> str | None:
    """Returns the engine's error message about the options or the script of a sysbench test; None if the engine accepts
    them."""
    try:
        with starting() as engine:
            command = [engine, "sysbench", test, *options, "help"]
            done = finished(command, env, stderr=subprocess.STDOUT, timeout=_HELP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        return (
            f"the script did not return within {_HELP_TIMEOUT_S:.0f}s; it must do no work outside of its functions, "
            "such as event()"
        )
    lines = [line.strip() for line in done.stdout.splitlines() if line.strip()]
    # a test without a help command says so only after the engine has accepted the options, and bulk_insert only warns
    # about unknown options
    ignored = next((line for line in lines if "has no option" in line), None)
    if ignored is not None or done.returncode == 0 or any("'help' command" in line for line in lines):
        return ignored and ignored.removeprefix("WARNING: ")
    return next((line for line in lines if not line.startswith("sysbench ")), "the engine ended without a message")


@dataclass(frozen=True)
class Example:
    """One recorded execution of a statement template (a statement in which values are left open), as its client sent
    it. Literals are part of the text, and values of parameters are in `values`."""

    text: str
    values: Sequence[str | None]


def recorded_examples(capture: Path, templates: Sequence[int]) -> dict[int, Example]:
    """Returns an example for each of these statement templates (statements that differ only in values) of a capture, by
    the template's number. The example is the text and the values of the first recorded execution that did not fail.
    Raises StudyError with the engine's message."""
    numbers = ",".join(map(str, templates))
    with begun(["replay", str(capture), f"--examples={numbers}"], {}, stderr=subprocess.PIPE) as engine:
        output, complaint = engine.communicate()
    if engine.returncode != 0:
        raise StudyError(f"the engine cannot read the capture: {_PROGRAM.sub('', complaint.strip())}")
    examples = [json.loads(line) for line in output.splitlines()]
    return {example["template"]: Example(example["text"], example["values"]) for example in examples}


class NotInTime(TrialError):
    """The error for a load that was still running at its deadline and that the lab therefore ended."""


class EngineRun(LoadRun):
    """One process of the engine, whose events can be read. As a context manager it leaves no process behind."""

    def __init__(
        self,
        command: Sequence[str],
        env: Mapping[str, str],
        *,
        events_file: Path = Path(os.devnull),
        inbox: Inbox | None = None,
        fed: bool = False,
    ):
        """Prepares the process without starting it. `command` has the engine's arguments, and `env` the PG* variables
        of the server.

        `fed` is true if the caller will write to the process's standard input.
        """
        super().__init__(events_file, inbox)
        stdin = subprocess.PIPE if fed else subprocess.DEVNULL
        self._begin: Callable[[], subprocess.Popen[str]] = partial(
            begun, command, env, stdin=stdin, stderr=subprocess.PIPE
        )
        self._tail: collections.deque[str] = collections.deque(maxlen=TAIL_LINES)
        self._readers: list[threading.Thread] = []
        self._process: subprocess.Popen[str]

    def __enter__(self) -> Self:
        with ExitStack() as on_failure:
            with held_off():
                self._process = self._begin()
                on_failure.callback(self.__exit__)
                messages = lines_of(self._process.stderr)
                self._readers = [
                    threading.Thread(target=self._read_events, args=(self._process.stdout,), daemon=True),
                    threading.Thread(target=self._tail.extend, args=(messages,), daemon=True),
                ]
                for reader in self._readers:
                    reader.start()
            on_failure.pop_all()
        return self

    def __exit__(self, *raised: object) -> None:
        if self._process.poll() is None:
            self.interrupt()
            wait_or_kill(self._process, _STOP_GRACE_S)
        self._end_what_it_left()
        for reader in self._readers:
            reader.join()
        for stream in (self._process.stdout, self._process.stderr):
            if stream is not None:
                stream.close()
        self.end_input()

    @property
    def notice_s(self) -> float:
        """The lead time in seconds: the engine must know its start time at least this long before it starts."""
        return _NOTICE_S

    def begin_at(self, at: float) -> None:
        """Sends the start time, a value of time.monotonic(), to an engine that waits for it.

        The engine gets the time on this machine's monotonic clock, because somebody may set the wall clock meanwhile.
        """
        self.feed(f"monotonic:{at - time.monotonic() + time.clock_gettime(time.CLOCK_MONOTONIC):.6f}\n")

    @property
    def pid(self) -> int | None:
        """The process id of the engine that makes the load; None if several engines on other machines make the load."""
        return self._process.pid

    def feed(self, text: str) -> None:
        """Writes a text to the standard input of the process. If the process was started without input or has ended,
        the text is lost."""
        stream = self._process.stdin
        if stream is not None and not stream.closed:
            with suppress(BrokenPipeError):
                stream.write(text)
                stream.flush()

    def end_input(self) -> None:
        """Closes the standard input of the process, so that it knows that no more input will come."""
        stream = self._process.stdin
        if stream is not None:
            with suppress(BrokenPipeError):
                stream.close()

    def events(self, deadline: float) -> Iterator[Event]:
        """Yields the events of this engine until it closes its output, or until `deadline` (a value of
        time.monotonic()). Unlike events_of, it raises a TrialError in place of yielding it."""
        for _, event in events_of([self], deadline):
            if isinstance(event, TrialError):
                raise event
            if event is not None:
                yield event

    def interrupt(self) -> None:
        """Asks the engine to stop. The engine still reports what it has measured."""
        if self._process.poll() is None:
            # SIGTERM, because a shell that runs a script makes its background programs ignore SIGINT, and the engine
            # keeps ignoring it
            self._process.terminate()

    def kill(self) -> None:
        """Kills the process."""
        self._process.kill()

    def finish(self) -> int:
        """Waits until the process has ended. Returns its exit status, or the negative number of the signal that killed
        it."""
        status = wait_or_kill(self._process, _STOP_GRACE_S)
        self._end_what_it_left()
        for reader in self._readers:
            reader.join(_STOP_GRACE_S)
        return status

    def _end_what_it_left(self) -> None:
        """Ends child processes that the process left running and that may hold its output open. An engine leaves none;
        subclasses for other programs override this."""

    def last_words(self) -> str:
        """Returns why the engine ended, in one sentence: the last error message that it printed, or the signal that
        killed it."""
        return last_words(self._tail, self._process.poll())

    def message_about(self, name: str) -> str | None:
        """Returns the first of the process's last messages that contains `name`, without the program's name at its
        beginning; None if no message contains `name`."""
        message = next((line for line in self._tail if name in line), None)
        return message and _PROGRAM.sub("", message)

    def _read_events(self, stream: Iterable[str]) -> None:
        try:
            # the copy is written line by line, so that other programs can follow the load
            with self._events_file.open("a", encoding="utf-8", buffering=1) as copy:
                for line in stream:
                    copy.write(line)
                    self.inbox.put((self, line))
        except OSError as error:
            self.copy_error = cannot_write(self._events_file, error)
        finally:
            self.inbox.put((self, None))


AT_A_WORD = "--start-at=-"
"""The engine's option for loads that must start at a common time: the engine writes the event `ready` when all clients
are connected, and then waits until the lab sends the start time."""
PAUSE = "--pause"
"""The engine's option to wait, before each query of a suite, until the lab sends a line on its standard input."""


def events_of(runs: Sequence[LoadRun], deadline: float) -> Iterator[tuple[LoadRun, Event | TrialError | None]]:
    """Yields the events of loads that share an inbox (a queue of event lines), as they arrive, each with its load. An
    event of None means that the load's output has ended.

    `deadline` is a value of time.monotonic(). Loads that still run at the deadline are first asked to stop, which makes
    them report what they measured, and are killed if they do not end. In both cases, and for a line that is not an
    event, a TrialError is yielded in place of an event. Raises StudyError for an engine that uses another version of
    the protocol, and StoreError if the copy of the events cannot be written.
    """
    running, overdue = list(runs), False
    while running:
        try:
            run, line = running[0].inbox.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            if overdue:
                for late in running:
                    late.kill()
                    yield late, NotInTime(f"{late.maker} did not finish in time and was killed")
                return
            for late in running:
                late.interrupt()
            overdue, deadline = True, time.monotonic() + _STOP_GRACE_S
            continue
        if run not in running:  # the caller gets no more events of this load, which has written another line
            continue
        if line is None:
            if run.copy_error is not None:
                raise run.copy_error
            running.remove(run)
            yield run, NotInTime(f"{run.maker} did not finish in time and was stopped") if overdue else None
            continue
        try:
            event = _parse(line)
        except TrialError as error:
            running.remove(run)
            yield run, error
        else:
            yield run, event


def tick_s(tick: Tick, clients: int) -> float:
    """Returns the seconds that a tick (the measurements of one second) covers or, if loads alternate in slices, the
    mean time for which a client of this load was active."""
    if "slice" in tick:
        return float(tick["slice"]["client_s"]) / max(1, clients)
    return float(tick.get("seconds", 1.0))


def summary_s(summary: Summary, clients: int) -> float:
    """Returns the length of a phase in seconds or, if loads alternate in slices, the mean time for which a client of
    this load was active."""
    if "client_s" in summary:
        return float(summary["client_s"]) / max(1, clients)
    return float(summary["duration_s"])


def load_command(front_end: FrontEnd, options: Sequence[str], env: Mapping[str, str]) -> list[str]:
    """Returns the engine's arguments for a load on the server that the PG* variables in `env` name.

    The engine writes the events to its standard output.
    """
    if front_end == "sysbench":
        return [front_end, *options, *server_options(env), "--jsonl=-", "run"]
    return [front_end, *options, "--events", "-"]


def server_options(env: Mapping[str, str]) -> list[str]:
    """Returns sysbench's options for the server's address, without the password. The address must be given by options,
    because sysbench has defaults of its own."""
    named = {"host": "PGHOST", "port": "PGPORT", "user": "PGUSER", "db": "PGDATABASE"}
    return [f"--pgsql-{option}={env[variable]}" for option, variable in named.items() if variable in env]


def _parse(line: str) -> Event:
    event: Any = None
    with suppress(ValueError):
        event = json.loads(line)
    if not isinstance(event, dict) or not isinstance(event.get("event"), str):
        raise TrialError(f"the engine wrote a line that is not an event: {quoted(line.strip()[:120])}")
    if event["event"] == "hello" and event.get("protocol") != PROTOCOL:
        raise StudyError(
            f"{engine_path()} uses version {event.get('protocol')} of the event protocol, but this pgtrial needs "
            f"version {PROTOCOL}; install the engine and the Python package from the same release of pgtrial"
        )
    return cast("Event", event)
