"""The capacity of a trial as a metric, and the objection to a capacity whose probes were too short."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from pgtrial.model.metrics import FEWEST_SLOWER, PERCENTILES
from pgtrial.model.records.plan import Plan
from pgtrial.model.records.trial import Trial
from pgtrial.verdict.metric import Metric
from pgtrial.verdict.speed import goodput


def capacity_of(plan: Plan) -> Metric:
    """Returns the capacity as a metric, in transactions per second."""
    return Metric("capacity", "1/s", partial(capacity, plan))


def capacity(plan: Plan, trial: Trial) -> float:
    """Returns the highest rate at which a trial kept the promise, transactions per second; 0 for a failed trial."""
    return trial.capacity or 0.0 if goodput(plan, trial) else 0.0


def few_slower(trials: Sequence[Trial]) -> str | None:
    """Returns why a claim does not stand: a trial's probes have too few transactions beyond the percentile. Else None.

    The transactions of all probes of a trial count together, since the capacity is a fit of all of them.
    """
    counts = [(sum(probe.transactions for probe in trial.probes) * _slower(trial), trial) for trial in trials]
    least, trial = min(counts, key=lambda pair: pair[0], default=(None, None))
    if least is None or trial is None or least >= FEWEST_SLOWER - 1e-6:
        return None
    return (
        f"a capacity takes {FEWEST_SLOWER} transactions beyond the percentile in all probes of every trial, and trial "
        f"{trial.index + 1} of {trial.arm} has {int(least)}"
    )


def _slower(trial: Trial) -> float:
    promise = trial.load_point.capacity
    return 1 - PERCENTILES[promise.percentile] if promise is not None else 0.0
