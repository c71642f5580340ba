"""Cliffs are found where they are, with intervals that cover the truth; where there is none, none is found."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgtrial.statistics.cliffs import broken_line, steepest


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(7)


EIGHT = [25, 50, 100, 200, 400, 800, 1600, 3200]
SIX = EIGHT[:6]

Curve = Callable[[float], float]
"""A function that returns the logarithm of the throughput for a size of the data."""


def line(*knots: tuple[float, float], slope: float = -0.05) -> Curve:
    return lambda size: 8 + slope * math.log(size) + sum(change * max(0.0, math.log(size / at)) for at, change in knots)


def jump(at: float, by: float) -> Curve:
    return lambda size: 8.0 - (by if size > at else 0.0)


def cache(holds: float, miss: float) -> Curve:
    """Returns a curve in which each transaction reads one page of the data at random, and waits for those that the
    cache does not hold.
    """
    return lambda size: -math.log(1.0 + miss * max(0.0, 1 - holds / size))


def blocks_of(rng: np.random.Generator, curve: Curve, sizes=EIGHT, *, blocks=10, sd=0.03, drift=0.05):
    values = np.asarray([curve(size) for size in sizes])
    return values + drift * rng.standard_normal((blocks, 1)) + sd * rng.standard_normal((blocks, len(sizes)))


@pytest.mark.parametrize(
    ("curve", "truth", "sizes", "width"),
    [
        pytest.param(line((300, -0.8)), 300, EIGHT, 1.1, id="between two sizes"),
        pytest.param(line((200, -0.8)), 200, EIGHT, 1.1, id="at a size"),
        pytest.param(line((130, -0.6)), 130, SIX, 1.2, id="six sizes"),
        pytest.param(line((120, -0.6), (900, -0.9)), 120, EIGHT, 1.3, id="the first of two"),
        pytest.param(jump(300, 1.0), 300, EIGHT, 2.2, id="a jump"),
        pytest.param(cache(300, 10.0), 300, EIGHT, 4.0, id="a cache"),
        pytest.param(cache(130, 5.0), 130, SIX, 4.0, id="a cache, six sizes"),
    ],
)
def test_intervals_of_95_percent_cover_the_truth(curve, truth, sizes, width):
    """The intervals of broken lines are narrow; the size of a cache is found no closer than the sizes around it."""
    rng = np.random.default_rng(2)
    studies, covered, widths = 100, 0, []
    for _ in range(studies):
        found = broken_line(sizes, blocks_of(rng, curve, sizes))
        assert found is not None
        assert found.cliffs
        first = found.cliffs[0].size
        covered += first.low <= truth <= first.high
        widths.append(first.high / first.low)
    assert covered >= 0.9 * studies
    assert np.median(widths) <= width + 1e-6


@pytest.mark.parametrize(
    "curve",
    [
        pytest.param(line(), id="nearly level"),
        pytest.param(line(slope=-0.5), id="falls evenly"),
        pytest.param(line((300, -0.15)), id="falls by a tenth a doubling"),
        pytest.param(line((300, 0.8)), id="rises"),
        pytest.param(jump(300, 0.1), id="a step of a tenth"),
    ],
)
def test_without_a_cliff_none_is_found(curve):
    rng = np.random.default_rng(3)
    lines = [broken_line(EIGHT, blocks_of(rng, curve)) for _ in range(100)]
    assert [each.cliffs for each in lines if each is not None] == [[]] * 100


def test_two_caches_are_two_cliffs(rng):
    found = broken_line(EIGHT, blocks_of(rng, line((120, -0.6), (900, -0.9)), sd=0.01))
    assert found is not None
    assert [knot.size.estimate for knot in found.cliffs] == pytest.approx([120, 900], rel=0.1)
    assert found.cliffs[0].change == pytest.approx(math.expm1(-0.65 * math.log(2)), abs=0.03)


def test_a_jump_is_known_no_closer_than_between_its_two_sizes(rng):
    found = broken_line(EIGHT, blocks_of(rng, jump(300, 1.0), sd=0.01))
    assert found is not None
    (cliff,) = found.cliffs
    assert cliff.size.low <= 205
    assert cliff.size.high >= 390
    assert cliff.change == pytest.approx(math.expm1(-1.0), abs=0.03)


@given(st.floats(0.1, 1000.0), st.floats(-5.0, 5.0), st.integers(0, 1000))
def test_units_of_size_and_throughput_do_not_matter(unit, level, seed):
    blocks = blocks_of(np.random.default_rng(seed), line((300, -0.8)))
    one, other = broken_line(EIGHT, blocks), broken_line([unit * size for size in EIGHT], blocks + level)
    assert one is not None
    assert other is not None
    assert other.gain == pytest.approx(one.gain, rel=1e-4)
    for ours, theirs in zip(one.knots, other.knots, strict=True):
        assert theirs.size.estimate == pytest.approx(unit * ours.size.estimate, rel=1e-3)
        assert theirs.before == pytest.approx(ours.before, abs=0.05)


def test_what_reads_do_turns_as_a_rise(rng):
    reads = np.asarray([max(0.0, 1 - 300 / size) for size in EIGHT]) + 0.01 * rng.standard_normal((10, 8))
    found = broken_line(EIGHT, reads)
    assert found is not None
    assert found.rises
    assert found.rises[0].size.estimate == pytest.approx(300, rel=0.3)


def test_the_steepest_fall_of_one_block_is_at_its_knot(rng):
    (values,) = blocks_of(rng, line((300, -0.8)), blocks=1, sd=0.001)
    assert steepest(tuple(EIGHT), tuple(values), 1) == pytest.approx(300, rel=0.02)


def test_too_few_sizes_or_blocks_say_nothing(rng):
    assert broken_line(SIX[:5], blocks_of(rng, line(), SIX[:5])) is None
    assert broken_line(SIX, blocks_of(rng, line(), SIX, blocks=1)) is None
