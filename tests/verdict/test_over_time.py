"""Tests of the precision that a study had reached after each part of its time."""

from __future__ import annotations

import math

import pytest

from pgtrial.statistics.precision import half_width
from pgtrial.verdict.pace import Reached, reached
from tests.verdict.studies import verdict_of

from .slices import LOAD_S, OWN_SLICES, SLICE_S, alternate, interleaved_plan
from .studies import POINT, deployed, make_plan, noisy, peculiar, run

LOAD = LOAD_S.total_seconds()


def steps_of(plan, trials) -> list[Reached]:
    return reached(plan, trials, verdict_of(plan, trials).primary[0])


def test_trials_one_after_the_other_take_the_sum_of_their_times():
    plan = make_plan(blocks=12)
    steps = steps_of(plan, run(plan, noisy({"off": 1.2})))
    assert [step.units for step in steps] == [6, 7, 8, 9, 10, 11, 12]
    assert [step.spent.wall_s for step in steps] == pytest.approx([22.0 * step.units for step in steps])
    assert [step.spent.measured for step in steps] == pytest.approx([12 / 22] * 7)


def test_trials_that_alternate_take_their_time_together():
    points = [POINT, POINT.model_copy(update={"clients": 32})]
    plan = interleaved_plan(blocks=8, points=points)
    trials, _ = alternate(plan, lambda turn: 2000.0)
    last = steps_of(plan, trials)[-1]
    assert last.spent.wall_s == pytest.approx(8 * 2 * LOAD)
    assert last.spent.measured == pytest.approx(2 * OWN_SLICES * SLICE_S / LOAD)


def test_a_pause_of_the_study_is_no_time_of_it():
    plan = make_plan(blocks=8)
    trials = run(plan, noisy({}))
    late = [
        each.model_copy(
            update={"started": each.started.replace("11-20", "11-25"), "ended": each.ended.replace("11-20", "11-25")}
        )
        if each.index >= 9
        else each
        for each in trials
    ]
    assert steps_of(plan, late)[-1].spent == steps_of(plan, trials)[-1].spent


def test_the_sequential_interval_stands_at_planned_looks_alone_and_is_the_wider_one():
    plan = make_plan(blocks=12)
    steps = steps_of(plan, run(plan, noisy({"off": 1.2})))
    at_looks = {step.units: step for step in steps if step.at_look is not None}
    assert set(at_looks) == {8, 12}
    for step in at_looks.values():
        narrow, wide = half_width(step.difference), half_width(step.at_look)
        assert narrow is not None
        assert wide is not None
        assert narrow < wide


def test_more_comparisons_take_more_blocks_until_an_interval_is_bounded():
    plan = make_plan(("a", "b", "c"), blocks=9)
    assert steps_of(plan, run(plan, noisy({})))[0].units == 7
    assert half_width(None) is None


def test_failed_and_missing_trials_are_no_steps():
    plan = make_plan(blocks=10)
    tps = noisy({})
    trials = run(plan, lambda planned: None if planned.block == 2 else tps(planned), upto=19)
    steps = steps_of(plan, trials)
    assert steps[-1].units == 8
    assert steps[-1].spent.wall_s == pytest.approx(9 * 22.0)
    assert math.isclose(steps[-1].spent.measured_s, 8 * 12.0)


def test_pairs_of_deployments_are_complete_with_their_last_block():
    plan = deployed(8)
    steps = steps_of(plan, run(plan, peculiar(plan)))
    assert [step.units for step in steps] == [6, 7, 8]
    assert steps[-1].spent.wall_s == pytest.approx(22.0 * plan.max_blocks)
