"""The universal scalability law of throughput over clients, fitted to blocks: parameters, peak, lack of fit.

X(n) = g n / (1 + a (n - 1) + b n (n - 1)) with g > 0, 0 <= a <= 1, b >= 0 (Gunther 1993, A simple capacity model of
massively parallel transaction systems): a is the part that is done one after the other, b what clients cost each other.
The peak is at n = sqrt((1 - a) / b). In other letters, n / X = q0 + q1 n + q2 n (n - 1) with all q >= 0: this holds the
bounds by itself, and each Gauss-Newton step on ln X is a least squares problem without negative unknowns (Lawson and
Hanson 1974).

Intervals are those of the delete-one-block jackknife (Tukey 1958) with Student's quantile. In 2,000 simulated studies
each, of 4 and 10 blocks with noise of 3%, they covered the peak and the largest throughput in 94.8 to 95.9%, also where
the tested numbers end at 0.6 of the peak. The law is a description, not a theory of servers, and where it does not
hold, its intervals are those of a number that does not exist. So a test compares how far the means over the blocks lie
from the curve with the noise of these means (Box 1954, Some theorems on quadratic forms applied in the study of
analysis of variance problems, Annals of Mathematical Statistics 25, 290 to 302; Brunner, Dette and Munk 1997, Box-type
approximations in nonparametric factorial designs, JASA 92, 1494 to 1502). Unlike the F test of the analysis of
variance, it allows for noise that is larger at some numbers of clients.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.optimize import nnls
from scipy.special import fdtrc

from pgtrial.statistics.describe import interactions
from pgtrial.statistics.p8 import Floats, Interval
from pgtrial.statistics.paired_t import ALPHA, quantile

FEWEST_NUMBERS = 6
"""The fewest different numbers of clients to which the law, which has three parameters, is fitted."""

FEWEST_BLOCKS = 4
"""The fewest blocks for which a jackknife gives intervals."""

_LEVEL = 0.1
"""The share of true laws that the test of fit rejects. It is more than 5%, because a law that is wrongly rejected only
costs a number, and a law that is wrongly kept gives a wrong peak."""

_LACK_BY_P8 = 2.0
"""The lack of fit, divided by the noise of a block, above which studies by the rule P8 rejected the law."""

_STEPS = 50
_CONVERGED = 1e-10
_NEGLIGIBLE = 1e-9
"""The value of b up to which it counts as zero: the throughput falls nowhere."""


@dataclass(frozen=True)
class Curve:
    """A law with given parameters: the throughput by number of clients."""

    single: float
    """The throughput of one client, g."""
    serial: float
    """The part of the work that is done one after the other, a."""
    mutual: float
    """The cost that clients cause each other, b."""

    def speed(self, clients: float) -> float:
        """Returns the throughput of this number of clients."""
        return self.single * clients / (1 + self.serial * (clients - 1) + self.mutual * clients * (clients - 1))

    @property
    def peak(self) -> float:
        """Returns the number of clients with the largest throughput; infinite if the throughput falls nowhere."""
        return math.sqrt((1 - self.serial) / self.mutual) if self.mutual > _NEGLIGIBLE else math.inf

    def highest(self, fewest: float, most: float) -> float:
        """Returns the largest throughput from `fewest` to `most` clients."""
        return self.speed(min(max(self.peak, fewest), most))


def fit(clients: Sequence[int], logs: Floats) -> Curve | None:
    """Returns the law with the least squares of ln X; None if it does not describe the values at all."""
    numbers = np.asarray(clients, dtype=np.float64)
    terms = np.column_stack([np.ones(len(numbers)), numbers, numbers * (numbers - 1)])
    target = np.log(numbers) - np.asarray(logs, dtype=np.float64)
    found, _ = nnls(terms / np.exp(target)[:, None], np.ones(len(numbers)))
    best = _squares(terms, target, found)
    for _ in range(_STEPS):
        value = terms @ found
        if not (value > 0).all():
            return None
        step = nnls(terms / value[:, None], 1 + target - np.log(value))[0] - found
        while (squares := _squares(terms, target, found + step)) > best and np.abs(step).max() > 0:
            step = step / 2
        found = found + step
        if best - squares <= _CONVERGED * best:
            break
        best = squares
    single = float(found[0] + found[1])
    return Curve(1 / single, float(found[1]) / single, float(found[2]) / single) if single > 0 else None


def _squares(terms: Floats, target: Floats, found: Floats) -> float:
    value = terms @ found
    return float(np.sum((np.log(value) - target) ** 2)) if (value > 0).all() else math.inf


@dataclass(frozen=True)
class Scalability:
    """The law fitted to all blocks, with 95% intervals of its parameters and of its peak."""

    curve: Curve
    single: Interval
    serial: Interval
    mutual: Interval
    peak: Interval
    """The number of clients at the peak; infinite if the throughput falls nowhere."""
    highest: Interval
    """The largest throughput within the tested numbers of clients."""
    bands: tuple[Interval, ...]
    """The curve at each tested number of clients."""
    misfit: float
    """The distance of the means from the curve: the root mean square of the log-ratios, with degrees of freedom reduced
    by the number of parameters."""
    noise: float
    """The standard deviation of a block's log throughput about the means, without the level of the block."""

    p: float
    """The probability of this lack of fit, or a larger one, if the law holds."""

    @property
    def fits(self) -> bool:
        """True if the test of fit does not reject the law."""
        return self.p > _LEVEL

    @property
    def fitted_by_p8(self) -> bool:
        """True if studies by the rule P8 accept the law. Verdicts on their bundles must stay as they were."""
        return self.misfit <= _LACK_BY_P8 * self.noise


def scalability(clients: Sequence[int], blocks: Floats) -> Scalability | None:
    """Fits the law to ln throughput, with a row for each block and a column for each number of clients.

    Returns None if there are too few values, or if a fit fails.
    """
    n, numbers = blocks.shape
    if n < FEWEST_BLOCKS or numbers < FEWEST_NUMBERS:
        return None
    means = blocks.mean(axis=0)
    curve = fit(clients, means)
    others = [fit(clients, (n * means - block) / (n - 1)) for block in blocks]
    replicates = [other for other in others if other is not None]
    if curve is None or len(replicates) < n:
        return None

    def estimate(value: Callable[[Curve], float]) -> Interval:
        return jackknife(value(curve), [value(replicate) for replicate in replicates])

    def ratio(value: Callable[[Curve], float]) -> Interval:
        return _exponential(estimate(lambda law: math.log(value(law)) if value(law) else -math.inf))

    fitted = np.log([curve.speed(number) for number in clients])
    return Scalability(
        curve,
        single=ratio(lambda law: law.single),
        serial=_within(estimate(lambda law: law.serial), 0.0, 1.0),
        mutual=_within(estimate(lambda law: law.mutual), 0.0, math.inf),
        peak=_peak(estimate(_inverse_square), ratio(lambda law: law.peak)),
        highest=ratio(lambda law: law.highest(min(clients), max(clients))),
        bands=tuple(ratio(partial(Curve.speed, clients=number)) for number in clients),
        misfit=math.sqrt(float(np.sum((means - fitted) ** 2)) / (numbers - 3)),
        noise=math.sqrt(float(np.sum(interactions(blocks) ** 2)) / ((n - 1) * (numbers - 1))),
        p=_lack_of_fit(clients, curve, blocks - fitted),
    )


def _lack_of_fit(clients: Sequence[int], curve: Curve, residuals: Floats) -> float:
    """Returns the probability that a law which holds is missed by so much, from the distances of the blocks to it.

    Only what no change of the law's parameters explains counts. That leaves out what all numbers of a block have in
    common. The mean square of the blocks' means is compared with that of their noise; both have the degrees of freedom
    of a chi-squared variable with the same mean and variance. A parameter at its bound, such as a peak at infinity, is
    not one that was fitted.
    """
    numbers = np.asarray(clients, dtype=np.float64)
    terms = np.column_stack([np.ones(len(numbers)), numbers, numbers * (numbers - 1)])
    speeds = np.asarray([curve.speed(number) for number in clients])
    fitted = [curve.serial < 1, curve.serial > _NEGLIGIBLE, curve.mutual > _NEGLIGIBLE]
    gradient = (terms * (speeds / numbers)[:, None])[:, fitted]
    unexplained = residuals @ np.linalg.qr(gradient, mode="complete")[0][:, gradient.shape[1] :]
    n = len(unexplained)
    covariance = np.cov(unexplained.T)
    noise, lack = float(np.trace(covariance)), n * float(np.sum(unexplained.mean(axis=0) ** 2))
    if noise <= _NEGLIGIBLE**2:
        return float(lack <= _NEGLIGIBLE**2)
    freedom = noise**2 / float(np.sum(covariance**2))
    return float(fdtrc(freedom, (n - 1) * freedom, lack / noise))


def jackknife(value: float, replicates: Sequence[float]) -> Interval:
    """Returns `value`, which all blocks give, with its jackknife interval; unbounded if one of the values is infinite.

    `replicates` are the same value, computed without each of the blocks in turn.
    """
    if not np.isfinite([value, *replicates]).all():
        return Interval(-math.inf, value, math.inf)
    n = len(replicates)
    half = quantile(ALPHA, n - 1) * math.sqrt((n - 1) * float(np.var(replicates)))
    return Interval(value - half, value, value + half)


def _inverse_square(curve: Curve) -> float:
    """Returns 1 / n^2 for the n at the peak; 0 if the throughput falls nowhere."""
    return curve.peak**-2 if curve.peak else math.inf


def _peak(inverse_square: Interval, peak: Interval) -> Interval:
    """Returns the peak's interval, computed on the scale of ln n, or of 1 / n^2 if the curve may have no peak."""
    if inverse_square.low > 0:
        return peak
    return Interval(inverse_square.high**-0.5 if inverse_square.high > 0 else math.inf, peak.estimate, math.inf)


def _exponential(interval: Interval) -> Interval:
    with np.errstate(over="ignore"):
        return Interval(*(float(value) for value in np.exp([interval.low, interval.estimate, interval.high])))


def _within(interval: Interval, least: float, most: float) -> Interval:
    low, high = np.clip([interval.low, interval.high], least, most)
    return Interval(float(low), interval.estimate, float(high))
