"""The rule P8: at planned looks (interim analyses), it computes an exact signed-rank interval of the block log-ratios.
All looks of a study together are wrong with a probability of at most 5%.

Why it is exact: pgtrial decides the order of the arms within a block by a fair coin. If the arms do not differ, each
block's log-ratio therefore has a random sign, whatever the noise is: it may drift, be autocorrelated or have heavy
tails. The signed-rank statistic (Wilcoxon 1945) has one known distribution under such signs, and inverting the test
gives an interval of the log-ratio (Hodges and Lehmann 1963; Hollander, Wolfe, Chicken: Nonparametric Statistical
Methods, 3rd ed., 3.1 to 3.3). The looks share the 5% by the union bound. Therefore the verdicts that are read from the
intervals at all planned looks, taken together, are wrong in at most 5% of studies. Ties and zeros only make the rule
more cautious.

Log-ratios are natural logarithms of goodput(arm) / goodput(baseline); a positive log-ratio means that the arm is
faster.
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
"""The planned looks (interim analyses), as numbers of blocks; None stands for the looks of the table LOOKS and the
endless sequence after them."""
Verdict = Literal["better", "worse", "equivalent", "undecided"]
Limits = tuple[float, float]
"""The limits, on the scale of the values, between which a difference counts as equivalent. A difference that is equal
to a limit does not."""

WORST = math.log(1000.0)
"""The magnitude of a failed trial's log-ratio, which gives it the worst possible rank. All other log-ratios are limited
to this magnitude too."""

TOLERATED = Fraction(1, 8)
"""The share of an arm's trials at a load point that may be disturbed before a finding withholds the verdict.

With this share, disturbances of two arms affect at most a quarter of the blocks. That is less than the 29% at which the
Hodges-Lehmann estimate breaks down (Hodges 1967, Efficiency in normal samples and tolerance of extreme values). A
single disturbed trial among the eight trials of a first look does not cost the verdict.
"""

LOOKS = (8, 12, 18, 27, 40, 60, 90, 135, 200, 300)
ALPHAS = (0.00782, 0.0085, 0.0080, 0.0070, 0.0060, 0.0045, 0.0027, 0.0018, 0.0012, 0.0008)
"""The error that each look (interim analysis) in LOOKS spends. The table never changes, so that older studies keep
their verdicts. Because the statistic is discrete, the errors that are really reached sum to 0.0461; the looks after the
table add at most 0.0017."""

_OPEN_END_GROWTH = 1.5
_OPEN_END_ALPHA = 0.00085

_ROUNDING = 1e-12
"""The tolerance for comparing a sum of probabilities with a level. At 8 blocks, the smallest step of the null
distribution is 0.004."""


@dataclass(frozen=True, slots=True)
class Look:
    """A look, which is an interim analysis: a number of blocks after which a verdict may be read, and the error that
    the look may spend on all of its claims."""

    blocks: int
    alpha: float


@dataclass(frozen=True, slots=True)
class Interval:
    """A Hodges-Lehmann estimate of the log-ratio with its interval. Infinite bounds mean that the values do not limit
    the log-ratio."""

    low: float
    estimate: float
    high: float

    def within(self, margin: float) -> bool:
        """True if the whole interval, as ratios, is between 1 - margin and 1 + margin."""
        return self.between(ratio_limits(margin))

    def word(self, limits: Limits) -> Verdict:
        """Returns the verdict that follows from the interval. An interval without zero gives better or worse, even if
        it is between the limits of equivalence."""
        if self.low > 0:
            return "better"
        if self.high < 0:
            return "worse"
        return "equivalent" if self.between(limits) else "undecided"

    def between(self, limits: Limits) -> bool:
        """True if the whole interval is between the limits."""
        return limits[0] < self.low and self.high < limits[1]

    @property
    def established_margin(self) -> float:
        """Returns the smallest margin, as a share, with which this interval is equivalent; infinity if there is
        none."""
        return max(-math.expm1(self.low), math.expm1(self.high)) if math.isfinite(self.low) else math.inf


def log_ratio(arm: float, baseline: float) -> float | None:
    """Returns the log-ratio of two speeds or costs; None if both are zero. If one of them is zero, it counts as a
    thousandth of the other."""
    if not arm and not baseline:
        return None
    if not arm or not baseline:
        return WORST if arm else -WORST
    return math.log(arm / baseline)


def ratio_limits(margin: float) -> Limits:
    """Returns the two log-ratios between which a difference is smaller than `margin`, which is a share."""
    return math.log1p(-margin), math.log1p(margin)


@dataclass(frozen=True, slots=True)
class Reading:
    """The result of one look (interim analysis) at one claim, which is a comparison that gets a verdict."""

    look: Look
    level: float
    """The error that this claim may spend at this look (interim analysis): the look's error divided by the number of
    claims that share it."""
    interval: Interval
    verdict: Verdict
    equivalent: bool
    """True if the values at this look (interim analysis) alone would justify the verdict "equivalent", even if the
    verdict is another one."""
    not_worse: bool = False
    """True if the values at this look (interim analysis) exclude that the arm is worse by the margin or more. Always
    false with the rule P8."""

    def supports(self, verdict: Verdict) -> bool:
        """True if the values at this look (interim analysis) alone would justify this verdict."""
        if verdict == "equivalent":
            return self.equivalent
        return verdict == self.verdict


@dataclass(frozen=True, slots=True)
class Decision:
    """The decision on a claim after the looks (interim analyses) so far.

    The first look that decides fixes the verdict; later looks change only the interval that is shown.
    """

    readings: tuple[Reading, ...]
    verdict: Verdict
    shown: Reading | None
    """The result that reports show. If the claim is decided, it is that of the last look (interim analysis) that
    supports the verdict, otherwise that of the last look. None before the first look."""


def open_ended_looks() -> Iterator[Look]:
    """Yields all possible looks (interim analyses), without end. The looks of the table LOOKS come first. Each later
    look comes after half as many blocks again as the look before it. The first of the later looks may spend
    `_OPEN_END_ALPHA`, and each further look half as much as the look before it."""
    yield from map(Look, LOOKS, ALPHAS)
    blocks = LOOKS[-1]
    for step in count():
        blocks = math.ceil(blocks * _OPEN_END_GROWTH)
        yield Look(blocks, _OPEN_END_ALPHA * 0.5**step)


def first_look(claims: int = 1) -> int:
    """Returns the smallest number of blocks at which a claim can be decided if `claims` claims share the error of the
    first look (interim analysis): 8 blocks for one claim, 9 for two."""
    return next(blocks for blocks in count(LOOKS[0]) if can_decide(Look(blocks, ALPHAS[0]), claims))


def looks(max_blocks: int, claims: int = 1) -> list[int]:
    """Returns the looks (interim analyses), as numbers of blocks, of a study with `claims` primary claims that ends
    after at most `max_blocks` blocks.

    No error is spent before a verdict is possible: the first look is `first_look`, and the looks of the table follow.
    If the end of the study is between two looks of the table, the end is a look too, with the error of the next look.
    """
    first = first_look(claims)
    if max_blocks < first:
        return []
    table = (look.blocks for look in open_ended_looks())
    between = takewhile(lambda blocks: blocks < max_blocks, (blocks for blocks in table if blocks > first))
    return sorted({first, *between, max_blocks})


def schedule(planned: Sequence[int]) -> list[Look]:
    """Returns the planned looks (interim analyses) with their errors. The first look spends the first error of the
    table, the second look the second one, and so on."""
    return [Look(blocks, look.alpha) for blocks, look in zip(planned, open_ended_looks(), strict=False)]


@lru_cache(maxsize=64)
def null_distribution(blocks: int) -> Floats:
    """Returns the exact probabilities P(W <= w) for w = 0 .. n(n+1)/2 of the signed-rank statistic W, if each sign is a
    fair coin.

    The ranks are added one at a time: each rank is in the sum with probability 1/2 (Hollander, Wolfe and Chicken, 3.1,
    comment 6).
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
    """Returns the largest w with P(min(W+, W-) <= w) <= alpha, for a two-sided test; -1 if even w = 0 has a higher
    probability than alpha."""
    return int(np.searchsorted(null_distribution(blocks), alpha / 2 + _ROUNDING, side="right")) - 1


def walsh_averages(log_ratios: Values) -> Floats:
    """Returns the Walsh averages in ascending order: the means of all n(n+1)/2 pairs of values, including pairs of a
    value with itself (Walsh 1949)."""
    values = np.clip(np.asarray(log_ratios, dtype=np.float64), -WORST, WORST)
    first, second = np.triu_indices(len(values))
    return np.sort((values[first] + values[second]) / 2)


def interval(log_ratios: Values, alpha: float) -> Interval:
    """Returns the Hodges-Lehmann estimate and the exact interval at the level 1 - alpha.

    The bounds are the (k+1)-th lowest and the (k+1)-th highest Walsh average, where k is the rejection threshold. The
    bounds are infinite if there are too few blocks to reach the level. Raises ValueError if there are no blocks, or if
    a value is NaN.
    """
    averages = walsh_averages(log_ratios)
    if not len(averages) or np.isnan(averages[-1]):
        raise ValueError("an interval needs the log-ratio of at least one block, and no log-ratio may be NaN")
    estimate = float(np.median(averages))
    threshold = rejection_threshold(len(log_ratios), alpha)
    if threshold < 0:
        return Interval(-math.inf, estimate, math.inf)
    return Interval(float(averages[threshold]), estimate, float(averages[-1 - threshold]))


def decide(log_ratios: Values, margin: float, *, claims: int = 1, planned: Planned = None) -> Decision:
    """Evaluates a claim at every planned look (interim analysis) for which there are enough values, and returns the
    decision. `claims` is the number of claims that share the error of each look."""
    limits, values = ratio_limits(margin), np.asarray(log_ratios, dtype=np.float64)
    readings = []
    for look in open_ended_looks() if planned is None else schedule(planned):
        if look.blocks > len(values):
            break
        readings.append(reading(look, values[: look.blocks], limits, claims))
    return conclude(readings)


def reading(look: Look, values: Values, limits: Limits, claims: int) -> Reading:
    """Returns the result of a look (interim analysis) at these values, for one of `claims` claims that share the look's
    error."""
    bounds = interval(values, look.alpha / claims)
    return Reading(look, look.alpha / claims, bounds, bounds.word(limits), bounds.between(limits))


def conclude(readings: Sequence[Reading]) -> Decision:
    """Returns the decision that follows from the results of a claim at its looks (interim analyses), which are in
    order."""
    verdict: Verdict = next((r.verdict for r in readings if r.verdict != "undecided"), "undecided")
    carrying = [reading for reading in readings if reading.supports(verdict)]
    return Decision(tuple(readings), verdict, carrying[-1] if carrying else None)


def can_decide(look: Look, claims: int) -> bool:
    """True if a look (interim analysis) has enough blocks to decide one of `claims` claims that share its error. Even
    if all log-ratios have the same sign, the error of the test is 2^(1 - blocks), which must not exceed the claim's
    part of the look's error."""
    return rejection_threshold(look.blocks, look.alpha / claims) >= 0


@dataclass(frozen=True, slots=True)
class Present:
    """The estimate and the spread of the values so far, from which forecasts are computed."""

    n: int
    estimate: float
    spread: float
    """The standard deviation of a single value."""
    margin: float

    @property
    def gap(self) -> float:
        """Returns the distance that decides how soon there is a verdict: from the estimate to zero, or from the
        estimate to the nearer limit of equivalence, whichever is larger."""
        low, high = ratio_limits(self.margin)
        return max(abs(self.estimate), min(high - self.estimate, self.estimate - low))

    def chance(self, units: int, quantile: float) -> float:
        """Returns the probability that a look (interim analysis) after `units` values decides the claim, if the true
        difference is the estimated one.

        The estimate at that look includes the present values. It is therefore normally distributed about the present
        estimate, with a spread that comes only from the values still to be measured. The half-width of the interval at
        that look is `quantile` times its standard error.
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
    """Returns the estimate and the spread for a forecast. They are computed from the values that the last look (interim
    analysis) has read or, before the first look, from all values.

    Returns None for fewer than three values.
    """
    if len(log_ratios) < 3:
        return None
    reached = [look for look in _ahead(planned) if look.blocks <= len(log_ratios)]
    look = reached[-1] if reached else Look(len(log_ratios), 0.0)
    n = look.blocks
    # if the look's own interval is infinite, the widest finite interval of n blocks is used in its place
    level = max(look.alpha / claims, 2.0 ** (1 - n))
    now = interval(np.asarray(log_ratios, dtype=np.float64)[:n], level)
    return Present(n, now.estimate, (now.high - now.low) * math.sqrt(n) / (2 * _quantile(level)), margin)


def _ahead(planned: Planned) -> list[Look]:
    """Returns the looks (interim analyses) for which forecasts are made: those of the plan, and those of the table
    LOOKS as far as it reaches."""
    furthest = max((LOOKS[-1], *(planned or ())))
    return list(takewhile(lambda look: look.blocks <= furthest, plan_and_beyond(planned)))


def _quantile(alpha: float) -> float:
    return -float(ndtri(alpha / 2))


def waiting(planned: Planned, blocks: int) -> int:
    """Returns the number of blocks that are complete and come after the last look (interim analysis), so that no look
    has read them yet."""
    return blocks - max((look for look in planned or () if look <= blocks), default=0)


def plan_and_beyond(planned: Planned) -> Iterator[Look]:
    """Yields the planned looks (interim analyses), then later looks of the table, without end. Each later look has the
    next error of the table that is not spent yet.

    All looks follow from the plan alone. A user who continues a study has seen its result. If the next look depended on
    that result, the looks together would be wrong more often than 5%.
    """
    planned_looks = schedule(planned or ())
    yield from planned_looks
    later = (look.blocks for look in open_ended_looks() if not planned_looks or look.blocks > planned_looks[-1].blocks)
    for blocks, unspent in zip(later, islice(open_ended_looks(), len(planned_looks), None), strict=False):
        yield Look(blocks, unspent.alpha)
