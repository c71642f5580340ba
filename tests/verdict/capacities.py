"""Synthetic studies of capacity: trials whose capacities are given."""

from __future__ import annotations

from collections.abc import Callable

from pgtrial.model.records.capacity import CapacityLoad
from pgtrial.model.records.plan import Plan, PlannedTrial
from pgtrial.model.records.trial import Probe, Trial
from tests.verdict import studies
from tests.verdict.studies import make_plan, run

POINT = studies.POINT.model_copy(update={"capacity": CapacityLoad(percentile="p99", limit_s=0.02, failures=0.001)})


def capacity_plan(blocks: int = 12) -> Plan:
    """Returns a plan of a study of capacity."""
    plan = make_plan(blocks=blocks, points=[POINT], duration_s=5.0)
    return plan.model_copy(update={"metrics": ["capacity"]})


def trials_of(plan: Plan, capacity: Callable[[PlannedTrial], float | None], transactions: int = 5000) -> list[Trial]:
    """Trials with these capacities, and a kept and a broken probe each; None: the trial failed."""
    found = [capacity(planned) for planned in plan.trials]
    trials = run(plan, lambda planned: found[planned.index])
    return [
        trial
        if value is None
        else trial.model_copy(
            update={
                "capacity": value,
                "probes": [probe(0.95 * value, transactions), probe(1.05 * value, transactions, kept=False)],
            }
        )
        for trial, value in zip(trials, found, strict=True)
    ]


def probe(rate: float, transactions: int, *, kept: bool = True) -> Probe:
    """Returns a probe with this number of transactions."""
    return Probe(
        rate=rate,
        duration_s=5,
        tps=rate,
        transactions=transactions,
        slower=0 if kept else 0.05 * transactions,
        failed=0,
        waiting=0,
        at_percentile_us=15_000 if kept else 40_000,
        lag_p99_us=100,
        kept=kept,
    )
