"""Describes values without comparing arms, for example by a robust standard deviation, the interval of a median, or the
range."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from scipy.special import bdtr

from pgtrial.model.records.results import Spread
from pgtrial.statistics.p8 import Floats, Values

_TO_SD = 1.4826
"""The factor from the median distance to the centre to the standard deviation, for normal values: 1 / z(0.75)."""


DEVIATIONS = 5.0
"""The number of robust standard deviations by which a value may differ from the usual value before it counts as
unusual."""

_UNEVEN = 0.05
"""The level of the test that finds out whether counts are unevenly spread over the arms."""


def robust_sd(values: Values, centre: float) -> float:
    """Returns a standard deviation that a few outliers do not change: the median distance of the values from `centre`,
    scaled so that it is right for normal values."""
    return _TO_SD * float(np.median(np.abs(np.asarray(values) - centre)))


def interactions(blocks: Floats) -> Floats:
    """Returns the values without the mean of their block (row) and without the mean of their column; the overall mean
    is added again."""
    left: Floats = blocks - blocks.mean(axis=0) - blocks.mean(axis=1, keepdims=True) + blocks.mean()
    return left


FEWEST_FOR_MEDIAN = 6
"""The smallest number of values for which the interval of a median has bounds."""


def median_interval(ascending: list[float]) -> tuple[float | None, float | None]:
    """Returns the two values (order statistics) that form the narrowest interval which has the median with a
    probability of at least 95%. Returns None for both if there are fewer than six values.

    No distribution is assumed: the number of values below the median is binomial with probability one half.
    """
    n = len(ascending)
    rank = int(np.searchsorted(bdtr(np.arange(n), n, 0.5), 0.025))
    if rank < 1:
        return None, None
    return ascending[rank - 1], ascending[n - rank]


def spread(values: Sequence[float]) -> Spread | None:
    """Returns the median, the lowest and the highest of the values; None if there are no values."""
    return Spread(median=float(np.median(values)), lowest=min(values), highest=max(values)) if values else None


def uneven(counts: Mapping[str, int], arms: int) -> list[tuple[str, int, float]]:
    """Returns the arms that have significantly more than an equal share of the counts, each with its count and the
    p-value. Each arm is tested separately, by an exact binomial test at 5%."""
    total = sum(counts.values())
    shares = [(arm, count, _binomial_p(count, total, arms)) for arm, count in counts.items()]
    return [(arm, count, p) for arm, count, p in shares if count > total / arms and p < _UNEVEN]


def _binomial_p(hits: int, of: int, arms: int) -> float:
    """Returns the two-sided p-value of `hits` among `of` events, each of which hits one of `arms` arms with equal
    probability.

    The p-value is the probability of all counts that are at most as likely as `hits`. It is summed in integers and
    therefore exact.
    """
    ways = [math.comb(of, count) * (arms - 1) ** (of - count) for count in range(of + 1)]
    return float(sum(number for number in ways if number <= ways[hits]) / arms**of)
