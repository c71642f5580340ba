"""The interval of unpaired means and the trend within arms, beside scipy and in cases whose result is known."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from pgtrial.statistics.drift import trend_within
from pgtrial.statistics.welch import welch_interval


def test_welch_intervals_are_those_of_scipy():
    generator = np.random.default_rng(5)
    for first, second in ((4, 9), (2, 2), (30, 3)):
        one, two = generator.normal(1, 2, first), generator.normal(0, 1, second)
        interval = welch_interval(one, two, 0.05)
        reference = stats.ttest_ind(one, two, equal_var=False).confidence_interval(0.95)
        assert (interval.low, interval.high) == pytest.approx((reference.low, reference.high))
        assert interval.estimate == pytest.approx(one.mean() - two.mean())


def test_single_and_constant_values_have_the_interval_that_they_tell():
    assert welch_interval([1.0], [2.0, 3.0]).low == -math.inf
    constant = welch_interval([2.0, 2.0], [1.0, 1.0])
    assert (constant.low, constant.estimate, constant.high) == (1, 1, 1)


def test_a_trend_is_found_within_arms_and_a_difference_of_arms_is_none():
    noise = np.random.default_rng(1).normal(0, 0.01, 12)
    arms = ["a"] * 6 + ["b"] * 6
    steps = np.array([0.0] * 6 + [1.0] * 6)
    assert trend_within(arms, (steps + noise).tolist()) is None
    trend = trend_within(arms, (0.1 * np.arange(12) + noise).tolist())
    assert trend is not None
    assert trend.slope == pytest.approx(0.1, abs=0.01)
    assert trend.between("b", "a") == pytest.approx(0.6, abs=0.06)


def test_a_trend_is_found_by_chance_in_5_per_cent_of_tables():
    generator = np.random.default_rng(3)
    arms = ["a", "b"] * 5
    found = sum(trend_within(arms, generator.normal(0, 1, 10).tolist()) is not None for _ in range(2000))
    assert 60 <= found <= 140


@pytest.mark.parametrize(
    ("arms", "values"), [("a", [1.0]), ("ab", [1.0, 2.0]), ("aab", [1.0, 2.0, 3.0]), ("abc", [1, 2, 3])]
)
def test_too_few_values_have_no_trend(arms, values):
    assert trend_within(list(arms), values) is None
