"""Finds the change points of a series of values: where the level of the values changed, and by how much.

The method is E-divisive with the energy distance (Matteson and James 2014, A nonparametric approach for multiple change
point analysis of multivariate data, JASA 109, 334 to 345), as in Apache Otava, formerly Hunter (Fleming et al. 2023,
Hunter: using change point detection to hunt for performance regressions, ICPE 2023). A split of the series is tested by
random permutations of the values within their segments, as in the first of these papers. Whatever the noise is, as long
as the values are exchangeable, a series without a change gets a change point in at most 5% of cases. If a series is
analysed again after each new value, false change points are more frequent: they appeared at some time in 22% of
simulated series of 30 values, and in 35% of series of 60 values.

The position of a change is chosen by the values, so it is uncertain. Its 95% interval has all positions whose
likelihood, with normal noise, is not much less than that of the best position (Siegmund 1988, Confidence sets in
change-point problems, International Statistical Review 56, 31 to 48). The size of a change has the t interval of Welch
(1947), widened so that it covers all these positions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit

from pgtrial.statistics.p8 import Interval
from pgtrial.statistics.paired_t import ALPHA

Floats = npt.NDArray[np.float64]

FEWEST = 2
"""The smallest number of values on either side of a change."""
MOST = 300
"""The largest number of values that are analysed: the last ones of the series. The time grows with the square of their
number."""
_LESS_LIKELY = -2 * math.log(1 - math.sqrt(1 - ALPHA))
"""The largest value of twice the logarithm of the likelihood ratio with which a position belongs to the interval around
the best position."""
_PERMUTATIONS = 199
_SEED = 20_140_334


@dataclass(frozen=True)
class ChangePoint:
    """A change of the level of a series."""

    index: int
    """The index of the first value that has the new level."""
    ends: tuple[int, int]
    """The 95% interval of the position. Values before its lower end have the old level; the value at its upper end and
    all values after it have the new level."""
    size: Interval
    """The new level minus the old level, with a 95% interval."""
    p: float
    """The p-value of the change: the share of random permutations of the values in which the best split is at least as
    good as in the observed order."""


def change_points(values: Sequence[float]) -> list[ChangePoint]:
    """Returns the change points of a series in their order. The same values always give the same change points."""
    skipped = max(0, len(values) - MOST)
    series = np.asarray(values[skipped:], dtype=np.float64)
    draw = np.random.Generator(np.random.Philox(_SEED))
    found: dict[int, float] = {}
    while True:
        bounds = [0, *sorted(found), len(series)]
        segments = [slice(start, end) for start, end in pairwise(bounds) if end - start >= 2 * FEWEST]
        best = max(((*_best_split(series[part]), part.start) for part in segments), default=None)
        if best is None or best[0] <= 0:
            break
        p = _share_as_good(series, segments, best[0], draw)
        if p > ALPHA:
            break
        found[best[1] + best[2]] = p
    bounds = [0, *sorted(found), len(series)]
    changes = []
    for start, index, end in zip(bounds, bounds[1:], bounds[2:], strict=False):
        earliest, latest = (start + one for one in index_interval(series[start:end], index - start))
        size = _size(series[start:end], index - start, (earliest - start, latest - start))
        changes.append(ChangePoint(skipped + index, (skipped + earliest, skipped + latest), size, found[index]))
    return changes


def index_interval(values: Floats, index: int) -> tuple[int, int]:
    """Returns the first and the last position at which the level of these values may have changed. `index` is the
    position that was found."""
    squares = np.asarray([_squares(values[:at]) + _squares(values[at:]) for at in range(1, len(values))])
    least = float(squares.min())
    likely = np.flatnonzero((squares - least) * (len(values) - 2) <= _LESS_LIKELY * least) + 1
    return min(index, int(likely[0])), max(index, int(likely[-1]))


def _squares(values: Floats) -> float:
    return float(np.sum((values - values.mean()) ** 2))


def _size(values: Floats, index: int, ends: tuple[int, int]) -> Interval:
    """Returns the new level minus the old level, with an interval that covers the intervals for all positions within
    `ends` that leave at least `FEWEST` values on either side."""
    indices = {index, *range(max(FEWEST, ends[0]), min(len(values) - FEWEST, ends[1]) + 1)}
    sizes = [welch_interval(values[at:], values[:at]) for at in indices]
    estimate = float(np.mean(values[index:]) - np.mean(values[:index]))
    return Interval(min(size.low for size in sizes), estimate, max(size.high for size in sizes))


def welch_interval(one: Floats, other: Floats) -> Interval:
    """Returns the difference of two means with Welch's 95% interval. The interval is unbounded if there is a single
    value on either side."""
    value = float(np.mean(one) - np.mean(other))
    if min(len(one), len(other)) < 2:
        return Interval(-math.inf, value, math.inf)
    shares = [float(np.var(part, ddof=1)) / len(part) for part in (one, other)]
    total = math.fsum(shares)
    if total == 0:
        return Interval(value, value, value)
    freedom = total**2 / math.fsum(share**2 / (len(part) - 1) for share, part in zip(shares, (one, other), strict=True))
    half = -float(stdtrit(freedom, ALPHA / 2)) * math.sqrt(total)
    return Interval(value - half, value, value + half)


def _best_split(values: Floats) -> tuple[float, int]:
    """Returns the scaled energy distance between the values before the best split and those after it, and the index of
    the first value after the split.

    The values after the split may end before the last of `values`. Therefore a change is also found if another change
    follows it.
    """
    n = len(values)
    distances = np.abs(values[:, None] - values[None, :])
    sums = np.zeros((n + 1, n + 1))
    sums[1:, 1:] = distances.cumsum(axis=0).cumsum(axis=1)
    split, end = np.arange(FEWEST, n - FEWEST + 1)[:, None], np.arange(2 * FEWEST, n + 1)[None, :]
    left, right = split, end - split
    valid = right >= FEWEST
    right = np.where(valid, right, FEWEST)
    within_left = sums[split, split]
    across = sums[split, end] - within_left
    within_right = sums[end, end] - 2 * sums[split, end] + within_left
    energy = 2 * across / (left * right) - within_left / (left * (left - 1)) - within_right / (right * (right - 1))
    scaled = np.where(valid, left * right / (left + right) * energy, -np.inf)
    index = int(np.argmax(scaled))
    return float(scaled.flat[index]), int(split[index // scaled.shape[1], 0])


def _share_as_good(series: Floats, segments: Sequence[slice], best: float, draw: np.random.Generator) -> float:
    """Returns the share of permutations in which the best split is at least as good as `best`. Values are permuted
    within their segments, and the series itself counts as one permutation.

    The function returns early if the share exceeds 5% whatever the remaining permutations are.
    """
    as_good = 1
    for _ in range(_PERMUTATIONS):
        as_good += max(_best_split(draw.permutation(series[part]))[0] for part in segments) >= best
        if as_good > ALPHA * (_PERMUTATIONS + 1):
            break
    return as_good / (_PERMUTATIONS + 1)
