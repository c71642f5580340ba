"""Change points: the statistic by its definition, few alarms without a change, and changes where they were planted."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from pgtrial.statistics import change_points as module
from pgtrial.statistics.change_points import change_points, welch_interval


def energy(left, right):
    """Returns the scaled energy distance of two samples, as Matteson and James define it."""
    n, m = len(left), len(right)
    across = sum(abs(x - y) for x in left for y in right)
    within = [
        2 * sum(abs(x - y) for x, y in itertools.combinations(part, 2)) / (len(part) * (len(part) - 1))
        for part in (left, right)
    ]
    return n * m / (n + m) * (2 * across / (n * m) - sum(within))


def test_the_best_split_is_that_of_the_definition():
    rng = np.random.default_rng(1)
    for size in (4, 5, 9, 14):
        values = rng.normal(size=size)
        splits = [
            (energy(values[:split], values[split:end]), split)
            for end in range(4, size + 1)
            for split in range(2, end - 1)
        ]
        found, place = module._best_split(values)
        assert (found, place) == (pytest.approx(max(splits)[0]), max(splits)[1])


def test_series_without_a_change_seldom_have_one():
    rng = np.random.default_rng(2)
    noises = (rng.standard_normal, lambda size: rng.standard_t(2, size), lambda size: rng.integers(0, 2, size))
    alarms = [bool(change_points(noise(size))) for noise in noises for size in (8, 20) for _ in range(25)]
    assert sum(alarms) <= 0.05 * len(alarms) + 2 * math.sqrt(0.05 * 0.95 * len(alarms))


@pytest.mark.parametrize(("before", "after", "step"), [(5, 5, 8), (12, 3, 6), (3, 12, 6), (30, 30, 3)])
def test_a_planted_change_is_found_where_it_is(before, after, step):
    rng = np.random.default_rng(3)
    series = [np.r_[rng.normal(size=before), rng.normal(size=after) - step] for _ in range(10)]
    found = [change_points(values) for values in series]
    assert sum([abs(change.index - before) <= 1 for change in changes] == [True] for changes in found) >= 9
    held = [changes[0].size.low <= -step <= changes[0].size.high for changes in found if changes]
    assert sum(held) >= 0.8 * len(held)


@pytest.mark.parametrize("step", [2, 3])
def test_the_interval_of_its_place_and_that_of_its_size_hold_what_was_planted(step):
    """95 of 100; 53 of 60 is three standard deviations below."""
    rng = np.random.default_rng(8)
    held, sizes, next_to_it = [], [], []
    while len(held) < 60:
        changes = change_points(np.r_[rng.normal(size=20), rng.normal(size=10) + step])
        if len(changes) == 1:
            (change,) = changes
            held.append(change.ends[0] <= 20 <= change.ends[1])
            sizes.append(change.size.low <= step <= change.size.high)
            next_to_it.append(change.index == 20)
    assert sum(held) >= 53
    assert sum(sizes) >= 53
    assert sum(next_to_it) < 50  # so that the commits next to a change are often of one level


def test_changes_that_follow_each_other_are_both_found():
    rng = np.random.default_rng(4)
    values = np.r_[rng.normal(size=15), rng.normal(size=12) - 6, rng.normal(size=15)]
    assert [change.index for change in change_points(values)] == [15, 27]


def test_the_same_values_give_the_same_changes_and_few_or_equal_values_none():
    values = [*np.random.default_rng(5).normal(size=12), 9.0, 9.1, 9.2]
    assert change_points(values) == change_points(values)
    for few in ([], [1.0], [1.0, 2.0, 9.0], [3.0] * 20):
        assert change_points(few) == []


def test_of_a_long_series_the_last_values_are_looked_at(monkeypatch):
    monkeypatch.setattr(module, "MOST", 20)
    values = [*np.random.default_rng(6).normal(size=40), 9.0, 9.1, 9.2, 9.3, 9.4]
    assert [change.index for change in change_points(values)] == [40]


def test_the_size_has_the_interval_of_welch():
    one, other = np.array([1.0, 2.0, 4.0, 5.0]), np.array([0.5, 0.7, 0.6])
    expected = stats.ttest_ind(one, other, equal_var=False).confidence_interval()
    interval = welch_interval(one, other)
    assert (interval.low, interval.high) == pytest.approx((expected.low, expected.high))
    assert welch_interval(one[:1], other).high == math.inf
    assert welch_interval(np.ones(3), np.zeros(3)).low == 1.0
