"""The speed of a trial, by which a study compares the arms if it declares no metric. It is the goodput (committed
transactions per second) or, for a load at a given rate, the inverse of the mean response time."""

from __future__ import annotations

from functools import partial

from pgtrial.model.records.plan import Plan
from pgtrial.model.records.trial import Trial
from pgtrial.verdict.metric import Metric


def speed_of(plan: Plan) -> Metric:
    """Returns the metric by which a study compares the arms if it declares no metric."""
    return response_of(plan) if plan.is_paced else goodput_of(plan)


def goodput_of(plan: Plan) -> Metric:
    """Returns the metric for the goodput, which is the number of committed transactions per second of the scheduled
    time."""
    return Metric("goodput", "1/s", partial(goodput, plan))


def response_of(plan: Plan) -> Metric:
    """Returns the metric for the response time. Its value is the inverse of the mean response time, so that a larger
    value is better, as for a speed."""
    alone = partial(_speed, plan)
    if plan.spending is None:
        return Metric("speed of a transaction", "1/s", alone)
    return Metric(
        "speed of a transaction",
        "1/s",
        alone,
        paired=partial(_speeds, plan),
        is_bound=_has_cut_queries,
        bounds_compare=True,
    )


def goodput(plan: Plan, trial: Trial) -> float:
    """Returns the committed transactions per second between the scheduled start and the scheduled end of the measured
    part; 0 for a failed trial.

    If a run ended early, its transactions are divided by the time that it should have lasted. If a client program runs
    batches, its transactions are divided by the time that the batches took, because it does nothing between them.
    """
    if trial.status == "failed" or trial.measured is None:
        return 0.0
    if trial.load_point.kind.rests:
        return trial.measured.tps
    return trial.measured.transactions / max(trial.measured.duration_s, plan.duration_s)


def _speed(plan: Plan, trial: Trial) -> float:
    """Returns the inverse of a trial's mean response time (for a suite of queries, of the geometric mean) in 1/s; 0 for
    a failed trial.

    The mean over tasks includes failed tasks, with the time until they failed. Otherwise an arm would look the faster
    the more tasks it fails.
    """
    if not goodput(plan, trial):
        return 0.0
    if trial.tasks is not None:
        mean = trial.tasks.mean_us
        return 1e6 / mean if mean else 0.0
    if trial.suite is not None:
        mean = trial.suite.mean_us
        return 1e6 / mean if mean else 0.0
    latency = trial.measured.latency_us if trial.measured else None
    return 1e6 / latency.mean if latency else 0.0


def _speeds(plan: Plan, trial: Trial, base: Trial) -> tuple[float, float]:
    """Returns the inverse mean response times, in 1/s, of two trials of the same block, with failed transactions
    included.

    A failed transaction counts with the longest response time that was measured in either trial. Otherwise an arm would
    look the faster the more of its slow transactions it fails.
    """
    slowest = max(_slowest_us(trial), _slowest_us(base))
    return _with_failures(plan, trial, slowest), _with_failures(plan, base, slowest)


def _with_failures(plan: Plan, trial: Trial, slowest_us: float) -> float:
    speed, measured = _speed(plan, trial), trial.measured
    failed = _failed(trial)
    if not speed or not failed or measured is None or trial.suite is not None:
        return speed
    if trial.tasks is not None:
        response = trial.tasks.response_us
        done = response.mean * trial.tasks.completed if response is not None else 0.0
        return 1e6 * (trial.tasks.completed + failed) / (done + failed * slowest_us)
    committed = measured.transactions
    return 1e6 * (committed + failed) / (committed * 1e6 / speed + failed * slowest_us)


def _failed(trial: Trial) -> int:
    """Returns the number of a trial's failed transactions or, if the load consists of tasks, of failed tasks."""
    if trial.tasks is not None:
        return trial.tasks.failed
    return sum(trial.measured.failures.values()) if trial.measured is not None else 0


def _slowest_us(trial: Trial) -> float:
    """Returns the longest response time of a trial in microseconds; 0 if nothing was committed."""
    if trial.tasks is not None:
        waited = trial.tasks.failed_after_us or 0.0
        return max(waited, trial.tasks.response_us.max if trial.tasks.response_us is not None else 0.0)
    latency = trial.measured.latency_us if trial.measured is not None else None
    return latency.max if latency is not None else 0.0


def _has_cut_queries(trial: Trial) -> bool:
    """True if some queries of the trial's suite were cancelled at the time limit or failed. The mean over the queries
    is then only a bound."""
    return trial.suite is not None and trial.status != "failed" and any(query.is_bound for query in trial.suite.queries)
