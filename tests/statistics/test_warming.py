"""Tests that the time for which the speed rises is found in simulated series whose rise is known."""

import math

import numpy as np
import pytest

from pgtrial.statistics.warming import rises_s

STEP_S = 0.25


def series(seconds, shape, noise, seed, *, step_s=STEP_S, level=10_000.0):
    """Speeds of equal steps: `shape` gives the share of the level at a time, and noise is normal."""
    draw = np.random.default_rng(seed)
    times = (np.arange(round(seconds / step_s)) + 0.5) * step_s
    return [level * shape(t) * math.exp(draw.normal(0, noise)) for t in times]


def constant(_):
    return 1.0


def ramp(until, start=0.3):
    return lambda t: min(1.0, start + (1 - start) * t / until)


def exponential(time_constant):
    return lambda t: 1 - 0.7 * math.exp(-t / time_constant)


def found(shape, *, seconds=10, noise=0.03, studies=200, step_s=STEP_S):
    return [rises_s(series(seconds, shape, noise, seed, step_s=step_s), step_s) for seed in range(studies)]


@pytest.mark.parametrize(("seconds", "step_s"), [(3, 0.25), (10, 0.25), (30, 0.25), (5, 1.0), (30, 1.0)])
def test_a_speed_that_does_not_rise_has_no_rise_in_most_series(seconds, step_s):
    rises = found(constant, seconds=seconds, step_s=step_s)
    assert sum(rise == 0 for rise in rises) >= 0.7 * len(rises)
    assert None not in rises or seconds <= 5
    assert sum(rise is None for rise in rises) <= 0.05 * len(rises)


@pytest.mark.parametrize("until", [1, 2, 4, 6])
def test_a_ramp_is_found_to_within_a_second_before_its_end_and_two_behind(until):
    rises = [rise for rise in found(ramp(until)) if rise is not None]
    assert len(rises) >= 195
    assert sum(until - 1 <= rise <= until + 2 for rise in rises) >= 0.9 * len(rises)


def test_after_the_rise_the_speed_is_within_three_of_its_spreads_of_the_level():
    noise = 0.03
    for time_constant in (0.5, 1.0, 2.0):
        shape = exponential(time_constant)
        for rise in found(shape, seconds=15, noise=noise):
            assert rise is not None
            assert shape(rise + 0.5) >= 1 - 3 * noise


@pytest.mark.parametrize("shape", [ramp(40), lambda t: 1 + t / 10, exponential(20)])
def test_a_speed_that_rises_to_the_end_is_known_as_such(shape):
    rises = found(shape, seconds=10, noise=0.01)
    assert sum(rise is None for rise in rises) >= 0.95 * len(rises)


def test_a_stall_is_no_rise():
    for at in (3.0, 5.0, 9.0):
        stalled = found(lambda t, at=at: 0.02 if at <= t < at + 0.5 else 1.0)
        assert sum(rise == 0 for rise in stalled) >= 0.7 * len(stalled)


def test_the_rule_sees_no_level_and_no_falling_speed():
    speeds = series(10, ramp(3), 0.02, 5)
    assert rises_s(speeds, STEP_S) == rises_s([7.25 * speed for speed in speeds], STEP_S)
    assert rises_s(series(10, lambda t: 2 - t / 10, 0.02, 5), STEP_S) == 0


def test_seconds_without_a_transaction_are_slow_ones_and_too_few_say_nothing():
    assert rises_s([0, 0, 0, 0, *series(4, constant, 0.02, 1)], STEP_S) == pytest.approx(1.0, abs=0.25)
    assert rises_s([0.0] * 20, STEP_S) is None
    assert rises_s([], STEP_S) is None
    assert rises_s([5.0, 5.0], STEP_S) is None
