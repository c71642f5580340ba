"""Runs the load of a trial that searches for the capacity of an arm, the highest rate at which response times and
failures stay within the limits of the study. The load is a closed loop as its warm-up, then probes, each a run at a
rate that the search chooses.

The throughput of the warm-up decides the rate of the first probe, and the result of each probe decides the next rate.
The rule is the same for all arms. From the second block on, all arms of a block begin at the same rate.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Protocol

from pgtrial.conduct.planning.plan import SEEDS
from pgtrial.conduct.progress import Second
from pgtrial.conduct.trial.outcome import Outcome
from pgtrial.conduct.trial.probes import Search, first_rate
from pgtrial.conduct.trial.running_trial import RunningTrial
from pgtrial.evidence.observe.views import Counters
from pgtrial.loads.engine import ENGINE_GRACE_S, PHASES, events_of
from pgtrial.loads.load_run import LoadRun
from pgtrial.model.errors import TrialError
from pgtrial.model.records.capacity import CapacityLoad
from pgtrial.model.records.trial import Probe
from pgtrial.model.units import percent

Started = Callable[[RunningTrial], AbstractContextManager[LoadRun]]
"""A function that starts the engine for a trial in progress. It returns the running load as a context manager."""


class ProbeWatch(Protocol):
    """An observer that reads the server's counters during a probe."""

    def measure_begins(self) -> None:
        """Reads the server's counters."""

    def changes(self) -> Counters:
        """Returns how the counters have changed since `measure_begins`, once the engine has ended."""


def search(trial: RunningTrial, started: Started, watch: ProbeWatch) -> None:
    """Finds the capacity of the arm, the highest rate that its server can serve. Stores in `trial` the capacity, all
    probes, and the measurements of the probe whose rate is nearest to the capacity.

    Raises TrialError if no rate keeps the promise, which is the limit for response times and failures.
    """
    asked = trial.point.capacity
    if asked is None:
        raise ValueError("this load point has no promise")
    searching = Search(asked, _warm_up(trial, started, watch), trial.probes)
    changes: list[tuple[Outcome, Counters]] = []
    while (rate := searching.next_rate) is not None:
        outcome = _probed(trial, rate, started, watch)
        changes.append((outcome, watch.changes()))
        searching.add(outcome, rate)
    trial.outcome, trial.capacity = searching.outcome, searching.capacity
    trial.deltas |= next(of_probe for outcome, of_probe in changes if outcome is trial.outcome)
    if trial.capacity is None:
        raise TrialError(_unkept(min(trial.probes, key=lambda probe: probe.rate), asked))


def _warm_up(trial: RunningTrial, started: Started, watch: ProbeWatch) -> float:
    """Runs the warm-up and returns the rate at which the search begins, in transactions per second.

    The warm-up is a closed loop. If the study limits the rate (`at_most`), the warm-up runs at this rate instead.
    """
    seconds = max(1.0, float(math.ceil(trial.load.phases_s[0])))
    ceiling = trial.point.capacity.at_most if trial.point.capacity is not None else None
    point = trial.point.model_copy(update={"rate": ceiling})
    warming = replace(trial, load=trial.load.timed(0.0, seconds), point=point, outcome=Outcome())
    ended = _run(warming, started, watch, seconds)
    if trial.start_rate is not None:
        return trial.start_rate
    measured = ended.measured
    if measured is None or not measured.transactions:
        raise TrialError("not one transaction was committed in the warm-up")
    return first_rate(measured.tps)


def _probed(trial: RunningTrial, rate: float, started: Started, watch: ProbeWatch) -> Outcome:
    section = trial.load.capacity
    if section is None:
        raise ValueError("this load has no promise")
    probe_s = section.probe_s(rate, trial.load.phases_s[1])
    number = len(trial.probes) + 1
    at_rate = replace(
        trial,
        load=trial.load.timed(section.settling_s, probe_s),
        point=trial.point.model_copy(update={"rate": rate}),
        planned=trial.planned.model_copy(update={"seed": (trial.planned.seed + number) % SEEDS}),
        outcome=Outcome(),
    )
    return _run(at_rate, started, watch, section.settling_s + probe_s, number)


def _run(trial: RunningTrial, started: Started, watch: ProbeWatch, seconds: float, probe: int | None = None) -> Outcome:
    """Runs the engine once and returns the outcome.

    A run that completes no transaction in its measured part is a valid outcome. Raises TrialError if the run failed in
    any other way.
    """
    outcome = trial.outcome
    with started(trial) as run:
        for _, event in events_of([run], time.monotonic() + seconds + ENGINE_GRACE_S):
            if isinstance(event, TrialError):
                raise event
            if event is None:
                continue
            outcome.add(event)
            if event["event"] == "phase" and event["phase"] == "measure":
                watch.measure_begins()
            if event["event"] == "tick" and event["phase"] in PHASES:
                tps = outcome.tps_of(event)
                trial.listener(Second(trial.planned.arm, event["phase"], event["second"], tps, probe, trial.point.rate))
        status = run.finish()
        reason = run.trouble or outcome.failure(status, run.last_words(), run.maker)
        if reason is not None and not _is_idle(outcome, status):
            raise TrialError(reason)
    return outcome


def _is_idle(outcome: Outcome, status: int) -> bool:
    """True if a run ended as planned but completed no transaction in its measured part, since its rate is far beyond
    the capacity."""
    done, measured = outcome.done, outcome.measured
    ended = done is not None and status == 0 and not outcome.aborted_clients and not done.get("interrupted")
    return ended and measured is not None and measured.transactions == 0


def _unkept(probe: Probe, asked: CapacityLoad) -> str:
    slower = probe.slower / probe.transactions if probe.transactions else 1.0
    return (
        f"no rate kept the promise of {asked.label}: at {probe.rate:,.4g}/s {percent(min(1.0, slower))} of the "
        f"transactions took longer, and {percent(probe.failed / probe.transactions) if probe.failed else 'none'} failed"
    )
