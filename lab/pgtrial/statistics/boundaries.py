"""The quantiles at which the looks of a sequential test reject, for normal values: what forecasts rest on.

A test that spends a given error until each look rejects at look k if the standardised mean exceeds a bound b(k). With
normal values the bounds follow from the joint distribution of the means, by numerical integration over the sums that
no earlier look has rejected (Armitage, McPherson and Rowe 1969, Journal of the Royal Statistical Society A 132, 235 to
244; Lan and DeMets 1983, Biometrika 70, 659 to 663). The rule P9 itself does not use them: it is exact for any noise.
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
"""The number of standard deviations that the grid of sums reaches on either side. Sums beyond it have a probability of
1e-15."""

_POINTS = 301
"""The number of points of the grid; with twice as many, the bounds change by less than 0.001."""


def bounds(units: Sequence[int], spent: Sequence[float]) -> list[float]:
    """Returns the bound of each look on the standardised mean; infinity for a look that spends nothing.

    `units` are the units at each look, ascending, and `spent` the one-sided errors that may have been spent until then.
    """
    return list(_until(tuple(units), tuple(spent)).bounds)


@lru_cache(maxsize=1024)
def _until(units: tuple[int, ...], spent: tuple[float, ...]) -> _Looked:
    """Returns the state after looks at these numbers of units. It is cached, so that plans with the same first looks
    share the computation."""
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
    """The state after the looks so far: their bounds, the distribution of the sums that they have not rejected, and the
    error that they have spent."""

    bounds: tuple[float, ...]
    sums: _Sums
    units: int
    used: float


@dataclass(frozen=True)
class _Sums:
    """The sums of normal values that no look has rejected: points and the probability at each."""

    points: Floats
    mass: Floats

    def beyond(self, limit: float, deviation: float) -> float:
        """Returns the probability that the sum with the next values, of this deviation, exceeds a limit."""
        return float(self.mass @ ndtr((self.points - limit) / deviation))

    def exceeded_with(self, probability: float, deviation: float, end: float) -> float:
        """Returns the limit that is exceeded with a probability, by bisection between -end and end."""
        low, high = -end, end
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if self.beyond(middle, deviation) > probability else (low, middle)
        return high

    def after(self, points: Floats, deviation: float) -> _Sums:
        """Returns the sums with the next values at these points, evenly spaced; what lies beyond them is rejected."""
        weights = np.full(len(points), points[1] - points[0])
        weights[[0, -1]] /= 2
        distances = (points[:, None] - self.points[None, :]) / deviation
        density = np.exp(-0.5 * distances**2) @ self.mass / (deviation * math.sqrt(2 * math.pi))
        return _Sums(points, density * weights)


def nominal(bound: float) -> float:
    """Returns the one-sided error of a single look with this bound."""
    return float(ndtr(-bound))


def quantile(error: float) -> float:
    """Returns the normal quantile that is exceeded with this probability."""
    return -float(ndtri(error))
