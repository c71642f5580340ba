"""The bounds at which the looks (interim analyses) of a sequential test reject, for normally distributed values.
Forecasts use them.

For each look, it is fixed which part of its error the test may have spent by then. The test rejects at look k if the
standardised mean exceeds a bound b(k). For normal values the bounds follow from the joint distribution of the means at
all looks. They are computed by numerical integration over the sums that no earlier look has rejected (Armitage,
McPherson and Rowe 1969, Journal of the Royal Statistical Society A 132, 235 to 244; Lan and DeMets 1983, Biometrika 70,
659 to 663). The rule P9 itself does not use these bounds, because it is exact for any distribution of the noise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import ndtr, ndtri

from pgtrial.statistics.p8 import Floats

_REACH = 8.0
"""The number of standard deviations that the grid of sums reaches on either side. Sums beyond the grid have a
probability of 1e-15."""

_POINTS = 301
"""The number of points of the grid. With twice as many points, the bounds change by less than 0.001."""


def bounds(units: Sequence[int], spent: Sequence[float]) -> list[float]:
    """Returns, for each look (interim analysis), the bound that the standardised mean must exceed for the test to
    reject; infinity for a look that spends none of the error.

    `units` has the number of units (blocks) at each look, in ascending order. `spent` has the one-sided error that the
    test may have spent up to each look.
    """
    return list(_until(tuple(units), tuple(spent)).bounds)


@lru_cache(maxsize=1024)
def _until(units: tuple[int, ...], spent: tuple[float, ...]) -> _Looked:
    """Returns the state of the test after looks (interim analyses) at these numbers of units. The result is cached, so
    that plans with the same first looks share the computation."""
    if not units:
        return _Looked((), _Sums(np.zeros(1), np.ones(1)), 0, 0.0)
    last = _until(units[:-1], spent[:-1])
    now = units[-1]
    deviation, end = math.sqrt(now - last.units), _REACH * math.sqrt(now)
    bound, limit, used = math.inf, end, last.used
    if spent[-1] > used:
        limit = last.sums.exceeded_with(spent[-1] - used, deviation, end)
        bound, used = limit / math.sqrt(now), used + last.sums.beyond(limit, deviation)
    sums = last.sums.after(np.linspace(-end, limit, _POINTS), deviation)
    return _Looked((*last.bounds, bound), sums, now, used)


@dataclass(frozen=True)
class _Looked:
    """The state of a test after some looks (interim analyses): the bounds of these looks, the distribution of the sums
    that they have not rejected, and the error that they have spent."""

    bounds: tuple[float, ...]
    sums: _Sums
    units: int
    used: float


@dataclass(frozen=True)
class _Sums:
    """The distribution of the sums of values that no look has rejected, as points and the probability at each point."""

    points: Floats
    mass: Floats

    def beyond(self, limit: float, deviation: float) -> float:
        """Returns the probability that the sum exceeds `limit` after the values up to the next look (interim analysis)
        are added. `deviation` is the standard deviation of the sum of the added values."""
        return float(self.mass @ ndtr((self.points - limit) / deviation))

    def exceeded_with(self, probability: float, deviation: float, end: float) -> float:
        """Returns the limit that the sum exceeds with this probability after the values up to the next look (interim
        analysis) are added. It is found by bisection between -end and end."""
        low, high = -end, end
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if self.beyond(middle, deviation) > probability else (low, middle)
        return high

    def after(self, points: Floats, deviation: float) -> _Sums:
        """Returns the distribution of the sums after the values up to the next look (interim analysis) are added, at
        these evenly spaced points. Sums beyond the points are left out."""
        weights = np.full(len(points), points[1] - points[0])
        weights[[0, -1]] /= 2
        distances = (points[:, None] - self.points[None, :]) / deviation
        density = np.exp(-0.5 * distances**2) @ self.mass / (deviation * math.sqrt(2 * math.pi))
        return _Sums(points, density * weights)


def nominal(bound: float) -> float:
    """Returns the one-sided error of a test with a single look that has this bound."""
    return float(ndtr(-bound))


def quantile(error: float) -> float:
    """Returns the value that a standard normal variable exceeds with this probability."""
    return -float(ndtri(error))
