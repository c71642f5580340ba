"""Percentiles of a trial's response times. A failed transaction counts as one that was not answered within the
trial."""

from __future__ import annotations

import math
from functools import partial

from pgtrial.model.metrics import FEWEST_SLOWER, PERCENTILES
from pgtrial.model.records.plan import Plan
from pgtrial.model.records.trial import Phase, Trial
from pgtrial.verdict.metric import REDUCTION, Metric
from pgtrial.verdict.speed import goodput


def percentile_of(plan: Plan, name: str) -> Metric:
    """Returns the metric of a percentile, by the percentile's name."""
    is_bound = partial(falls_on_a_failure, name) if plan.spending is not None else lambda _: False
    return Metric(name, "us", partial(percentile, plan, name), "less", REDUCTION, is_bound=is_bound)


def falls_on_a_failure(name: str, trial: Trial) -> bool:
    """True if the percentile is not a measured response time. The reason is that so many transactions of the trial
    failed that the transaction at the percentile is a failed one."""
    served = trial.served
    if served is None or served.with_failures_us is None or trial.status == "failed":
        return False
    return getattr(served.with_failures_us, name.replace(".", "")) is None


def percentile(plan: Plan, name: str, trial: Trial) -> float | None:
    """Returns a percentile of a trial's response times in microseconds. It is infinite if the trial failed, and None if
    the percentile is not known.

    A failed transaction counts with the length of the measured part, because its client was not served within this
    time.
    """
    measured = trial.served
    if not goodput(plan, trial):
        return math.inf
    if measured is None:
        return None
    field = name.replace(".", "")
    if not any(measured.failures.values()):
        return getattr(measured.latency_us, field) if measured.latency_us is not None else None
    if measured.with_failures_us is None:
        return None
    value: float | None = getattr(measured.with_failures_us, field)
    return 1e6 * max(plan.duration_s, measured.duration_s) if value is None else value


def slower(name: str, measured: Phase) -> float:
    """Returns how many transactions of a trial took longer than a percentile: about 1% of them for p99."""
    return (1 - PERCENTILES[name]) * (measured.transactions + sum(measured.failures.values()))


def stands(name: str, measured: Phase) -> bool:
    """True if enough transactions of a trial took longer than the percentile, so that its value is reliable."""
    return slower(name, measured) >= FEWEST_SLOWER - 1e-6
