"""How fast a trial was: what the primary claims compare, the goodput or at a given rate the inverse response time."""

from __future__ import annotations

from functools import partial

from pgtrial.model.records.plan import Plan
from pgtrial.model.records.trial import Trial
from pgtrial.verdict.metric import Metric


def speed_of(plan: Plan) -> Metric:
    """The metric of the primary claims of a study that declares none."""
    return response_of(plan) if plan.is_paced else goodput_of(plan)


def goodput_of(plan: Plan) -> Metric:
    """The goodput as a metric."""
    return Metric("goodput", "1/s", partial(goodput, plan))


def response_of(plan: Plan) -> Metric:
    """The inverse of the mean response time as a metric."""
    return Metric("speed of a transaction", "1/s", partial(_speed, plan))


def goodput(plan: Plan, trial: Trial) -> float:
    """Committed transactions per second, from the scheduled start to the scheduled end; 0 for a failed trial.

    A run that ended early is divided by the time that it should have lasted; the batches of a client program by the
    time that they took, for it does nothing between them.
    """
    if trial.status == "failed" or trial.measured is None:
        return 0.0
    if trial.load_point.programs:
        return trial.measured.tps
    return trial.measured.transactions / max(trial.measured.duration_s, plan.duration_s)


def _speed(plan: Plan, trial: Trial) -> float:
    """The inverse of the mean response time, of a suite of its geometric mean, 1/s; 0 for a failed trial.

    The mean over tasks counts a failed one with the time until it failed: without it, an arm would be the faster the
    more tasks it fails.
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
