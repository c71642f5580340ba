"""Finds the capacity of a server by short probes: the highest rate at which its transactions keep a promise on their
response time.

From the results of all probes so far, a search chooses the rate of the next probe. It first looks for a rate that keeps
the promise and one that breaks it, with steps that grow. Between the two it halves the interval until it is narrow.
Then it probes on both sides of its estimate of the capacity. For the estimate, a curve is fitted to the shares of
slower transactions over the logarithm of the rate: the odds of a slower transaction grow as a power of the rate, and at
the capacity they are the odds that the promise allows. Probes far from the capacity have little weight, so that the
form of the curve does not matter there. No function here draws random numbers or knows which arm it works for.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

CLOSE = 6
"""The number of probes that a search makes after the interval around the capacity has become narrow."""

MOST = 18
"""The largest number of probes in a search."""

MOST_BROKEN = 8
"""The number of probes after which a search gives up if the promise was broken in each of them. The last of these
probes has 1/44 of the rate of the first one."""

EXPECTED = CLOSE + 2
"""The usual number of probes of a search that begins near the capacity."""

FIRST_STEP = 0.06
"""The first step between rates, as a difference of logarithms. Each further step is twice as long, but at most
`_LONGEST_STEP`, until one rate keeps the promise and another breaks it."""

_LONGEST_STEP = 0.96
NARROW = 0.15
"""The width up to which the interval around the capacity counts as narrow, as a difference of logarithms of the
rate."""

_APART = 0.5
"""The distance of the last probes from the estimated capacity, in the logarithm of the odds (share / (1 - share)) of a
transaction that is slower than the limit."""

_WIDTH = 1.5
"""The standard deviation of the normal curve around the estimated capacity by which the probes are weighted. It is in
the logarithm of the odds (share / (1 - share)) of a transaction that is slower than the limit."""

_OVERDISPERSION = 4.0
"""The number of slower transactions that count as a single independent one. Slower transactions come together in busy
periods, so they are not independent."""

_SLOPE, _SLOPE_SPREAD = 20.0, 1.0
"""The assumption of the fit before any probe about the slope, by which the logarithm of the odds of a slower
transaction grows with the logarithm of the rate: its median, and the standard deviation of its logarithm."""

_SLOPES = np.exp(np.linspace(math.log(2.0), math.log(400.0), 24))
_PLACES, _FINER = 49, 3
"""`_FINER` is the number of rounds in which the fit refines the capacity. In each round it tries `_PLACES` rates
between the neighbours of the best rate so far."""

_LEAST_WEIGHT = 1e-3
"""The smallest weight of a probe, however far it is from the estimated capacity."""

_ROUNDS = 3
"""The number of times that the fit weights the probes again by their distance from the estimated capacity."""

_FLOATS = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Promise:
    """The promise that a rate has to keep: the largest share of the transactions that may be slow, and the largest
    share that may fail."""

    slower: float
    """The share of transactions that may take longer than the time limit or fail."""
    failed: float
    """The share of transactions that may fail."""


@dataclass(frozen=True)
class Reading:
    """The counts of transactions that one probe gave."""

    rate: float
    """The rate at which the probe ran, in transactions per second."""
    transactions: float
    slower: float
    """The number of transactions that took longer than the time limit, waited longer than the limit for their start, or
    failed."""
    failed: float = 0.0

    def strain(self, promise: Promise) -> float:
        """Returns how much of the promised limits the rate uses up: a value above 1 means that the response times or
        the failures exceed their limit at this rate.

        A probe without any transaction counts as breaking the promise.
        """
        if self.transactions <= 0:
            return 1 / promise.slower
        slower = self.slower / self.transactions / promise.slower
        failed = self.failed / self.transactions / promise.failed if promise.failed else math.inf * (self.failed > 0)
        return min(max(slower, failed if self.failed else 0.0), 1 / promise.slower)


def next_rate(start: float, readings: Sequence[Reading], promise: Promise, at_most: float = math.inf) -> float | None:
    """Returns the rate of the next probe, for a search that begins at the rate `start`; None if the search has ended.

    No rate is above `at_most`. If a probe at that rate keeps the promise, the search has ended.
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
    """Returns the highest rate that keeps the promise, estimated from all probes of a search; None if no probe kept the
    promise."""
    strains = [reading.strain(promise) for reading in readings]
    if not strains or min(strains) > 1:
        return None
    if max(strains) <= 1:
        return max(reading.rate for reading in readings)
    return math.exp(_fitted(readings, promise)[0])


def _rates(readings: Sequence[Reading], promise: Promise) -> tuple[list[float], list[float]]:
    """Returns the rates of the probes that kept the promise, and the rates of the probes that broke it."""
    kept = [reading.rate for reading in readings if reading.strain(promise) <= 1]
    return kept, [reading.rate for reading in readings if reading.strain(promise) > 1]


def _is_narrow(readings: Sequence[Reading], promise: Promise) -> bool:
    """True if the highest rate that kept the promise is near the lowest rate that broke it, or above it.

    Once this is true, further probes cannot make it false.
    """
    kept, broken = _rates(readings, promise)
    return bool(kept and broken) and math.log(min(broken) / max(kept)) <= NARROW


@dataclass(frozen=True)
class _Shares:
    """The results of the probes as arrays, with the weights of the fit."""

    at: _FLOATS
    """The logarithms of the probes' rates."""
    of: _FLOATS
    """The probes' shares of slower transactions. If the failures use up more of their own limit, this is the share of
    slower transactions that would use up as much."""
    weights: _FLOATS
    odds: float
    """The largest share of slower transactions that the promise allows, as the logarithm of its odds, share / (1 -
    share)."""

    def best(self, low: float, high: float) -> tuple[float, float]:
        """Returns the logarithm of the most likely capacity between these bounds, and the slope of the logarithm of the
        odds at the capacity."""
        first, last = low, high
        for _ in range(_FINER):
            grid = np.linspace(low, high, _PLACES)
            logits = self.odds + _SLOPES[:, None, None] * (self.at - grid[:, None])
            # logarithms of the share and of its complement, without overflow
            log_share, log_rest = -np.logaddexp(0.0, -logits), -np.logaddexp(0.0, logits)
            likelihood = (self.weights * (self.of * log_share + (1 - self.of) * log_rest)).sum(axis=2)
            prior = -0.5 * (np.log(_SLOPES / _SLOPE) / _SLOPE_SPREAD) ** 2
            slope, index = np.unravel_index(np.argmax(likelihood + prior[:, None]), likelihood.shape)
            step = grid[1] - grid[0]
            low, high = max(grid[index] - step, first), min(grid[index] + step, last)
        return float(grid[index]), float(_SLOPES[slope])


def _fitted(readings: Sequence[Reading], promise: Promise) -> tuple[float, float]:
    """Returns the logarithm of the estimated capacity, and the slope of the logarithm of the odds over the logarithm of
    the rate.

    Some probes must have kept the promise, and some must have broken it.
    """
    at = np.array([math.log(reading.rate) for reading in readings])
    shares = np.array([min(1.0, reading.strain(promise) * promise.slower) for reading in readings])
    weights = np.array([max(1.0, reading.transactions) for reading in readings]) / _OVERDISPERSION
    kept = shares <= promise.slower
    low, high = min(at[kept].max(), at[~kept].min()), max(at[kept].max(), at[~kept].min())
    margin = max(FIRST_STEP, high - low)
    # an estimate beyond all probes would depend on the form of the curve alone
    low, high = max(low - margin, at.min()), min(high + margin, at.max())
    known = _Shares(at, shares, weights, math.log(promise.slower / (1 - promise.slower)))
    crossing, slope = known.best(low, high)
    for _ in range(_ROUNDS):
        distance = slope * (at - crossing) / _WIDTH
        crossing, slope = replace(known, weights=weights * np.maximum(np.exp(-0.5 * distance**2), _LEAST_WEIGHT)).best(
            low, high
        )
    return crossing, slope
