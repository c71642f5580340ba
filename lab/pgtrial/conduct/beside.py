"""The load that runs at the same time as a job. It begins before the job, and ends when it has caught up after the
job's end.

Transactions that the job held up are still waiting when it ends. If the load ended at that moment, the longest response
times would be missing.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress

from pgtrial.conduct import leftovers
from pgtrial.conduct.course import Course
from pgtrial.conduct.outcome import Outcome
from pgtrial.loads.command_lines.job import beside_options
from pgtrial.loads.engine import EngineRun, NotInTime
from pgtrial.loads.events import Event, Tick
from pgtrial.loads.load_makers import Each, LoadOrder
from pgtrial.loads.target import Target
from pgtrial.model import marks
from pgtrial.model.errors import TrialError
from pgtrial.model.records.job import BesideLoad
from pgtrial.model.records.trial import Phase
from pgtrial.model.units import format_duration

_WARMUP_S = 5.0
_CONNECT_S = 60.0
_DELAY_S = 0.05
"""The longest delay with which an event of the engine may arrive, seconds."""
_CATCH_UP_S = 60.0
"""How long the load may take to catch up after the job, seconds; as long as the job took if that is longer."""


class LoadBeside:
    """A context manager: within it the load is running, and past its warm-up."""

    def __init__(self, course: Course, target: Target, beside: BesideLoad) -> None:
        self._course, self._target, self._beside = course, target, beside
        self._outcome = Outcome()
        self._stack = ExitStack()
        self._run: EngineRun
        self._began = 0.0
        """The time at which the load's warm-up was over, by time.monotonic()."""
        self._clock = 0.0
        """The time from which the engine counts the times of its events, by time.monotonic()."""

    def __enter__(self) -> LoadBeside:
        """Starts the load and waits for the end of its warm-up. Raises TrialError if the load does not begin."""
        with ExitStack() as stack:
            stack.callback(leftovers.forget, self._course.directory, beside=True)
            self._run = stack.enter_context(self._course.maker.started(self._order()))
            if self._run.pid is not None:
                leftovers.remember(self._course.directory, self._run.pid, beside=True)
            for event in self._events(time.monotonic() + _CONNECT_S + _WARMUP_S):
                if event["event"] == "phase" and event["phase"] == "measure":
                    self._began = time.monotonic()
                    self._clock = self._began - event["t"]
                    self._stack = stack.pop_all()
                    return self
            raise TrialError(f"the load beside the job did not begin: {self._why()}")

    def __exit__(self, *raised: object) -> None:
        self._stack.close()

    def end(self) -> Phase | None:
        """Waits until the load has caught up, ends it, and returns what it measured since the job's start.

        Returns None, with a note for the trial, if the load did not catch up. Raises TrialError if clients were cut
        off.
        """
        ended = time.monotonic()
        patience_s = max(_CATCH_UP_S, ended - self._began)
        caught_up = False
        with suppress(NotInTime):
            for event in self._events(ended + patience_s):
                if not caught_up and event["event"] == "tick" and self._earliest_start(event) > ended:
                    caught_up = True
                    self._run.interrupt()
        self._run.finish()
        if self._outcome.aborted_clients or not self._outcome.done:
            raise TrialError(f"the load beside the job: {self._why()}")
        if not caught_up:
            self._course.note(
                f"the load beside the job had not caught up {format_duration(round(patience_s))} after its end, so its "
                f"response times are not known; lower {marks.key('load', 'rate')}"
            )
        return self._outcome.measured if caught_up else None

    def _earliest_start(self, tick: Tick) -> float:
        """Returns the earliest due time of a tick's transactions, by time.monotonic(); 0 if the tick has none."""
        longest_us = (tick.get("latency_us") or {}).get("max")
        if longest_us is None:
            return 0.0
        began = self._clock + float(tick["t"]) - float(tick["seconds"])
        return began - float(longest_us) / 1e6 - _DELAY_S

    def _order(self) -> LoadOrder:
        course, beside = self._course, self._beside
        lengths = _WARMUP_S, 2 * course.load.longest_s + _CATCH_UP_S
        script, seed = course.beside_script, course.planned.seed
        options = beside_options(course.load, course.point, beside, seed, script=script, lengths=lengths)

        def for_each(_: Each) -> list[str]:
            return options

        folder = script.parent if script is not None else None
        return LoadOrder(
            "pgbench", for_each, self._target, course.directory / "beside.jsonl", folder=folder, cpus=course.load.cpus
        )

    def _events(self, deadline: float) -> Iterator[Event]:
        """Yields the events as they arrive. Raises NotInTime after the last one if the load had to be ended at the
        deadline.

        The deadline is a time of time.monotonic().
        """
        for event in self._run.events(deadline):
            self._outcome.add(event)
            yield event

    def _why(self) -> str:
        return self._outcome.first_error or self._run.last_words()
