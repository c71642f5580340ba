"""The detector of regimes, on series whose levels are known."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgtrial.statistics.regimes import FEWEST_SECONDS, SMALLEST_CHANGE, detect

PUBLISHED = [1070.40, 889.68, 574.57, 232.10, 242.40, 257.73, 264.65, 278.07, 250.40, 249.97]
"""The tps of each minute of a published run on a managed server whose credits ran out; its average was given as
428.59.
"""

Noise = Callable[[np.random.Generator, int], np.ndarray]


def remembering(phi: float, sd: float) -> Noise:
    """Returns a function that returns a first-order autoregressive series."""

    def noise(rng: np.random.Generator, n: int) -> np.ndarray:
        shocks = rng.standard_normal(n + 50) * np.sqrt(1 - phi**2)
        values = np.zeros(n + 50)
        for i in range(1, n + 50):
            values[i] = phi * values[i - 1] + shocks[i]
        return sd * values[50:]

    return noise


def checkpoints(rng: np.random.Generator, n: int) -> np.ndarray:
    """Returns autoregressive noise with dips of 30% for 15 s every 120 s, at any phase."""
    phase = (np.arange(n) + rng.integers(120)) % 120
    return remembering(0.7, 0.05)(rng, n) + np.where(phase < 15, np.log(0.7), 0)


def sawtooth(rng: np.random.Generator, n: int) -> np.ndarray:
    """Returns the noise of full-page writes after a checkpoint every 30 s: 40% slower, then less and less."""
    phase = ((np.arange(n) + rng.integers(30)) % 30) / 30
    return remembering(0.7, 0.05)(rng, n) + np.log(1 - 0.4 * (1 - phase))


STATIONARY: dict[str, Noise] = {
    "independent": lambda rng, n: 0.1 * rng.standard_normal(n),
    "remembering": remembering(0.7, 0.05),
    "remembering, noisy": remembering(0.7, 0.2),
    "heavy tails": lambda rng, n: 0.05 * rng.standard_t(2, n),
    "stalls": lambda rng, n: np.where(rng.random(n) < 0.03, -7.0, 0.05 * rng.standard_normal(n)),
    "sawtooth": sawtooth,
}


def series(levels: np.ndarray, noise: Noise, rng: np.random.Generator) -> np.ndarray:
    return np.round(levels * np.exp(np.clip(noise(rng, len(levels)), -8, 3))).astype(int)


@pytest.mark.parametrize("name", STATIONARY)
@pytest.mark.parametrize("seconds", [60, 600])
def test_stationary_trials_are_flat(name, seconds):
    rng = np.random.default_rng(1)
    shapes = [detect(series(np.full(seconds, 2000.0), STATIONARY[name], rng)).shape for _ in range(100)]
    assert shapes.count("flat") >= 97


def test_checkpoints_are_no_regimes_in_trials_that_hold_several():
    rng = np.random.default_rng(2)
    shapes = [detect(series(np.full(600, 2000.0), checkpoints, rng)).shape for _ in range(100)]
    assert shapes.count("flat") >= 99


def test_the_published_collapse_is_found_where_it_was():
    rng = np.random.default_rng(3)
    for _ in range(20):
        regime = detect(series(np.repeat(PUBLISHED, 60), remembering(0.7, 0.05), rng))
        assert regime.shape == "collapse"
        assert regime.settled
        ends = [segment.end_s for segment in regime.segments[:-1]]
        assert all(min(abs(end - step) for step in (60, 120, 180)) <= 15 for end in ends)
        assert abs(ends[-1] - 180) <= 15
        assert regime.segments[0].tps == pytest.approx(1070, rel=0.2)
        assert regime.segments[-1].tps == pytest.approx(250, rel=0.1)


@pytest.mark.parametrize("at", [15, 20, 34, 45])
def test_credits_that_run_out_within_a_minute_are_found_within_seconds(at):
    rng = np.random.default_rng(at)
    levels = np.where(np.arange(60) < at, 1070.0, 250.0)
    for _ in range(20):
        regime = detect(series(levels, remembering(0.7, 0.1), rng))
        assert regime.shape == "collapse"
        assert abs(regime.segments[0].end_s - at) <= 3


def test_a_fifth_less_is_found_in_ten_minutes_and_a_twentieth_is_left_to_the_trend():
    rng = np.random.default_rng(4)

    def found(ratio: float) -> int:
        levels = np.where(np.arange(600) < 250, 2000.0, 2000.0 * ratio)
        return sum(detect(series(levels, remembering(0.7, 0.05), rng)).shape != "flat" for _ in range(50))

    assert found(0.8) >= 49
    assert found(0.95) == 0


def shape(*parts: np.ndarray) -> tuple[str, bool]:
    rng = np.random.default_rng(5)
    regime = detect(series(np.concatenate(parts), remembering(0.5, 0.03), rng))
    return regime.shape, regime.settled


def level(tps: float, seconds: int) -> np.ndarray:
    return np.full(seconds, tps)


def ramp(start: float, end: float, seconds: int) -> np.ndarray:
    return np.exp(np.linspace(np.log(start), np.log(end), seconds))


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ([level(1000, 120)], ("flat", True)),
        ([level(1000, 60), level(400, 60)], ("collapse", True)),
        ([level(400, 60), level(1000, 60)], ("recovery", True)),
        ([ramp(300, 1000, 60), level(1000, 120)], ("warm-up", True)),
        ([ramp(300, 1000, 120)], ("warm-up", False)),
        ([ramp(1000, 300, 120)], ("slow-down", False)),
        ([level(1000, 120), ramp(1000, 300, 120)], ("slow-down", False)),
        ([level(1000, 40), level(500, 40), level(1000, 40)], ("cyclic", True)),
        ([level(1000, 40), level(500, 40)] * 2, ("cyclic", True)),
        ([level(1000, 60), level(400, 60), level(650, 60)], ("no steady state", False)),
        ([level(1000, 60), level(300, 12), level(1000, 60)], ("flat", True)),
    ],
    ids=["flat", "collapse", "recovery", "warm-up", "still warming", "slow-down", "slow-down after a level", "slump",
         "cycles", "elsewhere", "dip"],
)  # fmt: skip
def test_a_trial_is_classed_by_its_levels(parts, expected):
    assert shape(*parts) == expected


def test_too_few_seconds_say_nothing():
    assert detect([100] * (FEWEST_SECONDS - 1)) is None
    assert detect([100] * FEWEST_SECONDS) is not None


def test_a_server_that_stops_is_a_collapse_to_nothing():
    regime = detect([1000] * 30 + [0] * 30)
    assert (regime.shape, regime.segments[0].end_s, regime.segments[1].tps) == ("collapse", 30, 0)


@given(st.lists(st.integers(0, 5000), min_size=FEWEST_SECONDS, max_size=400))
def test_segments_cover_the_trial_count_its_work_and_differ_from_their_neighbours(committed):
    segments = detect(committed).segments
    assert segments[0].start_s == 0
    assert segments[-1].end_s == len(committed)
    assert segments[-1].committed == sum(committed)
    assert all(segment.start_s < segment.end_s for segment in segments)
    assert all(a.end_s == b.start_s for a, b in pairwise(segments))


@given(st.integers(2, 2000), st.integers(0, 3))
def test_the_unit_of_speed_does_not_matter(factor, seed):
    rng = np.random.default_rng(seed)
    one = series(np.where(np.arange(90) < 40, 1000.0, 600.0), remembering(0.7, 0.05), rng)
    segments, scaled = detect(one).segments, detect(one * factor).segments
    assert [s.end_s for s in segments] == [s.end_s for s in scaled]
    assert segments[-1].tps < (1 - SMALLEST_CHANGE) * segments[0].tps
