"""Runs a client program as the load of a trial, and reports its batches by the same events as the load engine, with one
tick (an event with measurements) for each slice."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Self

from pgtrial.loads.engine import PROTOCOL
from pgtrial.loads.events import Summary
from pgtrial.loads.load_run import Inbox, LoadRun
from pgtrial.loads.programs.program import START_LIMIT_S, Batch, Program, ProgramOrder
from pgtrial.loads.programs.rounds import Rounds
from pgtrial.model.errors import TrialError
from pgtrial.model.quoting import quoted
from pgtrial.model.units import percent
from pgtrial.store.files import cannot_write

_FAILED_BELOW, _NOTED_BELOW = 0.5, 0.9
"""Two limits for the share of the elapsed time that the program reports as the time of its batches. Below the first
limit the trial fails; below the second one a note says that the share is low."""


class ProgramRun(LoadRun):
    """A load that is made by a client program, which alternates with the client programs of the other arms. As a
    context manager it leaves no process behind."""

    def __init__(
        self, order: ProgramOrder, rounds: Rounds, *, events_file: Path, inbox: Inbox | None = None, waits: bool
    ) -> None:
        """Sets up the run; `rounds` decides when the program runs its slices.

        `waits` is true if other programs take part too: then the rounds begin when `begin_at` is called.
        """
        super().__init__(events_file, inbox)
        self._program = Program(order)
        self._rounds, self._waits = rounds, waits
        self._stack = ExitStack()
        self._copy: IO[str]
        self._created = time.monotonic()
        self._parts: dict[str, list[Batch]] = {}
        self._last_end: float | None = None

    def __enter__(self) -> Self:
        """Starts the program and runs one batch that is not measured. Raises TrialError if the program cannot be
        started or does not answer, and StoreError if the file for the events cannot be opened."""
        with ExitStack() as on_failure:
            try:
                self._copy = on_failure.enter_context(self._events_file.open("w", encoding="utf-8", buffering=1))
            except OSError as error:
                raise cannot_write(self._events_file, error) from None
            on_failure.enter_context(self._program)
            self._program.run_batch(START_LIMIT_S)
            slices = {"length_s": self._rounds.slice_s, "of": self._rounds.number, "seed": str(self._rounds.seed)}
            plan = {"clients": 1, "slices": slices}
            self._write_event("hello", protocol=PROTOCOL, frontend="program", program=self._program.name, plan=plan)
            self._write_event("connected", clients=1, connect_s=time.monotonic() - self._created)
            self._write_event("ready", clients=1)
            self._rounds.join(self)
            self._stack = on_failure.pop_all()
        if not self._waits:
            self._rounds.begin(self)
        return self

    def __exit__(self, *raised: object) -> None:
        self._rounds.leave(self)
        if self.trouble is not None or (raised and raised[0] is not None):
            self._program.kill()
        self._stack.__exit__(None, None, None)

    @property
    def maker(self) -> str:
        """A phrase that names the client program and its command, as the subject of messages about the end of the
        load."""
        return self._program.label

    @property
    def pid(self) -> int:
        """The process id of the program."""
        return self._program.pid

    def begin_at(self, at: float) -> None:
        """Reports that this program is prepared. The rounds of all programs begin when every program has reported this,
        so the time `at` is not used."""
        self._rounds.begin(self)

    def interrupt(self) -> None:
        """Kills the program. The batches that it completed have already been reported."""
        self.kill()

    def kill(self) -> None:
        """Kills the program."""
        self._program.kill()

    def finish(self) -> int:
        """Returns 0, since the measurement is complete: how the program ends afterwards does not matter."""
        return 0

    def begin_phase(self, phase: str) -> None:
        """Writes the event which reports that a phase begins."""
        self._parts[phase] = []
        self._write_event("phase", phase=phase)

    def take_turn(self, phase: str, in_phase: int, in_load: int, slice_s: float, began: float) -> None:
        """Runs batches for about the length of a slice, and reports them as a tick (the event with measurements)."""
        batches: list[Batch] = []
        begin = time.monotonic()
        try:
            while not batches or time.monotonic() - begin < slice_s - batches[-1].passed_s / 2:
                batches.append(self._program.run_batch())
        except TrialError as error:
            self._fail(str(error))
            return
        self._parts[phase] += batches
        first, last = batches[0].begin - began, batches[-1].end - began
        seconds = batches[-1].end - (self._last_end or batches[0].begin)
        self._last_end = batches[-1].end
        claimed_s, operations = _sums(batches)
        times = {"planned_begin_s": first, "planned_end_s": last, "begin_s": first, "end_s": last}
        self._write_event(
            "tick",
            phase=phase,
            second=in_phase,
            seconds=seconds,
            slice={"round": in_load, **times, "client_s": claimed_s},
            transactions=operations,
            failures={},
            latency_us={"mean": 1e6 * claimed_s / operations},
        )

    def report(self) -> None:
        """Writes the last event, with the totals of the phases."""
        self._rounds.leave(self)
        self.trouble, note = left_out(self._parts.get("measure", []), self.maker, self._program.command)
        self.notes += [note] if note is not None else []
        summaries = {phase: _summary(self._parts.get(phase, [])) for phase in ("warmup", "measure")}
        self._write_event("done", status=0, interrupted=False, clients_aborted=0, **summaries)
        self._end()

    def _fail(self, reason: str) -> None:
        self._rounds.leave(self)
        self.trouble = reason
        self._end()

    def _end(self) -> None:
        self.inbox.put((self, None))

    def _write_event(self, event: str, **values: object) -> None:
        content = {"event": event, "t": round(time.monotonic() - self._created, 6), **values}
        line = f"{json.dumps(content)}\n"
        try:
            self._copy.write(line)
        except ValueError:  # the file is closed, since the trial has been stopped
            return
        except OSError as error:
            self.copy_error = self.copy_error or cannot_write(self._events_file, error)
        self.inbox.put((self, line))


def left_out(batches: Sequence[Batch], maker: str, command: str) -> tuple[str | None, str | None]:
    """Returns an error or a note if the times that the program reported for its batches are only a small share of the
    time between the lab's tokens and the program's answers: the rest of the time is not measured.

    The first value is the error, the second the note; each is None if it does not apply. `maker` and `command` are the
    names of the program in these sentences.
    """
    passed_s = sum(batch.passed_s for batch in batches)
    share = _sums(batches)[0] / passed_s if passed_s else 1.0
    if share < _FAILED_BELOW:
        return (
            f"{maker}: its batches claim only {percent(share, 0)} of the time from the token to the answer, so most of "
            "the time is not measured; make the program time the whole batch, until all replies of the server have "
            "arrived, and make batches of 10 ms or more"
        ), None
    if share < _NOTED_BELOW:
        return None, (
            f"the batches of {quoted(command)} claim only {percent(share, 0)} of the time from the token to the "
            "answer; the remaining time of the program is not measured"
        )
    return None, None


def _sums(batches: Sequence[Batch]) -> tuple[float, int]:
    """Returns two sums over batches: the seconds and the operations that the program reported."""
    return sum(batch.claimed_s for batch in batches), sum(batch.operations for batch in batches)


def _summary(batches: Sequence[Batch]) -> Summary | None:
    """Returns the totals of batches in the form in which the engine reports a phase; None if there are no batches."""
    if not batches:
        return None
    claimed_s, operations = _sums(batches)
    return {
        "duration_s": claimed_s,
        "client_s": claimed_s,
        "transactions": operations,
        "failures": {},
        "tps": operations / claimed_s,
        "latency_us": None,
    }
