"""The rule P8: at planned looks, an exact signed-rank interval of the block log-ratios; all looks together err in 5%.

Why it is exact. The order of the arms within a block is a fair coin of the lab. If the arms do not differ, each block's
log-ratio therefore has a random sign whatever the noise is: drifting, autocorrelated, heavy-tailed. The signed-rank
statistic (Wilcoxon 1945) has one known distribution under such signs, and inverting the test gives an interval of the
log-ratio (Hodges and Lehmann 1963; Hollander, Wolfe, Chicken: Nonparametric Statistical Methods, 3rd ed., 3.1 to 3.3).
The looks share the 5% by the union bound, so every verdict read off the interval at any planned look, and all of them
together, are wrong in at most 5% of studies. Ties and zeros make the rule more cautious, never less.

Log-ratios are natural logarithms of goodput(arm) / goodput(baseline); positive means that the arm is faster.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import count, islice, takewhile
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, ndtri

Floats = npt.NDArray[np.float64]
Values = Sequence[float] | Floats
Planned = Sequence[int] | None
"""The planned looks, in blocks; None stands for the looks of the table, without end."""
Verdict = Literal["better", "worse", "equivalent", "undecided"]
Limits = tuple[float, float]
"""The limits between which, exclusively, a difference counts as equivalent, on the scale of the values."""

WORST = math.log(1000.0)
"""The magnitude of a failed trial's log-ratio, and the cap of all others: the worst possible rank, never dropped."""

TOLERATED = Fraction(1, 8)
"""The share of an arm's trials at a load point that may be spoilt before a finding withholds the verdict.

Two arms then spoil a quarter of the blocks at most, fewer than the 29% at which the Hodges-Lehmann estimate breaks down
(Hodges 1967, Efficiency in normal samples and tolerance of extreme values); and one trial of the eight of a first look
costs no verdict.
"""

LOOKS = (8, 12, 18, 27, 40, 60, 90, 135, 200, 300)
ALPHAS = (0.00782, 0.0085, 0.0080, 0.0070, 0.0060, 0.0045, 0.0027, 0.0018, 0.0012, 0.0008)
"""The errors of LOOKS; this table never changes. Since the statistic is discrete, the levels that are attained sum to
0.0461; the open end adds at most 0.0017."""

_OPEN_END_GROWTH = 1.5
_OPEN_END_ALPHA = 0.00085

_ROUNDING = 1e-12
"""The slack for comparing a sum of probabilities with a level; at 8 blocks, the smallest step of the null distribution
is 0.004."""


@dataclass(frozen=True, slots=True)
class Look:
    """A number of blocks at which a verdict may be read, and the error that it may spend on all its claims."""

    blocks: int
    alpha: float


@dataclass(frozen=True, slots=True)
class Interval:
    """A Hodges-Lehmann estimate of the log-ratio with its interval; with infinite bounds, nothing is established."""

    low: float
    estimate: float
    high: float

    def within(self, margin: float) -> bool:
        """True if the whole interval lies inside (1 - margin, 1 + margin), as ratios."""
        return self.between(ratio_limits(margin))

    def word(self, limits: Limits) -> Verdict:
        """Returns the verdict of the interval. If it excludes zero, it is better or worse, even between the limits."""
        if self.low > 0:
            return "better"
        if self.high < 0:
            return "worse"
        return "equivalent" if self.between(limits) else "undecided"

    def between(self, limits: Limits) -> bool:
        """True if the whole interval lies inside the limits."""
        return limits[0] < self.low and self.high < limits[1]

    @property
    def established_margin(self) -> float:
        """Returns the smallest margin, a share, within which this interval is equivalent; infinite if there is none."""
        return max(-math.expm1(self.low), math.expm1(self.high)) if math.isfinite(self.low) else math.inf


def log_ratio(arm: float, baseline: float) -> float | None:
    """Returns the log-ratio of two speeds or costs; None if both are zero. A single zero counts as 1000-fold less."""
    if not arm and not baseline:
        return None
    if not arm or not baseline:
        return WORST if arm else -WORST
    return math.log(arm / baseline)


def ratio_limits(margin: float) -> Limits:
    """Returns the log-ratios between which a difference is below `margin`, a share."""
    return math.log1p(-margin), math.log1p(margin)


@dataclass(frozen=True, slots=True)
class Reading:
    """The reading of one claim at one look."""

    look: Look
    level: float
    """The error of this claim at this look: the look's alpha divided by the claims that share it."""
    interval: Interval
    verdict: Verdict
    equivalent: bool
    """True if this look alone would carry the verdict "equivalent", whatever its own verdict is."""
    not_worse: bool = False
    """True if this look excludes that the arm is worse by the margin or more; never by the rule P8."""

    def supports(self, verdict: Verdict) -> bool:
        """True if this look alone would carry that verdict."""
        if verdict == "equivalent":
            return self.equivalent
        return verdict == self.verdict


@dataclass(frozen=True, slots=True)
class Decision:
    """The decision on a claim after the looks so far.

    The first look that decides fixes the verdict; later looks only sharpen the interval.
    """

    readings: tuple[Reading, ...]
    verdict: Verdict
    shown: Reading | None
    """The reading of the last look that carries the verdict, or of the last look if undecided; None before any look."""


def open_ended_looks() -> Iterator[Look]:
    """Yields all possible looks without end. First come those of the table LOOKS. Each later look comes after half as
    many blocks again as the look before it; the first of them may spend `_OPEN_END_ALPHA`, and each further one half as
    much as the one before."""
    yield from map(Look, LOOKS, ALPHAS)
    blocks = LOOKS[-1]
    for step in count():
        blocks = math.ceil(blocks * _OPEN_END_GROWTH)
        yield Look(blocks, _OPEN_END_ALPHA * 0.5**step)


def first_look(claims: int = 1) -> int:
    """Returns the fewest blocks at which `claims` that share the first look's error can be decided: 8, or 9 for two."""
    return next(blocks for blocks in count(LOOKS[0]) if can_decide(Look(blocks, ALPHAS[0]), claims))


def looks(max_blocks: int, claims: int = 1) -> list[int]:
    """Returns the looks, in blocks, of a study of `claims` primary claims that ends after at most `max_blocks`.

    No error is spent before a verdict is possible: the first look is `first_look`, then those of the table follow. An
    end that is fixed beforehand and falls between two looks is a look too, with the error of the next.
    """
    first = first_look(claims)
    if max_blocks < first:
        return []
    table = (look.blocks for look in open_ended_looks())
    between = takewhile(lambda blocks: blocks < max_blocks, (blocks for blocks in table if blocks > first))
    return sorted({first, *between, max_blocks})


def schedule(planned: Sequence[int]) -> list[Look]:
    """Returns the planned looks with their errors: the first look spends the first alpha of the table, and so on."""
    return [Look(blocks, look.alpha) for blocks, look in zip(planned, open_ended_looks(), strict=False)]


@lru_cache(maxsize=64)
def null_distribution(blocks: int) -> Floats:
    """Returns P(W <= w), w = 0 .. n(n+1)/2, of the signed-rank statistic W when all signs are fair coins; exact.

    Adds one rank at a time: rank r is in the sum with probability 1/2 (Hollander, Wolfe and Chicken, 3.1, comment 6).
    """
    density = np.ones(1)
    for rank in range(1, blocks + 1):
        grown = np.zeros(len(density) + rank)
        grown[: len(density)] += density / 2
        grown[rank:] += density / 2
        density = grown
    cumulative: Floats = np.cumsum(density)
    cumulative.flags.writeable = False
    return cumulative


def rejection_threshold(blocks: int, alpha: float) -> int:
    """Returns the largest w with P(min(W+, W-) <= w) <= alpha, two-sided; -1 if not even w = 0 is rare enough."""
    return int(np.searchsorted(null_distribution(blocks), alpha / 2 + _ROUNDING, side="right")) - 1


def walsh_averages(log_ratios: Values) -> Floats:
    """Returns the means of all n(n+1)/2 pairs, each value with itself included, ascending (Walsh 1949)."""
    values = np.clip(np.asarray(log_ratios, dtype=np.float64), -WORST, WORST)
    first, second = np.triu_indices(len(values))
    return np.sort((values[first] + values[second]) / 2)


def interval(log_ratios: Values, alpha: float) -> Interval:
    """Returns the estimate and the exact interval at level 1 - alpha.

    The bounds are the (k+1)-th lowest and highest Walsh average, where k is the threshold. They are infinite if so few
    blocks cannot reach the level. Raises ValueError without any block or with a NaN.
    """
    averages = walsh_averages(log_ratios)
    if not len(averages) or np.isnan(averages[-1]):
        raise ValueError("an interval needs the log-ratio of at least one block, and every one a number")
    estimate = float(np.median(averages))
    threshold = rejection_threshold(len(log_ratios), alpha)
    if threshold < 0:
        return Interval(-math.inf, estimate, math.inf)
    return Interval(float(averages[threshold]), estimate, float(averages[-1 - threshold]))


def decide(log_ratios: Values, margin: float, *, claims: int = 1, planned: Planned = None) -> Decision:
    """Reads a claim at every planned look reached; `claims` is the number of claims that share each look's error."""
    limits, values = ratio_limits(margin), np.asarray(log_ratios, dtype=np.float64)
    readings = []
    for look in open_ended_looks() if planned is None else schedule(planned):
        if look.blocks > len(values):
            break
        readings.append(reading(look, values[: look.blocks], limits, claims))
    return conclude(readings)


def reading(look: Look, values: Values, limits: Limits, claims: int) -> Reading:
    """Returns what a look says of these values, about one of `claims` that share its error."""
    bounds = interval(values, look.alpha / claims)
    return Reading(look, look.alpha / claims, bounds, bounds.word(limits), bounds.between(limits))


def conclude(readings: Sequence[Reading]) -> Decision:
    """Returns the decision that a claim's readings make, in the order of their looks."""
    verdict: Verdict = next((r.verdict for r in readings if r.verdict != "undecided"), "undecided")
    carrying = [reading for reading in readings if reading.supports(verdict)]
    return Decision(tuple(readings), verdict, carrying[-1] if carrying else None)


def can_decide(look: Look, claims: int) -> bool:
    """True if the look's blocks can reach the level at all: even with all signs equal, the error is 2^(1 - blocks)."""
    return rejection_threshold(look.blocks, look.alpha / claims) >= 0


@dataclass(frozen=True, slots=True)
class Present:
    """The estimate and the spread of the values so far, on which a forecast rests."""

    n: int
    estimate: float
    spread: float
    """The standard deviation of a value."""
    margin: float

    @property
    def gap(self) -> float:
        """Returns the larger of two distances of the estimate: to no difference, and to the margin."""
        low, high = ratio_limits(self.margin)
        return max(abs(self.estimate), min(high - self.estimate, self.estimate - low))

    def chance(self, units: int, quantile: float) -> float:
        """Returns the probability that a look at `units` values decides, if the difference is as estimated.

        The later look's estimate includes the present values. So it varies normally about the present estimate, by the
        part that the values to come have in it. `quantile` times the standard error is half of the look's interval.
        """
        low, high = ratio_limits(self.margin)
        half = quantile * self.spread / math.sqrt(units)
        varies = self.spread * math.sqrt(max(units - self.n, 0)) / units

        def below(limit: float) -> float:
            if not varies:
                return float(self.estimate < limit)
            return float(ndtr((limit - self.estimate) / varies))

        within = max(0.0, below(min(high - half, half)) - below(max(low + half, -half)))
        return below(-half) + 1 - below(half) + within


def present(log_ratios: Values, margin: float, *, claims: int = 1, planned: Planned = None) -> Present | None:
    """Returns the estimate and the spread at the last look reached, or of all values before the first look.

    None for fewer than three values.
    """
    if len(log_ratios) < 3:
        return None
    reached = [look for look in _ahead(planned) if look.blocks <= len(log_ratios)]
    look = reached[-1] if reached else Look(len(log_ratios), 0.0)
    n = look.blocks
    # Where the look's own interval is infinite, the widest that n blocks can have stands in for it.
    level = max(look.alpha / claims, 2.0 ** (1 - n))
    now = interval(np.asarray(log_ratios, dtype=np.float64)[:n], level)
    return Present(n, now.estimate, (now.high - now.low) * math.sqrt(n) / (2 * _quantile(level)), margin)


def _ahead(planned: Planned) -> list[Look]:
    """Returns the looks for which forecasts are made."""
    furthest = max((LOOKS[-1], *(planned or ())))
    return list(takewhile(lambda look: look.blocks <= furthest, plan_and_beyond(planned)))


def _quantile(alpha: float) -> float:
    return -float(ndtri(alpha / 2))


def waiting(planned: Planned, blocks: int) -> int:
    """Returns how many of the blocks no look has read yet, since they wait for the next one."""
    return blocks - max((look for look in planned or () if look <= blocks), default=0)


def plan_and_beyond(planned: Planned) -> Iterator[Look]:
    """Yields the planned looks, then later ones of the table, without end, each with the next error still unspent.

    The looks follow from the plan alone. A user who goes on with a study has seen its result. If that result chose the
    next look, the looks would err more often than they may.
    """
    planned_looks = schedule(planned or ())
    yield from planned_looks
    later = (look.blocks for look in open_ended_looks() if not planned_looks or look.blocks > planned_looks[-1].blocks)
    for blocks, unspent in zip(later, islice(open_ended_looks(), len(planned_looks), None), strict=False):
        yield Look(blocks, unspent.alpha)
