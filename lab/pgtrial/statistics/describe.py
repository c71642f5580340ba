"""Describes values without comparing arms: a robust standard deviation, the interval of a median, the extremes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from scipy.special import bdtr

from pgtrial.model.records.results import Spread
from pgtrial.statistics.p8 import Floats, Values

_TO_SD = 1.4826
"""The standard deviation of normal values divided by their median distance from the centre, 1 / z(0.75)."""


DEVIATIONS = 5.0
"""The number of robust standard deviations from the usual value that is tolerated."""

_UNEVEN = 0.05
"""The level of the test whether counts are unevenly spread over the arms."""


def robust_sd(values: Values, centre: float) -> float:
    """Returns the standard deviation of normal values around `centre`, by the median distance, robust to outliers."""
    return _TO_SD * float(np.median(np.abs(np.asarray(values) - centre)))


def interactions(blocks: Floats) -> Floats:
    """Returns what remains of the values after the mean of each block (a row) and of each column is subtracted."""
    left: Floats = blocks - blocks.mean(axis=0) - blocks.mean(axis=1, keepdims=True) + blocks.mean()
    return left


FEWEST_FOR_MEDIAN = 6
"""The number of values from which the interval of a median has bounds."""


def median_interval(ascending: list[float]) -> tuple[float | None, float | None]:
    """Returns the narrowest pair of order statistics that holds the median with at least 95%; None below six values.

    Distribution-free: the number of values below the median is binomial with probability one half.
    """
    n = len(ascending)
    rank = int(np.searchsorted(bdtr(np.arange(n), n, 0.5), 0.025))
    if rank < 1:
        return None, None
    return ascending[rank - 1], ascending[n - rank]


def spread(values: Sequence[float]) -> Spread | None:
    """Returns the median, the lowest and the highest of the values; None without values."""
    return Spread(median=float(np.median(values)), lowest=min(values), highest=max(values)) if values else None


def uneven(counts: Mapping[str, int], arms: int) -> list[tuple[str, int, float]]:
    """Returns the arms with more than their share of the counts, by an exact binomial test at 5%, one arm at a time."""
    total = sum(counts.values())
    shares = [(arm, count, _binomial_p(count, total, arms)) for arm, count in counts.items()]
    return [(arm, count, p) for arm, count, p in shares if count > total / arms and p < _UNEVEN]


def _binomial_p(hits: int, of: int, arms: int) -> float:
    """Returns the two-sided p-value of `hits` among `of` events that each hit one of `arms` arms with equal
    probability.

    It is the probability of all counts that are no likelier than `hits`, summed in whole numbers and so exact.
    """
    ways = [math.comb(of, count) * (arms - 1) ** (of - count) for count in range(of + 1)]
    return float(sum(number for number in ways if number <= ways[hits]) / arms**of)
