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

from pgtrial.conduct.planning.plan import SEEDS
from pgtrial.conduct.progress import Second
from pgtrial.conduct.trial.counters import ServerCounters
from pgtrial.conduct.trial.order import TrialOrder
from pgtrial.conduct.trial.outcome import Outcome
from pgtrial.conduct.trial.probes import Search, first_rate
from pgtrial.conduct.trial.results import Loaded
from pgtrial.conduct.trial.start_load import check_script
from pgtrial.evidence.observe.views import Counters
from pgtrial.loads.engine import ENGINE_GRACE_S, PHASES, events_of
from pgtrial.loads.load_run import LoadRun
from pgtrial.model.errors import TrialError
from pgtrial.model.records.capacity import CapacityLoad
from pgtrial.model.records.trial import Probe
from pgtrial.model.units import percent
from pgtrial.servers.arm import timed

Started = Callable[[TrialOrder], AbstractContextManager[LoadRun]]
"""A function that starts the engine for an order. It returns the running load as a context manager."""


def search(order: TrialOrder, started: Started, counters: ServerCounters) -> Loaded:
    """Finds the capacity of the arm, the highest rate that its server can serve. The search fails if no rate keeps the
    promise, which is the limit for response time and failures.

    The outcome and the changes of the server's counters are those of the probe whose rate is nearest to the capacity.
    If the search did not end, they are empty.
    """
    asked = order.point.capacity
    if asked is None:
        raise ValueError("this load point has no promise")
    found = Loaded()
    with timed(found.seconds, "load"), found.failing():
        searching = Search(asked, _warm_up(order, started, counters))
        changes: list[tuple[Outcome, Counters]] = []
        while (rate := searching.next_rate) is not None:
            outcome = _probed(order, rate, started, counters, number=len(found.probes) + 1)
            changes.append((outcome, counters.changes_of_probe()))
            searching.add(outcome, rate)
            found.probes = list(searching.probes)
        found.outcome, found.capacity = searching.outcome, searching.capacity
        found.deltas = next(of_probe for outcome, of_probe in changes if outcome is found.outcome)
        if found.capacity is None:
            found.fail(_unkept(min(found.probes, key=lambda probe: probe.rate), asked))
    found.lost = counters.lost
    return found


def _warm_up(order: TrialOrder, started: Started, counters: ServerCounters) -> float:
    """Runs the warm-up and returns the rate at which the search begins, in transactions per second.

    The warm-up is a closed loop. If the study limits the rate (`at_most`), the warm-up runs at this rate instead.
    """
    seconds = max(1.0, float(math.ceil(order.load.phases_s[0])))
    ceiling = order.point.capacity.at_most if order.point.capacity is not None else None
    point = order.point.model_copy(update={"rate": ceiling})
    warming = replace(order, load=order.load.timed(0.0, seconds), point=point)
    measured = _run(warming, started, counters, seconds).measured
    if order.start_rate is not None:
        return order.start_rate
    if measured is None or not measured.transactions:
        raise TrialError("not one transaction was committed in the warm-up")
    return first_rate(measured.tps)


def _probed(order: TrialOrder, rate: float, started: Started, counters: ServerCounters, number: int) -> Outcome:
    section = order.load.capacity
    if section is None:
        raise ValueError("this load has no promise")
    probe_s = section.probe_s(rate, order.load.phases_s[1])
    at_rate = replace(
        order,
        load=order.load.timed(section.settling_s, probe_s),
        point=order.point.model_copy(update={"rate": rate}),
        planned=order.planned.model_copy(update={"seed": (order.planned.seed + number) % SEEDS}),
    )
    return _run(at_rate, started, counters, section.settling_s + probe_s, number)


def _run(
    order: TrialOrder, started: Started, counters: ServerCounters, seconds: float, probe: int | None = None
) -> Outcome:
    """Runs the engine once and returns the outcome.

    A run that completes no transaction in its measured part is a valid outcome. Raises StudyError if the engine refuses
    a script of the study, and TrialError if the run failed in any other way.
    """
    outcome = Outcome()
    with started(order) as run:
        for _, event in events_of([run], time.monotonic() + seconds + ENGINE_GRACE_S):
            if isinstance(event, TrialError):
                raise event
            if event is None:
                continue
            outcome.add(event)
            if event["event"] == "phase" and event["phase"] == "measure":
                counters.begin()
            if event["event"] == "tick" and event["phase"] in PHASES:
                tps = outcome.tps_of(event)
                order.listener(Second(order.planned.arm, event["phase"], event["second"], tps, probe, order.point.rate))
        status = run.finish()
        if not outcome.begun:
            check_script(order, run)
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
