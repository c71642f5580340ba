"""Runs the load that goes on at the same time as a job, called the load beside the job. It begins before the job, and
ends when it has caught up with its schedule after the job.

When a job ends, transactions that it has blocked are still waiting. If the load ended at that moment, the longest
response times would not be measured.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress

from pgtrial.conduct.trial import leftovers
from pgtrial.conduct.trial.order import TrialOrder
from pgtrial.conduct.trial.outcome import Outcome
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
"""The longest time between an event in the engine and its arrival in the lab, in seconds."""
_CATCH_UP_S = 60.0
"""The time within which the load must catch up with its schedule after the job, in seconds. If the job took longer than
this, the load may take as long as the job."""


class LoadBeside:
    """Runs the load beside a job. It is a context manager: the load's warm-up is over when the context begins, and the
    load is ended with the context."""

    def __init__(self, order: TrialOrder, target: Target, beside: BesideLoad) -> None:
        self._order, self._target, self._beside = order, target, beside
        self._outcome = Outcome()
        self._stack = ExitStack()
        self._run: EngineRun
        self._began = 0.0
        """The time at which the warm-up of the load had ended, by time.monotonic()."""
        self._clock = 0.0
        """The time at which the engine started, by time.monotonic(). The engine counts the times of its events from
        this moment."""

    def __enter__(self) -> LoadBeside:
        """Starts the load and waits for the end of its warm-up. Raises TrialError if the load does not begin."""
        with ExitStack() as stack:
            stack.callback(leftovers.forget, self._order.directory, beside=True)
            self._run = stack.enter_context(self._order.maker.started(self._load_order()))
            if self._run.pid is not None:
                leftovers.remember(self._order.directory, self._run.pid, beside=True)
            for event in self._events(time.monotonic() + _CONNECT_S + _WARMUP_S):
                if event["event"] == "phase" and event["phase"] == "measure":
                    self._began = time.monotonic()
                    self._clock = self._began - event["t"]
                    self._stack = stack.pop_all()
                    return self
            raise TrialError(f"the load beside the job did not begin: {self._why()}")

    def __exit__(self, *raised: object) -> None:
        self._stack.close()

    def end(self) -> tuple[Phase | None, str | None]:
        """Waits until the load has caught up with its schedule, ends it, and returns its measurements since the start
        of the job, and None.

        If the load did not catch up, returns None, and a note for readers of the trial. Raises TrialError if clients of
        the load were aborted.
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
        if caught_up:
            return self._outcome.measured, None
        return None, (
            f"the load beside the job had not caught up {format_duration(round(patience_s))} after its end, so its "
            f"response times are not known; lower {marks.key('load', 'rate')}"
        )

    def _earliest_start(self, tick: Tick) -> float:
        """Returns the earliest scheduled start of the transactions of a tick, by time.monotonic(); 0 if the tick has no
        transactions."""
        longest_us = (tick.get("latency_us") or {}).get("max")
        if longest_us is None:
            return 0.0
        began = self._clock + float(tick["t"]) - float(tick["seconds"])
        return began - float(longest_us) / 1e6 - _DELAY_S

    def _load_order(self) -> LoadOrder:
        order, beside = self._order, self._beside
        lengths = _WARMUP_S, 2 * order.load.longest_s + _CATCH_UP_S
        script, seed = order.beside_script, order.planned.seed
        options = beside_options(order.load, order.point, beside, seed, script=script, lengths=lengths)

        def for_each(_: Each) -> list[str]:
            return options

        folder = script.parent if script is not None else None
        return LoadOrder(
            "pgbench", for_each, self._target, order.directory / "beside.jsonl", folder=folder, cpus=order.load.cpus
        )

    def _events(self, deadline: float) -> Iterator[Event]:
        """Yields the events of the load as they arrive. If the load has not ended at the deadline, ends it and raises
        NotInTime after its last event.

        `deadline` is a time by time.monotonic().
        """
        for event in self._run.events(deadline):
            self._outcome.add(event)
            yield event

    def _why(self) -> str:
        return self._outcome.first_error or self._run.last_words()
