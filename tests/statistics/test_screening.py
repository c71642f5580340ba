"""The statistics of a screening study: the error of each factor by enumeration of its coin, the intervals, and what a
study of twelve factors finds.
"""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

from pgtrial.statistics import p9, screening
from pgtrial.statistics.p8 import WORST
from pgtrial.statistics.precision import precision
from pgtrial.statistics.rules import planned


def steps_of(signs: np.ndarray, logs: np.ndarray, factor: int, kept: float = p9.KEPT) -> list[p9.Step]:
    """Returns the input of the rule P9 for one factor: a step for each planned look that has enough blocks."""
    units, factors = signs.shape
    spending = p9.Spending(units, kept)
    return [
        screening.step(range(n), signs[:n], logs[:n], factor, spending.until(n) / factors)
        for n in p9.looks(units, factors, kept)
    ]


def is_called(signs: np.ndarray, logs: np.ndarray, factor: int, theta: float = 0.0, kept: float = p9.KEPT) -> bool:
    """True if some look rejects that the effect of a factor is `theta`."""
    steps = steps_of(signs, logs, factor, kept)
    return any(any(p9.rejections(steps, theta, side)) for side in (1, -1))


def every_coin(units: int, first: int = 1) -> list[np.ndarray]:
    """Returns all outcomes of the coin of one factor, except that the first unit always has the sign `first`: with all
    signs turned round, a test of two sides says the same.
    """
    return [np.array([first, *rest], dtype=float) for rest in product((-1.0, 1.0), repeat=units - 1)]


def test_all_factors_of_a_study_together_err_in_at_most_five_percent():
    """Enumerates the coins of two factors without effect over seven blocks. Any noise is as good as any other."""
    units, kept = 7, 0.0
    noise = np.random.default_rng(3).standard_t(2, units) + np.arange(units)
    wrong = studies = 0
    for one, other in product(every_coin(units), repeat=2):
        signs = np.column_stack([one, other])
        wrong += any(is_called(signs, noise, factor, kept=kept) for factor in (0, 1))
        studies += 1
    assert studies == 4 ** (units - 1)
    assert 0 < wrong <= p9.ERROR * studies


@pytest.mark.parametrize("factors", [2, 3])
def test_a_factor_without_effect_errs_in_its_share_whatever_the_others_do(factors):
    """Enumerates the coin of one factor, given those of the others, which have large effects and interact."""
    units, kept = 9, 0.0
    rng = np.random.default_rng(factors)
    others = rng.choice([-1.0, 1.0], (units, factors - 1))
    logs = others.sum(axis=1) + others.prod(axis=1) + rng.standard_t(2, units)
    called = [is_called(np.column_stack([mine, others]), logs, 0, kept=kept) for mine in every_coin(units)]
    assert np.mean(called) <= p9.ERROR / factors


def test_the_true_effect_is_outside_of_its_interval_in_at_most_its_share_of_studies():
    units, theta = 9, 0.3
    rng = np.random.default_rng(8)
    others = rng.choice([-1.0, 1.0], (units, 1))
    rest = 0.5 * others[:, 0] + rng.standard_t(2, units)
    missed = [
        is_called(np.column_stack([mine, others]), rest + theta * mine, 0, theta, kept=0.0)
        for first in (1, -1)
        for mine in every_coin(units, first)
    ]
    assert np.mean(missed) <= p9.ERROR / 2


def test_the_values_and_their_shares_give_the_estimate_of_least_squares():
    rng = np.random.default_rng(1)
    signs, logs = rng.choice([-1.0, 1.0], (30, 5)), rng.standard_normal(30)
    found, residuals = screening.effects(signs, logs)
    for factor in range(5):
        step = screening.step(range(30), signs, logs, factor, 0.01)
        assert np.mean(step.values) / np.mean(step.shares) == pytest.approx(found[factor])
    assert signs.T @ residuals == pytest.approx(np.zeros(5), abs=1e-12)


def test_a_single_factor_is_read_as_a_comparison_of_two_arms_is():
    rng = np.random.default_rng(2)
    signs, logs = rng.choice([-1.0, 1.0], (12, 1)), rng.normal(0.1, 0.3, 12)
    steps = steps_of(signs, logs, 0)
    plain = tuple(p9.Step(step.units, step.values, step.spent) for step in steps)
    assert all(share == 1 for step in steps for share in step.shares)
    assert p9.interval(tuple(steps)) == p9.interval(plain)


def test_two_of_twelve_factors_are_found_and_none_of_the_others():
    effects = np.zeros(12)
    effects[3], effects[7] = 0.2, -0.1
    for seed in range(5):
        rng = np.random.default_rng(seed)
        signs = rng.choice([-1.0, 1.0], (40, 12))
        logs = signs @ effects + rng.normal(0, 0.04, 40)
        assert [factor for factor in range(12) if is_called(signs, logs, factor)] == [3, 7]
        for factor in (3, 7, 0) if seed == 0 else ():
            between = p9.interval(tuple(steps_of(signs, logs, factor)))
            assert between.low < effects[factor] < between.high
            assert between.low <= between.estimate <= between.high
            assert between.high - between.low < 0.2


def test_as_many_factors_as_blocks_tell_nothing():
    rng = np.random.default_rng(4)
    signs, logs = rng.choice([-1.0, 1.0], (8, 12)), rng.standard_normal(8)
    step = screening.step(range(8), signs, logs, 0, 0.05)
    assert not p9.has_estimate(step)
    assert not p9.rejects((step,), 0.0, 1)
    assert screening.effects(signs, logs) is None
    assert screening.noise(signs, logs) == []


def test_the_noise_is_known_although_the_fit_takes_a_part_of_it():
    rng = np.random.default_rng(5)
    signs = rng.choice([-1.0, 1.0], (400, 100))
    logs = signs @ rng.normal(0, 1, 100) + rng.normal(0, 0.05, 400)
    assert np.std(screening.noise(signs, logs)) == pytest.approx(0.05, rel=0.15)


def test_a_failed_trial_counts_as_the_largest_difference_of_the_others():
    assert screening.tamed([0.1, -WORST, 0.3, WORST, -0.2]) == [0.1, -0.3, 0.3, 0.3, -0.2]
    assert screening.tamed([WORST, -WORST]) == [WORST, -WORST]


def test_a_pair_of_factors_that_interact_is_hinted_at_and_no_other():
    rng = np.random.default_rng(6)
    signs = rng.choice([-1.0, 1.0], (60, 4))
    levels = 8 + np.cumsum(rng.normal(0, 0.01, 60)) + 0.05 * signs[:, 0] * signs[:, 2] + rng.normal(0, 0.03, 60)
    found = screening.interactions(signs, levels)
    assert list(found) == [(0, 2)]
    assert found[0, 2] == pytest.approx(0.2, abs=0.06)


def test_more_factors_need_more_blocks_and_too_many_find_nothing():
    def finds(factors: int, blocks: int = 40) -> float:
        reach = precision(planned(blocks, factors), factors, 0.04, factors - 1)
        return reach.difference if reach is not None else math.inf

    assert finds(1) < finds(4) < finds(12) < finds(20)
    assert finds(12) == pytest.approx(0.035, abs=0.01)
    assert finds(30) == math.inf
    for factors in (3, 6, 12, 20, 30):
        fewest = screening.fewest_units(factors)
        assert finds(factors, fewest - 2) == math.inf > finds(factors, fewest + 2)
