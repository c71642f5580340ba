"""The load beside a job: it runs from before the job's start, and after its end until it has caught up.

What the job held up is still waiting at its end: a load that ended then would leave out the longest response times.
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
from pgtrial.loads.load_makers import Each, LoadOrder
from pgtrial.loads.load_run import Event
from pgtrial.loads.target import Target
from pgtrial.model.errors import TrialError
from pgtrial.model.records.job import BesideLoad
from pgtrial.model.records.trial import Phase
from pgtrial.model.units import format_duration

_WARMUP_S = 5.0
_CONNECT_S = 60.0
_DELAY_S = 0.05
"""So late an event of the engine may have arrived."""
_CATCH_UP_S = 60.0
"""The load may take so long to catch up, or as long as the job took if that is longer."""


class LoadBeside:
    """A context manager: within it the load is running, and past its warm-up."""

    def __init__(self, course: Course, target: Target, beside: BesideLoad) -> None:
        self._course, self._target, self._beside = course, target, beside
        self._outcome = Outcome()
        self._stack = ExitStack()
        self._run: EngineRun
        self._began = 0.0
        """When its warm-up was over, by time.monotonic()."""
        self._clock = 0.0
        """The zero of the engine's times on that clock."""

    def __enter__(self) -> LoadBeside:
        """Raises TrialError if it does not begin."""
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
        """Wait until the load has caught up, and end it; what it measured since the job's start.

        None: it did not catch up, which the trial notes. Raises TrialError if clients were cut off.
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
                "response times are not known; lower [load] rate"
            )
        return self._outcome.measured if caught_up else None

    def _earliest_start(self, tick: Event) -> float:
        """When the first of the transactions of a tick was to start at the earliest, by time.monotonic(); 0: none."""
        longest_us = (tick["latency_us"] or {}).get("max")
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
        """The events as they arrive; raises NotInTime at the end of a load that had to be ended at the deadline."""
        for event in self._run.events(deadline):
            self._outcome.add(event)
            yield event

    def _why(self) -> str:
        return self._outcome.first_error or self._run.last_words()
