"""The two parts of a block's noise, and the length of trials that follows from them."""

from __future__ import annotations

import math

import pytest

from pgtrial.model.records.machine import Conditions, Noise
from pgtrial.statistics.precision import best_length
from pgtrial.verdict.grid import Grid
from pgtrial.verdict.pace import block_time, measured_spread, within_spread
from tests.verdict.slices import LOAD_S, OWN_SLICES, SLICE_S, TPS, alternate, interleaved_plan, noisy_slices
from tests.verdict.studies import POINT


@pytest.mark.parametrize(("started", "in_slices"), [(0.03, 0.05), (0.005, 0.2), (0.02, 0.0)])
def test_the_noise_within_trials_is_told_from_that_of_the_started_servers(started, in_slices):
    plan = interleaved_plan(blocks=120)
    trials, slices = alternate(plan, noisy_slices(started, in_slices))
    grid = Grid(plan, trials)
    within = within_spread(grid, slices)
    assert within == pytest.approx(in_slices * math.sqrt(2 / OWN_SLICES), rel=0.2, abs=0.0005)
    total, _ = measured_spread(Grid(plan, trials))
    assert total == pytest.approx(math.hypot(math.sqrt(2) * started, within), rel=0.2)
    assert block_time(plan, trials) == pytest.approx(LOAD_S.total_seconds())


def test_of_several_load_points_the_mean_counts():
    plan = interleaved_plan(blocks=120, points=[POINT.model_copy(update={"clients": each}) for each in range(1, 5)])
    trials, slices = alternate(plan, noisy_slices(0.0, 0.2))
    within = within_spread(Grid(plan, trials), slices)
    assert within == pytest.approx(0.2 * math.sqrt(2 / OWN_SLICES / 4), rel=0.2)


def test_an_arm_that_slows_down_within_each_trial_is_no_noise():
    plan = interleaved_plan(blocks=12)
    trials, slices = alternate(plan, lambda turn: TPS * (1 - 0.001 * turn.slot * (turn.planned.arm == "on")))
    assert within_spread(Grid(plan, trials), slices) < 0.002


def test_three_blocks_and_trials_one_after_the_other_tell_nothing():
    plan = interleaved_plan(blocks=12)
    trials, slices = alternate(plan, noisy_slices(0.01, 0.05))
    assert within_spread(Grid(plan, trials[:6]), slices) is None
    alone = plan.model_copy(update={"interleaving": None})
    assert within_spread(Grid(alone, trials), slices) is None


def noise(spread: float, within: float | None, *, duration_s: float = 30.0) -> Noise:
    conditions = Conditions(
        lab_host="here", servers=[], load_points=["any"], arms=2, duration_s=duration_s, slice_s=SLICE_S
    )
    return Noise(study="s", created="", conditions=conditions, blocks=12, spread=spread, within=within)


def test_where_the_started_servers_are_the_noise_short_trials_take_the_least_time():
    # b = w / sqrt(30), c = 10, k = 2: the optimum is sqrt(30 * 5) = 12 s; 5 s takes 1.18 times as long, 4 s 1.29
    # times; with a twentieth of w^2 the optimum is 2.7 s
    assert best_length(noise(0.02 * math.sqrt(2), 0.02), range(2, 61), 2, 10.0) == 5
    assert best_length(noise(0.02 * math.sqrt(1.05), 0.02 * math.sqrt(0.05)), range(2, 61), 2, 10.0) == 2


def test_where_seconds_are_the_noise_trials_are_longer_but_at_most_four_times_as_long_as_the_measured_ones():
    # c = 1000: a study's time falls with d as 1000 / d does; of at most 16 s, 14 s takes 1.14 times as long, 13 s 1.22
    assert best_length(noise(0.05, 0.05, duration_s=4), range(2, 61), 2, 1000.0) == 14
    assert best_length(noise(0.05, 0.05, duration_s=8), range(2, 61), 2, 1000.0) == 27


def test_the_shortest_trials_do_where_the_parts_of_the_noise_are_not_known():
    assert best_length(noise(0.03, None), range(5, 61), 2, 10.0) == 5


def test_a_record_of_an_earlier_version_has_keys_that_are_not_read():
    known = noise(0.03, 0.02)
    assert Noise.model_validate(known.model_dump() | {"block_s": 70.0}) == known
