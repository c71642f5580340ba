"""Describes each arm by itself: its throughput, latency and failures. Only failures are compared between arms here."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping

from pgtrial.model.metrics import CAPACITY, FEWEST_SLOWER, PERCENTILES
from pgtrial.model.records.results import CellRegimes, FailedTrial, Failures, Level, Spread
from pgtrial.model.records.trial import Trial
from pgtrial.statistics.describe import median_interval, spread
from pgtrial.verdict.capacities import capacity
from pgtrial.verdict.grid import Grid
from pgtrial.verdict.series import read
from pgtrial.verdict.statement_errors import statement_errors

_LATENCIES = {"mean": 0.0, **PERCENTILES}
"""For each statistic of latency, by the name that is shown, the share of transactions that are faster.

Without its decimal point (`p999` for `p99.9`) the name is the name of the field in records.Latency.
"""

NOTABLE_SHARE = 0.001
"""If an arm fails more than this share of its transactions, the result shows its failures before the verdict."""


def level(grid: Grid, regimes: CellRegimes) -> Level:
    """Returns the throughput and latency of one arm at one load point. If the speed changes for good within the trials,
    the result has the throughput before and after the change in place of a single one."""
    arm, point = regimes.arm, regimes.load_point
    trials = grid.of(arm, point)
    delivering = [trial for trial in trials if grid.goodput(trial)]
    tps = sorted(grid.goodput(trial) for trial in delivering)
    if grid.plan.primary_metric == CAPACITY:
        tps = sorted(capacity(grid.plan, trial) for trial in delivering)
    low, high = median_interval(tps)
    latency: dict[str, Spread | None] = {}
    for name, faster in _LATENCIES.items():
        known = [t.measured for t in delivering if t.measured and t.measured.latency_us]
        enough = not faster or all(phase.transactions * (1 - faster) >= FEWEST_SLOWER - 1e-6 for phase in known)
        values = [float(getattr(phase.latency_us, name.replace(".", ""))) for phase in known]
        latency[name] = spread(values) if enough else None
    return Level(
        arm=arm,
        load_point=point,
        trials=len(delivering),
        failed_trials=len(trials) - len(delivering),
        tps=spread(tps) if not regimes.changes else None,
        tps_low=low if not regimes.changes else None,
        tps_high=high if not regimes.changes else None,
        tps_before=regimes.before if regimes.changes else None,
        tps_after=regimes.after if regimes.changes else None,
        latency_us=latency,
        quality=spread([trial.quality for trial in delivering if trial.quality is not None]),
    )


def failures(grid: Grid, arm: str) -> Failures:
    """Returns an arm's failures over all its trials. In a replay, errors that also occurred when the sessions were
    recorded do not count."""
    trials = grid.of(arm)
    kinds: Counter[str] = Counter()
    for trial in trials:
        kinds.update(_failed_transactions(trial))
    done = sum(
        trial.measured.transactions + sum(trial.measured.failures.values()) for trial in trials if trial.measured
    )
    failed = kinds.total()
    committed = max(0, done - failed)
    return Failures(
        arm=arm,
        trials=len(trials),
        failed_trials=sum(not grid.goodput(trial) for trial in trials),
        transactions=committed,
        failed_transactions=failed,
        share=failed / (failed + committed) if failed else 0.0,
        by_kind=dict(sorted(kinds.items())),
        aborted_clients=sum(trial.aborted_clients for trial in trials),
        statements=statement_errors(trials),
    )


def _failed_transactions(trial: Trial) -> Mapping[str, int]:
    """Returns the numbers of a trial's failed transactions by SQLSTATE or, without an SQLSTATE, by the kind of the
    failure. In a replay, the engine does not count errors that also occurred in the recording."""
    return trial.measured.failures if trial.measured is not None else {}


def leading_failures(grid: Grid, counts: list[Failures]) -> list[str]:
    """Returns the arms whose failures a result shows before the verdict.

    These are the arms with many failed transactions, with a failed trial or an aborted client, and the arms whose
    failures differ from the baseline's.
    """
    return [
        arm.arm
        for arm in counts
        if arm.share > NOTABLE_SHARE or arm.failed_trials or arm.aborted_clients or _differ(grid, arm.arm)
    ]


def _differ(grid: Grid, arm: str) -> bool:
    """True if the number of an arm's failures differs significantly from the baseline's. This test has an error of its
    own, and is not one of the verdicts among which the study divides its error of 5%.

    Blocks are compared by ln((failed_arm + 0.5) / (failed_baseline + 0.5)).
    """
    if arm == grid.plan.baseline:
        return False
    pairs = {block: (_failed(grid, arm, block), _failed(grid, grid.plan.baseline, block)) for block in grid.counted}
    logs = {block: math.log((ours + 0.5) / (theirs + 0.5)) for block, (ours, theirs) in pairs.items()}
    readings = read(grid, logs, len(grid.plan.others)).decision.readings
    return any(reading.verdict in ("better", "worse") for reading in readings)


def _failed(grid: Grid, arm: str, block: int) -> int:
    return sum(sum(_failed_transactions(trial).values()) for trial in grid.in_block(arm, block))


def failed_trials(grid: Grid) -> list[FailedTrial]:
    """Returns every trial that failed or committed nothing, in the order of execution."""
    failed = []
    for trial in grid.trials:
        if grid.goodput(trial):
            continue
        point = grid.point_of(trial)
        opposite = grid.plan.others if trial.arm == grid.plan.baseline else [grid.plan.baseline]
        counterparts = [grid.trial(trial.block, point, arm) for arm in opposite]
        failed.append(
            FailedTrial(
                index=trial.index,
                block=trial.block,
                arm=trial.arm,
                load_point=point,
                reason=trial.reason or "no transaction was committed",
                void=any(other is not None and not grid.goodput(other) for other in counterparts),
            )
        )
    return failed
