"""The capacity of a trial as a metric, and the check that its probes were long enough. A capacity is the highest rate
at which the response time keeps a limit, and a probe is a run at one rate."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from pgtrial.model.metrics import FEWEST_SLOWER, PERCENTILES
from pgtrial.model.records.plan import Plan
from pgtrial.model.records.trial import Trial
from pgtrial.verdict.metric import Metric
from pgtrial.verdict.speed import goodput


def capacity_of(plan: Plan) -> Metric:
    """Returns the metric by which capacity studies compare arms: the highest rate at which the response time keeps a
    limit, in transactions per second."""
    return Metric("capacity", "1/s", partial(capacity, plan))


def capacity(plan: Plan, trial: Trial) -> float:
    """Returns the highest rate at which a trial kept the limits for response time and failures that the study sets, in
    transactions per second; 0 for a failed trial."""
    return trial.capacity or 0.0 if goodput(plan, trial) else 0.0


def few_slower(trials: Sequence[Trial]) -> str | None:
    """Returns the reason if capacities cannot be compared reliably, because the probes (runs at one rate) of some trial
    have too few transactions that are slower than the percentile with a limit; otherwise None.

    The transactions of all probes of a trial are added up, since the capacity is fitted to all of them.
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
