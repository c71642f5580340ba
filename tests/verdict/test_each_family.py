"""Whatever a study compares, the coin makes it fair: all ways in which it can fall, through the whole decision."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import pytest

from pgtrial.model.records.claims import Claim, Estimate
from pgtrial.model.records.plan import Plan, PlannedTrial, Spending
from pgtrial.model.records.results import Criterion, MetricClaim, QueryClaim, StatementClaim
from pgtrial.model.records.sweeps import Scaling, SizeCurve
from pgtrial.model.records.trial import Trial
from pgtrial.statistics.p9 import ERROR, KEPT, looks
from pgtrial.statistics.scalability import Curve
from pgtrial.verdict.changes import Changes
from pgtrial.verdict.family import Subject, parts_of
from pgtrial.verdict.grid import Grid
from pgtrial.verdict.metrics import FAMILIES
from pgtrial.verdict.metrics.cliffs import cliffs
from pgtrial.verdict.metrics.scaling import scaling
from tests.verdict.declared import with_latency
from tests.verdict.replays import Template, run_replays
from tests.verdict.studies import POINT, decision_of, exchanged, make_plan, noisy, run, ways
from tests.verdict.suite_trials import Query, run_suites
from tests.verdict.sweeps import misses, points, sweep
from tests.verdict.tasks import Tasks, run_tasks

BLOCKS = 9
"""The number of blocks with which the last look can decide each of nine claims: 2 / 2^9 is below 0.04 / 9."""

UNDECIDED = Claim(
    arm="b",
    baseline="a",
    load_point=None,
    family=1,
    verdict="undecided",
    within_margin=False,
    blocks=0,
    fewest_blocks=8,
)
"""A primary claim without a verdict, as the function that makes the claims of a sweep requires one."""

Study = Callable[[], tuple[Plan, list[Trial]]]
Different = Callable[[Plan, list[Trial]], int]
"""A function that returns the number of claims of a family that say that equal arms differ. The family is a set of
claims with one common error.
"""


def _costly(plan: Plan | None = None) -> tuple[Plan, list[Trial]]:
    """Trials whose WAL has heavy tails and follows the order of the trials."""
    plan = plan or make_plan(("a", "b"), blocks=BLOCKS)
    rng = np.random.default_rng(8)

    def with_wal(trial: Trial) -> Trial:
        transactions = trial.measured.transactions if trial.measured else 0
        wal = 500.0 * transactions * math.exp(0.05 * rng.standard_t(2) + 0.01 * trial.index)
        return trial.model_copy(update={"server_deltas": {"wal": {"wal_bytes": wal}}})

    return plan, [with_wal(trial) for trial in run(plan, noisy({}))]


def _declared(*metrics: str, rate: float | None = None) -> tuple[Plan, list[Trial]]:
    """Trials whose percentiles have heavy tails and follow the order of the trials; in some transactions failed."""
    points = [POINT.model_copy(update={"rate": rate})]
    plan = make_plan(("a", "b"), blocks=BLOCKS, points=points, duration_s=60.0)
    plan = plan.model_copy(update={"metrics": list(metrics)})
    rng = np.random.default_rng(5)

    def with_tail(trial: Trial) -> Trial:
        factor = math.exp(0.05 * rng.standard_t(2) + 0.01 * trial.index)
        return with_latency(trial, p50=900.0 * factor, p99=8000.0 * factor**2, failed=int(rng.poisson(400)))

    return plan, [with_tail(trial) for trial in _costly(plan)[1]]


def _tasks() -> tuple[Plan, list[Trial]]:
    def draw(rng: np.random.Generator) -> Tasks:
        return Tasks(math.exp(0.05 * rng.standard_t(2)), failed=int(rng.poisson(4)), slow=int(rng.poisson(40)))

    return run_tasks(BLOCKS, a=draw, b=draw)


def _replays() -> tuple[Plan, list[Trial]]:
    rng = np.random.default_rng(4)

    def templates(_: PlannedTrial) -> list[Template]:
        return [Template(math.exp(0.2 * rng.standard_normal())) for _ in range(3)]

    return run_replays(BLOCKS, templates)


def _suites() -> tuple[Plan, list[Trial]]:
    rng = np.random.default_rng(4)

    def queries(_: PlannedTrial) -> list[Query]:
        return [Query(math.exp(0.2 * rng.standard_normal())) for _ in range(3)]

    return run_suites(BLOCKS, queries)


def _over_clients() -> tuple[Plan, list[Trial]]:
    law = Curve(1000.0, 0.05, 0.001)
    return sweep(points((1, 3, 9, 27, 60, 99)), lambda _, point: law.speed(point.clients), blocks=BLOCKS, seed=1)


def _over_sizes() -> tuple[Plan, list[Trial]]:
    return sweep(
        points(scales=(10, 20, 40, 80, 160, 320)),
        lambda _, point: 2000.0 / (1 + 6 * misses(60, point.scale)),
        blocks=BLOCKS,
    )


def _peaks(plan: Plan, trials: list[Trial]) -> int:
    return _differing(scaling(Grid(plan, trials), [UNDECIDED]))


def _sizes(plan: Plan, trials: list[Trial]) -> int:
    return _differing(cliffs(Grid(plan, trials), [UNDECIDED]))


def _parts(plan: Plan, trials: list[Trial]) -> int:
    grid = Grid(plan, trials)
    parts = parts_of(grid, Changes(grid, None), Subject("b", None, 1))
    assert [part.regime for part in parts] == ["below", "above"]
    return sum(part.series.verdict(withheld=False) in ("better", "worse") for part in parts)


def _differing_costs(plan: Plan, trials: list[Trial]) -> int:
    costs = decision_of(plan, trials).costs
    return sum(_excludes_zero(cost.difference) for cost in costs if cost.what == "WAL")


def _differing_percentiles(plan: Plan, trials: list[Trial]) -> int:
    return sum(_excludes_zero(point.difference) for point in decision_of(plan, trials).curve)


def _excludes_zero(difference: Estimate | None) -> bool:
    if difference is None or difference.low is None or difference.high is None:
        return False
    return not difference.low <= 0 <= difference.high


def _differing(
    rows: Sequence[Claim | Criterion | MetricClaim | QueryClaim | StatementClaim | Scaling | SizeCurve],
) -> int:
    return sum(row.verdict in ("better", "worse") for row in rows)


def _called(rows: str) -> Different:
    return lambda plan, trials: _differing(getattr(decision_of(plan, trials), rows))


def _secondary(plan: Plan, trials: list[Trial]) -> int:
    """The mean is the study's primary claim, which has an error of its own."""
    return _differing([row for row in decision_of(plan, trials).criteria if not row.primary])


def _single_queries(plan: Plan, trials: list[Trial]) -> int:
    """The geometric mean over all queries is the study's primary claim."""
    return _differing([row for row in decision_of(plan, trials).queries if row.query is not None])


def _other_metrics(plan: Plan, trials: list[Trial]) -> int:
    return _differing([row for row in decision_of(plan, trials).metrics if not row.primary])


EACH: dict[str, tuple[Study, Different]] = {
    "primary": (_costly, _called("primary")),
    "costs": (_costly, _differing_costs),
    "criteria": (_tasks, _secondary),
    "curve": (partial(_declared, rate=500.0), _differing_percentiles),
    "failure_claims": (partial(_declared, rate=500.0), _called("failure_claims")),
    "metrics": (partial(_declared, "tps", "p50", "p99", "wal per transaction"), _other_metrics),
    "a percentile first": (partial(_declared, "p99", "tps"), _called("primary")),
    "a cost first": (partial(_declared, "wal per transaction", "p50"), _called("primary")),
    "statements": (_replays, _called("statements")),
    "queries": (_suites, _single_queries),
    "scaling": (_over_clients, _peaks),
    "cliffs": (_over_sizes, _sizes),
    "sides of a cliff": (_over_sizes, _parts),
}


def test_each_family_of_claims_is_tried():
    assert set(FAMILIES) <= set(EACH)


@pytest.mark.parametrize("family", EACH)
def test_of_all_ways_in_which_the_coin_can_fall_no_more_than_the_looks_allow_give_a_difference(family):
    study, different = EACH[family]
    plan, trials = study()
    spending = Spending(end=BLOCKS, kept=KEPT)
    plan = plan.model_copy(update={"looks": looks(BLOCKS), "spending": spending})
    assert plan.looks == [8, BLOCKS]
    false = [different(plan, exchanged(trials, blocks)) > 0 for blocks in ways(BLOCKS)]
    assert 0 < sum(false) / len(false) <= ERROR - KEPT


@pytest.mark.parametrize("families", [["primary", "queries"], ["primary", "metrics"]])
def test_all_that_is_printed_shares_one_error_where_the_study_asks_for_that(families):
    study = EACH[families[1]][0]
    plan, trials = study()
    spending = Spending(end=BLOCKS, kept=KEPT)
    plan = plan.model_copy(update={"looks": looks(BLOCKS), "spending": spending, "families": len(families)})
    false = []
    for blocks in ways(BLOCKS):
        study_of_the_coin = exchanged(trials, blocks)
        false.append(any(EACH[family][1](plan, study_of_the_coin) for family in families))
    assert 0 < sum(false) / len(false) <= ERROR - KEPT


def test_nor_does_it_in_a_study_of_before_by_the_rule_p8():
    study, different = EACH["primary"]
    plan, trials = study()
    assert plan.looks == [8, BLOCKS]
    false = [different(plan, exchanged(trials, blocks)) > 0 for blocks in ways(BLOCKS)]
    assert 0 < sum(false) / len(false) <= 0.00782 + 0.0085
