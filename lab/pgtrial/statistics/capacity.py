"""The capacity: the highest rate at which transactions keep a promise on their response time, found by short probes.

A search knows the readings of its probes and names the next rate. It first brackets the capacity, with steps that
grow, and halves the bracket until it is narrow. Then it probes on both sides of its estimate. The estimate is a fit of
the shares of slower transactions over the logarithm of the rate: the odds grow as a power of the rate, and cross those
of the promise at the capacity. Probes count by their distance from the crossing, so that the shape far from it says
nothing. Nothing here draws random numbers or knows an arm.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

CLOSE = 6
"""The number of probes that a search makes after its bracket has become narrow."""

MOST = 18
"""The largest number of probes of a search."""

MOST_BROKEN = 8
"""The number of probes after which a search gives up if none kept the promise. The last one is at 1/44 of the first
rate."""

EXPECTED = CLOSE + 2
"""The number of probes of a search that begins near the capacity."""

FIRST_STEP = 0.06
"""The first step of the search for a bracket, in logarithms of the rate; each further step is twice as long."""

_LONGEST_STEP = 0.96
NARROW = 0.15
"""The width up to which a bracket is narrow, in logarithms of the rate."""

_APART = 0.5
"""The distance of the later probes from the estimate, in logarithms of the odds."""

_WIDTH = 1.5
"""The standard deviation of the normal weights of the probes around the crossing, in logarithms of the odds."""

_OVERDISPERSION = 4.0
"""The number of slower transactions that count as one independent one, since they come in the same busy periods."""

_SLOPE, _SLOPE_SPREAD = 20.0, 1.0
"""The median of the slopes that are expected before any probe, and the standard deviation of their logarithm."""

_SLOPES = np.exp(np.linspace(math.log(2.0), math.log(400.0), 24))
_PLACES, _FINER = 49, 3
"""The number of rates that a round of the fit tries as the one at which the promise is just kept, and the number of
rounds. Each round lies between the neighbours of the best rate so far."""

_LEAST_WEIGHT = 1e-3
"""The smallest weight of a probe, however far it is from the crossing."""

_ROUNDS = 3
"""The number of times that probes are weighted by their distance from the crossing."""

_FLOATS = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Promise:
    """The promise that a rate has to keep, as shares of the transactions."""

    slower: float
    """The share of transactions that may take longer than the limit or fail."""
    failed: float
    """The share of transactions that may fail."""


@dataclass(frozen=True)
class Reading:
    """The result of a probe."""

    rate: float
    """The rate that the probe asked for, transactions per second."""
    transactions: float
    slower: float
    """The number of transactions that took longer than the limit, waited longer than it for their start, or failed."""
    failed: float = 0.0

    def strain(self, promise: Promise) -> float:
        """Returns how much of the promise the rate uses up; above 1 it breaks the promise.

        A probe without a transaction breaks the promise.
        """
        if self.transactions <= 0:
            return 1 / promise.slower
        slower = self.slower / self.transactions / promise.slower
        failed = self.failed / self.transactions / promise.failed if promise.failed else math.inf * (self.failed > 0)
        return min(max(slower, failed if self.failed else 0.0), 1 / promise.slower)


def next_rate(start: float, readings: Sequence[Reading], promise: Promise, at_most: float = math.inf) -> float | None:
    """Returns the rate of the next probe of a search that begins at `start`; None: the search has ended.

    No rate is above `at_most`; a probe at that rate which keeps the promise ends the search.
    """
    if any(reading.rate >= at_most and reading.strain(promise) <= 1 for reading in readings):
        return None
    rate = _next_rate(start, readings, promise)
    return min(rate, at_most) if rate is not None else None


def _next_rate(start: float, readings: Sequence[Reading], promise: Promise) -> float | None:
    if not readings:
        return start
    kept, broken = _rates(readings, promise)
    if len(readings) >= (MOST if kept else MOST_BROKEN):
        return None
    if not kept or not broken:
        step = min(FIRST_STEP * 2 ** (len(readings) - 1), _LONGEST_STEP)
        return max(kept) * math.exp(step) if kept else min(broken) * math.exp(-step)
    wide = sum(not _is_narrow(readings[:number], promise) for number in range(1, len(readings) + 1))
    close = len(readings) - wide
    if not close:
        return math.sqrt(max(kept) * min(broken))
    if close > CLOSE:
        return None
    crossing, slope = _fitted(readings, promise)
    side = -1 if close % 2 else 1
    return math.exp(crossing + side * _APART / slope)


def capacity(readings: Sequence[Reading], promise: Promise) -> float | None:
    """Returns the highest rate that keeps the promise, by all probes of a search; None if no probe kept it."""
    strains = [reading.strain(promise) for reading in readings]
    if not strains or min(strains) > 1:
        return None
    if max(strains) <= 1:
        return max(reading.rate for reading in readings)
    return math.exp(_fitted(readings, promise)[0])


def _rates(readings: Sequence[Reading], promise: Promise) -> tuple[list[float], list[float]]:
    """Returns the rates that kept the promise, and those that broke it."""
    kept = [reading.rate for reading in readings if reading.strain(promise) <= 1]
    return kept, [reading.rate for reading in readings if reading.strain(promise) > 1]


def _is_narrow(readings: Sequence[Reading], promise: Promise) -> bool:
    """True if the highest rate that kept the promise is near the lowest that broke it, or above it.

    Further probes cannot make that false.
    """
    kept, broken = _rates(readings, promise)
    return bool(kept and broken) and math.log(min(broken) / max(kept)) <= NARROW


@dataclass(frozen=True)
class _Shares:
    """The probes of a search as arrays, as the fit needs them."""

    at: _FLOATS
    """The logarithms of the rates."""
    of: _FLOATS
    """The shares of slower transactions."""
    weights: _FLOATS
    odds: float
    """The logarithm of share / (1 - share), for the share of slower transactions that the promise allows."""

    def best(self, low: float, high: float) -> tuple[float, float]:
        """Returns the logarithm of the most likely rate, between these bounds, at which the promise is just kept, and
        the slope of the odds there."""
        first, last = low, high
        for _ in range(_FINER):
            places = np.linspace(low, high, _PLACES)
            logits = self.odds + _SLOPES[:, None, None] * (self.at - places[:, None])
            # logarithms of the share and of its complement, without overflow
            log_share, log_rest = -np.logaddexp(0.0, -logits), -np.logaddexp(0.0, logits)
            likelihood = (self.weights * (self.of * log_share + (1 - self.of) * log_rest)).sum(axis=2)
            prior = -0.5 * (np.log(_SLOPES / _SLOPE) / _SLOPE_SPREAD) ** 2
            slope, place = np.unravel_index(np.argmax(likelihood + prior[:, None]), likelihood.shape)
            step = places[1] - places[0]
            low, high = max(places[place] - step, first), min(places[place] + step, last)
        return float(places[place]), float(_SLOPES[slope])


def _fitted(readings: Sequence[Reading], promise: Promise) -> tuple[float, float]:
    """Returns the logarithm of the rate at which the promise is just kept, and the slope of the odds over it.

    Some probes must have kept the promise, and some must have broken it.
    """
    at = np.array([math.log(reading.rate) for reading in readings])
    shares = np.array([min(1.0, reading.strain(promise) * promise.slower) for reading in readings])
    weights = np.array([max(1.0, reading.transactions) for reading in readings]) / _OVERDISPERSION
    kept = shares <= promise.slower
    low, high = min(at[kept].max(), at[~kept].min()), max(at[kept].max(), at[~kept].min())
    margin = max(FIRST_STEP, high - low)
    # an estimate beyond all probes would rest on the shape alone
    low, high = max(low - margin, at.min()), min(high + margin, at.max())
    known = _Shares(at, shares, weights, math.log(promise.slower / (1 - promise.slower)))
    crossing, slope = known.best(low, high)
    for _ in range(_ROUNDS):
        distance = slope * (at - crossing) / _WIDTH
        crossing, slope = replace(known, weights=weights * np.maximum(np.exp(-0.5 * distance**2), _LEAST_WEIGHT)).best(
            low, high
        )
    return crossing, slope
