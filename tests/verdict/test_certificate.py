"""A certificate is read off recorded blocks: studies one after the other, measured differences, and reach."""

from __future__ import annotations

import math

import pytest

from pgtrial.model.records.machine import Planted
from pgtrial.statistics.precision import precision
from pgtrial.statistics.rules import planned
from pgtrial.verdict.certificate import SAME_BLOCKS, Series, consecutive, found, measured, reach, series
from pgtrial.verdict.grid import Grid
from tests.verdict.studies import make_plan, noisy, run

AS_IT_IS, SAME, SLOWER = "as it is", "same", "slower"
PLANTED = Planted(arm=SLOWER, slower_by=0.05, work=40)


def selftest(blocks: int, effect: float = 0.95, sd: float = 0.01):
    plan = make_plan((AS_IT_IS, SAME, SLOWER), blocks=blocks)
    return Grid(plan, run(plan, noisy({SLOWER: effect}, sd=sd)))


def test_studies_begin_where_the_last_one_was_decided():
    clear = [-0.05 + 0.001 * math.sin(place) for place in range(20)]
    studies = consecutive(Series(clear, [10.0] * 20), 40, 0.01)
    assert [(study.blocks, study.seconds, study.verdict) for study in studies] == [
        (8, 80.0, "worse"),
        (8, 80.0, "worse"),
    ]


def test_a_study_that_is_not_decided_goes_on_to_the_end_that_was_planned():
    unclear = [0.05 * (-1) ** place for place in range(29)]
    studies = consecutive(Series(unclear, [1.0] * 29), 12, 0.01)
    assert [(study.blocks, study.verdict) for study in studies] == [(12, "undecided"), (12, "undecided")]
    assert consecutive(Series(unclear[:5], [1.0] * 5), 12, 0.01) == []


def test_a_planted_difference_is_found_and_lies_in_its_interval():
    grid = selftest(18)
    told = found(series(grid, SLOWER), PLANTED, grid.plan.margin)
    assert [study.verdict for study in told.studies] == ["worse", "worse"]
    assert len(told.hits) == 2
    assert told.difference.low is not None
    assert told.difference.high is not None
    assert told.difference.low < -0.05 < told.difference.high


def test_the_time_of_a_study_is_that_of_two_arms():
    of = series(selftest(9), SLOWER)
    # three trials of 11 s, one after the other, in each block
    assert of.block_s == pytest.approx(22.0)
    assert found(of, PLANTED, 0.01).studies[0].seconds == pytest.approx(8 * 22.0)


def test_two_arms_that_are_alike_get_no_verdict_and_differ_by_nothing():
    grid = selftest(18)
    alike = series(grid, SAME)
    studies = consecutive(alike, SAME_BLOCKS, grid.plan.margin)
    assert {study.verdict for study in studies} <= {"undecided", "equivalent"}
    told = measured(alike)
    assert told.low is not None
    assert told.high is not None
    assert told.low < 0 < told.high


def test_what_was_planted_is_compared_with_what_its_calibration_leaves_open():
    of = series(selftest(18), SLOWER)
    fits = {
        share: found(of, PLANTED.model_copy(update={"slower_by": share, "low": low, "high": high}), 0.01).agrees
        for share, low, high in ((0.05, 0.045, 0.055), (0.08, 0.04, 0.12), (0.09, 0.08, 0.1), (0.06, None, None))
    }
    assert fits == {0.05: True, 0.08: True, 0.09: False, 0.06: None}


def test_reach_is_the_shortest_plan_that_finds_the_difference():
    sd = series(selftest(18), SLOWER).spread
    told = reach(sd, 20.0)
    assert [each.difference for each in told] == [0.01, 0.02, 0.03, 0.05, 0.1]
    assert [each.blocks for each in told] == sorted((each.blocks for each in told), reverse=True)
    for each in told:
        assert each.seconds == 20.0 * each.blocks
    known = {each.difference: each.blocks for each in told}
    enough = precision(planned(known[0.02], 1), 1, sd)
    assert enough is not None
    assert enough.difference <= 0.02
    fewer = precision(planned(known[0.02] - 1, 1), 1, sd)
    assert fewer is None or fewer.difference > 0.02
