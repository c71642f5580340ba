"""The universal scalability law, which describes the throughput by the number of clients, fitted to the blocks of a
study: its parameters, its peak, and a test of whether it fits.

The law is X(n) = g n / (1 + a (n - 1) + b n (n - 1)) with g > 0, 0 <= a <= 1, b >= 0 (Gunther 1993, A simple capacity
model of massively parallel transaction systems). Here a is the share of the work that cannot be done in parallel, and b
what clients cost each other. The peak is at n = sqrt((1 - a) / b). In the form n / X = q0 + q1 n + q2 n (n - 1) with
all q >= 0, the bounds of the parameters hold by themselves, and each Gauss-Newton step on ln X is a least squares
problem without negative unknowns (Lawson and Hanson 1974).

Intervals are those of the jackknife that leaves out one block at a time (Tukey 1958), with Student's quantile. In
simulations with noise of 3% and 4 or 10 blocks, they covered the peak and the largest throughput in 94.8 to 95.9% of
2,000 studies each, even if the tested numbers of clients end at 0.6 of the peak.

The law is a description and not a theory of servers. Where it does not hold, its parameters have no meaning. A test
therefore compares the distances between the curve and the means over the blocks with the noise of these means (Box
1954, Some theorems on quadratic forms applied in the study of analysis of variance problems, Annals of Mathematical
Statistics 25, 290 to 302; Brunner, Dette and Munk 1997, Box-type approximations in nonparametric factorial designs,
JASA 92, 1494 to 1502). Unlike the F test of the analysis of variance, the test allows for noise that is larger at some
numbers of clients.
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
"""The smallest number of different numbers of clients to which the law is fitted. The law has three parameters."""

FEWEST_BLOCKS = 4
"""The smallest number of blocks for which the jackknife gives intervals."""

_LEVEL = 0.1
"""The probability that the test rejects a law which is true. It is more than 5%, because rejecting a true law costs
only a number, while keeping a false law gives a wrong peak."""

_LACK_BY_P8 = 2.0
"""The misfit, divided by the noise of a block, above which studies by the rule P8 rejected the law."""

_STEPS = 50
_CONVERGED = 1e-10
_NEGLIGIBLE = 1e-9
"""The largest value of b that counts as zero. The throughput then does not fall with more clients."""


@dataclass(frozen=True)
class Curve:
    """The law with given parameters, which gives the throughput for a number of clients."""

    single: float
    """The parameter g: the throughput of a single client."""
    serial: float
    """The parameter a: the share of the work that cannot be done in parallel."""
    mutual: float
    """The parameter b: the cost that clients cause each other."""

    def speed(self, clients: float) -> float:
        """Returns the throughput with this number of clients."""
        return self.single * clients / (1 + self.serial * (clients - 1) + self.mutual * clients * (clients - 1))

    @property
    def peak(self) -> float:
        """Returns the number of clients with the largest throughput; infinity if the throughput does not fall with more
        clients."""
        return math.sqrt((1 - self.serial) / self.mutual) if self.mutual > _NEGLIGIBLE else math.inf

    def highest(self, fewest: float, most: float) -> float:
        """Returns the largest throughput from `fewest` to `most` clients."""
        return self.speed(min(max(self.peak, fewest), most))


def fit(clients: Sequence[int], logs: Floats) -> Curve | None:
    """Returns the law that fits the logarithms of throughput `logs` by least squares; None if no such law comes near
    the values."""
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
    """The number of clients at the peak; infinity if the throughput does not fall with more clients."""
    highest: Interval
    """The largest throughput within the tested numbers of clients."""
    bands: tuple[Interval, ...]
    """The curve at each tested number of clients."""
    misfit: float
    """The distance between the means over the blocks and the curve: the root mean square of their log-ratios, where the
    number of parameters is subtracted from the number of means."""
    noise: float
    """The standard deviation of a block's logarithms of throughput about the means over the blocks, without the level
    of the block."""

    p: float
    """The probability of a misfit of this size or larger, if the law is true."""

    @property
    def fits(self) -> bool:
        """True if the test does not reject the law."""
        return self.p > _LEVEL

    @property
    def fitted_by_p8(self) -> bool:
        """True if studies by the rule P8 accept the law. Results of their bundles must stay the same."""
        return self.misfit <= _LACK_BY_P8 * self.noise


def scalability(clients: Sequence[int], blocks: Floats) -> Scalability | None:
    """Fits the law to logarithms of throughput. `blocks` has a row for each block and a column for each number of
    clients.

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
    """Returns the probability of a misfit of this size or larger if the law is true. `residuals` are the differences of
    the blocks from the curve.

    Only the part of the residuals that no change of the law's parameters explains counts. This removes what all numbers
    of clients in a block have in common. The mean square of the blocks' means is compared with the mean square of their
    noise. Both get the degrees of freedom of the chi-squared variable that has the same mean and variance. A parameter
    at its bound, such as a peak at infinity, does not count as fitted.
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
    """Returns `value`, which is computed from all blocks, with its jackknife interval. The interval is unbounded if one
    of the values is infinite.

    `replicates` has the same quantity, computed without each of the blocks in turn.
    """
    if not np.isfinite([value, *replicates]).all():
        return Interval(-math.inf, value, math.inf)
    n = len(replicates)
    half = quantile(ALPHA, n - 1) * math.sqrt((n - 1) * float(np.var(replicates)))
    return Interval(value - half, value, value + half)


def _inverse_square(curve: Curve) -> float:
    """Returns 1 / n^2 for the number of clients n at the peak; 0 if the throughput does not fall with more clients."""
    return curve.peak**-2 if curve.peak else math.inf


def _peak(inverse_square: Interval, peak: Interval) -> Interval:
    """Returns the interval of the peak. It is computed on the scale of ln n, or of 1 / n^2 if the curve may have no
    peak."""
    if inverse_square.low > 0:
        return peak
    return Interval(inverse_square.high**-0.5 if inverse_square.high > 0 else math.inf, peak.estimate, math.inf)


def _exponential(interval: Interval) -> Interval:
    with np.errstate(over="ignore"):
        return Interval(*(float(value) for value in np.exp([interval.low, interval.estimate, interval.high])))


def _within(interval: Interval, least: float, most: float) -> Interval:
    low, high = np.clip([interval.low, interval.high], least, most)
    return Interval(float(low), interval.estimate, float(high))
