"""The metrics by which a study compares arms: how each metric is computed from a trial, and when a comparison by it is
not reliable. The study file declares them, and otherwise a study compares speeds."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

from pgtrial.model.metrics import METRICS, TPS, MetricName, transactions_for
from pgtrial.model.records.own_metrics import OwnMetric
from pgtrial.model.records.plan import Plan
from pgtrial.model.records.trial import Trial
from pgtrial.model.units import grouped, plural
from pgtrial.statistics.p8 import TOLERATED
from pgtrial.verdict.capacities import capacity_of, few_slower
from pgtrial.verdict.metric import RATIO, REDUCTION, Metric
from pgtrial.verdict.percentiles import falls_on_a_failure, percentile_of, slower, stands
from pgtrial.verdict.speed import goodput, goodput_of, response_of, speed_of
from pgtrial.verdict.transaction_costs import COSTS, Kind

_MB = 1e6
_TINY_MB = 0.01


def primary_metric(plan: Plan) -> Metric:
    """Returns the metric that decides the verdicts of the study: the first declared metric or, by default, the
    speed."""
    return declared_metric(plan, plan.metrics[0]) if plan.metrics else speed_of(plan)


def declared_metric(plan: Plan, name: str) -> Metric:
    """Returns the metric with this name, which the study file declares."""
    match plan.named_metric(name).kind:
        case "percentile":
            return percentile_of(plan, name)
        case "cost" | "job":
            unit, value = _taken(plan, METRICS[name])
            return Metric(name, unit, value, "less", REDUCTION)
        case "own":
            own = plan.own_metrics[name]
            scale = REDUCTION if own.better == "less" else RATIO
            return Metric(name, own.unit, partial(_of_own, plan, name, own), own.better, scale)
        case "price":
            return Metric(name, "", partial(_per_cent, plan))
        case "capacity":
            return capacity_of(plan)
        case "speed":
            return goodput_of(plan) if name == TPS else response_of(plan)


def _taken(plan: Plan, metric: MetricName) -> tuple[str, Callable[[Trial], float | None]]:
    """Returns the unit of a cost, and the function that computes it from a trial. A cost is what a transaction or a job
    takes from the server, such as CPU time or WAL."""
    if metric.of_job:
        return "MB", partial(_of_job, plan, metric.of_job)
    kind = COSTS[metric.cost]
    return kind.unit, partial(_cost, plan, kind)


def _per_cent(plan: Plan, trial: Trial) -> float:
    """Returns how many committed transactions a cent (a hundredth of the currency unit) pays for; 0 for a failed
    trial."""
    return 3600 * goodput(plan, trial) / plan.prices[trial.arm]


def _cost(plan: Plan, kind: Kind, trial: Trial) -> float | None:
    """Returns a cost per transaction. It is infinite if the trial failed, and None if the cost is not known."""
    return kind.of(trial) if goodput(plan, trial) else math.inf


def _of_job(plan: Plan, field: str, trial: Trial) -> float | None:
    """Returns the quantity with the name `field`, such as the WAL that the job of a trial (for example CREATE INDEX)
    wrote, in megabytes. It is infinite if the trial failed, and None if it is not known."""
    if not goodput(plan, trial):
        return math.inf
    value: float | None = getattr(trial.job, field, None)
    return None if value is None else value / _MB


def _of_own(plan: Plan, name: str, own: OwnMetric, trial: Trial) -> float | None:
    """Returns a trial's value of a metric that the study itself defines. If the trial failed, it is the worst possible
    value; if the value is not known, None."""
    if not goodput(plan, trial):
        return math.inf if own.better == "less" else 0.0
    return trial.own_metrics.get(name)


def objection(plan: Plan, name: str, trials: Sequence[Trial]) -> str | None:
    """Returns the reason if a comparison by this metric is not reliable with these trials, for example because a
    percentile rests on too few slow transactions. Returns None if it is reliable. None of the trials failed."""
    metric = plan.named_metric(name)
    if metric.kind == "percentile" and (why := _too_few_slower(name, trials) or _cut_off(plan, name, trials)):
        return why
    if metric.kind == "capacity":
        return few_slower(trials)
    if metric.kind in ("speed", "price"):
        return None
    values = [declared_metric(plan, name).value(trial) for trial in trials]
    unknown = [trial for trial, value in zip(trials, values, strict=True) if value is None]
    if unknown:
        return f"{metric.noun} is not known of {len(unknown)} of {len(trials)} trials, such as one of {unknown[0].arm}"
    if metric.kind in ("cost", "job") and trials and _negligible(name, values):
        return f"{metric.noun} is next to none on both arms"
    return None


def _too_few_slower(name: str, trials: Sequence[Trial]) -> str | None:
    """Returns the reason if a percentile of the response time is not reliable because in some trial too few
    transactions are slower than it; otherwise None."""
    measured = [(trial, trial.served) for trial in trials if trial.served is not None]
    few = [(slower(name, phase), trial) for trial, phase in measured if not stands(name, phase)]
    if not few:
        return None
    least, trial = min(few, key=lambda pair: (pair[0], pair[1].index))
    return (
        f"{name} takes 100 slower transactions in every trial, {transactions_for(name):,} in all, and trial "
        f"{trial.index + 1} of {trial.arm} has {math.floor(least + 1e-6)}"
    )


def _cut_off(plan: Plan, name: str, trials: Sequence[Trial]) -> str | None:
    """Returns the reason if so many transactions failed in both arms that the percentile would be the time of a failed
    transaction. Its value is then known for neither arm. Returns None otherwise."""
    if plan.spending is None:
        return None
    of_arms = grouped((trial.arm, trial) for trial in trials)
    cut = {arm: [trial for trial in of_arm if falls_on_a_failure(name, trial)] for arm, of_arm in of_arms.items()}
    if all(len(cut[arm]) > TOLERATED * len(of_arm) for arm, of_arm in of_arms.items()):
        counts = " and ".join(f"{len(cut[arm])} of {plural(len(of_arms[arm]), 'trial')} of {arm}" for arm in of_arms)
        return f"so many transactions failed that {name} is one of them in {counts}" if of_arms else None
    return None


def _negligible(name: str, values: Sequence[float | None]) -> bool:
    metric = METRICS[name]
    most = _TINY_MB if metric.kind == "job" else COSTS[metric.cost].negligible
    return all(value is not None and value <= most for value in values)
