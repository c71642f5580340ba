"""Synthetic studies with declared metrics: trials whose percentiles and costs are given."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pgtrial.model.records.plan import Plan, PlannedTrial
from pgtrial.model.records.trial import Percentiles, Trial
from tests.verdict.studies import POINT, make_plan, run

RATE = 500.0
"""The rate, transactions a second; trials of 60 s have 30,000."""


def declaring(
    *metrics: str,
    arms: Sequence[str] = ("on", "off"),
    blocks: int = 12,
    duration_s: float = 60.0,
    rate: float | None = RATE,
) -> Plan:
    """Returns a plan whose study declares these metrics."""
    points = [POINT.model_copy(update={"rate": rate})]
    plan = make_plan(arms, blocks=blocks, points=points, duration_s=duration_s)
    return plan.model_copy(update={"metrics": list(metrics)})


def at_the_rate(plan: Plan, of: Callable[[PlannedTrial, Trial], Trial]) -> list[Trial]:
    """Trials that kept the rate, each changed by `of`."""
    trials = run(plan, lambda _: RATE)
    return [of(planned, trial) for planned, trial in zip(plan.trials, trials, strict=True)]


def with_latency(trial: Trial, *, p50: float = 1000.0, p99: float = 8000.0, failed: int = 0) -> Trial:
    """Returns the trial with these percentiles of latency in microseconds. Percentiles below p99 are multiples of
    `p50`, and p99.9 is a multiple of `p99`.

    `failed` transactions have no latency: if they are at least one in a hundred, p99 is unknown, and if at least one in
    a thousand, p99.9.
    """
    measured = trial.measured
    if measured is None or measured.latency_us is None:
        return trial
    points = {"p50": p50, "p90": 2 * p50, "p95": 3 * p50, "p99": p99, "p999": 2 * p99}
    share = failed / (failed + measured.transactions)
    after = {"p50": 0.5, "p90": 0.1, "p95": 0.05, "p99": 0.01, "p999": 0.001}
    known = Percentiles(**{name: value if share < after[name] else None for name, value in points.items()})
    phase = measured.model_copy(
        update={
            "latency_us": measured.latency_us.model_copy(update=points),
            "failures": {"57014": failed} if failed else {},
            "with_failures_us": known if failed else None,
        }
    )
    return trial.model_copy(update={"measured": phase})


def with_wal(trial: Trial, each: float) -> Trial:
    """Returns the trial with `each` bytes of WAL per transaction."""
    transactions = trial.measured.transactions if trial.measured else 0
    return trial.model_copy(update={"server_deltas": {"wal": {"wal_bytes": each * transactions}}})
