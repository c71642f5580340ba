"""The grid of a running study, to which trials are added, says what one of all its trials at once says."""

from __future__ import annotations

import pytest

from pgtrial.model.records.load_point import LoadPoint
from pgtrial.verdict.grid import Grid
from tests.verdict.studies import make_plan, noisy, run

POINTS = [LoadPoint(workload="tpcb-like", scale=1, clients=clients, protocol="prepared") for clients in (1, 4)]


def _content(grid):
    over = [[0], [1], [0, 1]]
    return (
        [trial.index for trial in grid.trials],
        grid.blocks,
        grid.counted,
        {block: [trial.index for trial in trials] for block, trials in grid.by_block.items()},
        [[trial.index for trial in grid.of(arm, point)] for arm in grid.plan.arms for point in (None, 0, 1)],
        [grid.ratios(arm, points) for arm in grid.plan.others for points in over],
        [grid.gains(arm, points, grid.primary) for arm in grid.plan.others for points in over],
    )


@pytest.fixture(scope="module")
def study():
    plan = make_plan(("A", "B", "C"), blocks=6, points=POINTS)
    return plan, run(plan, noisy({"B": 1.1}))


@pytest.mark.parametrize("step", [1, 4, 6])
def test_trials_that_are_added_say_what_all_at_once_say(study, step):
    plan, trials = study
    grown = Grid(plan, [])
    for end in range(0, len(trials), step):
        grown.add(trials[end : end + step])
        assert _content(grown) == _content(Grid(plan, trials[: end + step]))


def test_a_gap_that_is_filled_later_counts_from_then_on(study):
    plan, trials = study
    gap = [trial for trial in trials if trial.block == 2][1]
    grown = Grid(plan, [trial for trial in trials if trial is not gap])
    assert grown.counted == [0, 1]
    assert not grown.ratios("B", [0, 1])[3].counted
    grown.add([gap])
    assert _content(grown) == _content(Grid(plan, trials))


def test_batches_of_client_programs_are_divided_by_their_time():
    point = LoadPoint(workload="client-programs", scale=1, clients=1, protocol="the driver's", programs=True)
    plan = make_plan(points=[point], duration_s=6.0)
    for measured_s in (5.0, 8.0):
        took = {"duration_s": measured_s, "tps": 1000 / measured_s}
        trials = [
            trial.model_copy(update={"measured": trial.measured.model_copy(update=took)})
            for trial in run(plan, noisy({}))
        ]
        grid = Grid(plan, trials)
        assert {grid.goodput(trial) for trial in trials} == {1000 / measured_s}
