"""The rule P9: at planned looks (interim analyses), it computes sequential intervals of the log-ratios by flipping
signs. All looks of a study together are wrong with a probability of at most 5%.

The statistic is the signed-rank sum (Wilcoxon 1945), as for P8, and the reasoning is the same: pgtrial's coin gives
each unit's log-ratio a random sign if the arms do not differ. P9 differs in how the looks share the error. P8 adds up
the errors of its looks and keeps most of the 5% for looks that a short study never reaches. P9 spends error by a
function that the plan fixes before the first block (Lan and DeMets 1983), and each look rejects only among the sign
vectors that no earlier look has rejected. The looks of a plan together therefore use the whole error that they are
allowed, and not only half of it.

At each look, the values minus a supposed log-ratio theta are ranked by their magnitude. The sum of the signed ranks is
compared with the sums that result from flipping the signs (`sign_flips`). Flips that an earlier look has rejected are
set aside. Of the remaining flips, those with the highest sums are rejected, as many as the error spent by this look
allows. The interval of a look consists of every theta that neither this look nor an earlier look rejects. The intervals
are therefore nested: a later interval never contradicts an earlier one, and in at least 95% of studies all of them
contain the true log-ratio.

docs/method.md has the proof and measured error rates. Values are log-ratios as in `p8`; a unit is a block, or a pair of
deployments (servers of one product).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import count, takewhile

import numpy as np

from pgtrial.statistics.p8 import WORST, Floats, Interval, Limits, Look, Reading
from pgtrial.statistics.sign_flips import BITS, Sums, code_words, flipped_sums

ERROR = 0.05
"""The probability with which all looks (interim analyses) of a study together are allowed to give a wrong verdict on
equal arms."""

KEPT = 0.01
"""The part of ERROR that a plan does not spend, so that a study that is extended after the end of its plan can have
further looks (interim analyses)."""

ONE_SIDED = 0.9
"""The part of the error that is spent on the verdict "worse", in a study that asks only whether an arm is worse. The
rest of the error keeps the verdict "better" possible and gives the interval its other bound, so that it is an interval
of 95%."""

FIRST_LOOK = 6
"""The number of units (such as blocks) at the earliest look, or interim analysis. With fewer units, even equal signs of
all units have a probability above 2.5%."""

DECIMALS = 12
"""The number of decimals to which log-ratios are rounded. Without rounding, two log-ratios that should differ only in
sign may have slightly different magnitudes, and the ranks would then depend on the signs."""

_GROWTH = 1.2
"""The factor from the number of units at one look (interim analysis) to that at the next one. The looks come after 6,
8, 10, 12, 15, 18, 22, 27, 33, 40, ... units."""

_SHAPE = 1.5
"""The exponent of the function by which the error is spent over the looks (interim analyses) of a plan. Early looks get
little of the error (Kim and DeMets 1987)."""

_EARLY, _EARLY_ERROR = 8, 2.0**-7
"""The error that a plan of any length may spend as soon as it has `_EARLY` units (such as blocks). With this error, the
look (interim analysis) at 8 units can decide if all 8 log-ratios have the same sign: large differences are common, and
they should not take longer to measure because the plan is long."""

_TAIL = 1.5
"""The number of standard deviations beyond which a sum counts as part of the tail. The search for the bound sorts the
7% of the sums in the tail first, which mostly makes sorting the other sums unnecessary."""

_TRIED = 8
"""The search for the bound divides the log-ratios into cells, which are the gaps between neighbouring Walsh averages.
This is the number of cells near the expected position that it tries before it continues by bisection."""

_LEAST_SHARE = 1e-9
"""Shares of a pair that sum to less than this are rounding errors of zero."""

_STEP = 1e-9
"""A tolerance for rounding errors, when an error (a probability) is converted into a number of flips of the group."""


@dataclass(frozen=True, slots=True)
class Spending:
    """The distribution of a plan's error of 5% over its looks (interim analyses). It is fixed before the first block is
    measured."""

    end: int
    """The number of units (blocks, or pairs of deployments) at which the plan ends."""
    kept: float = KEPT
    """The part of the error that the plan does not spend, so that an extended study can have further looks (interim
    analyses)."""
    worse: float = 0.5
    """The part of the error that is spent on the verdict "worse"; the rest is spent on "better"."""

    def until(self, units: int) -> float:
        """Returns the error that all looks (interim analyses) up to this number of units are allowed to spend
        together."""
        if units >= self.end:
            return ERROR - self.kept * self.end / units
        early = _EARLY_ERROR if units >= _EARLY else 0.0
        return early + (ERROR - self.kept - _EARLY_ERROR) * math.pow(units / self.end, _SHAPE)


def first_look(claims: int = 1, kept: float = KEPT) -> int:
    """Returns the number of units (such as blocks) of the shortest plan that can decide a claim if `claims` claims
    share its error: 6 units for one claim, 7 for two."""
    return next(units for units in count(FIRST_LOOK) if _reaches(Spending(units, kept).until(units), units, claims))


def looks(end: int, claims: int = 1, kept: float = KEPT) -> list[int]:
    """Returns the looks (interim analyses), as numbers of units, of a plan for `claims` primary claims that ends at
    `end`.

    The end of the plan is a look. Before the end, each step of the fixed sequence is a look if the error spent until
    then allows a verdict. The result is empty for a plan that is too short to decide anything.
    """
    if end < first_look(claims, kept):
        return []
    spending = Spending(end, kept)
    before = takewhile(lambda units: units < end, _sequence())
    return [*(units for units in before if _reaches(spending.until(units), units, claims)), end]


def schedule(planned: Sequence[int], spending: Spending) -> list[Look]:
    """Returns the planned looks (interim analyses). The alpha of each look is the additional error that may be spent at
    this look."""
    until = [0.0, *(spending.until(units) for units in planned)]
    return [Look(units, until[index + 1] - until[index]) for index, units in enumerate(planned)]


def plan_and_beyond(planned: Sequence[int], spending: Spending) -> Iterator[Look]:
    """Yields the planned looks (interim analyses), then the looks of a study that is extended, without end.

    All looks follow from the plan alone. A user who extends a study has seen its result, and looks whose position
    depends on the result would be wrong more often than 5%.
    """
    yield from schedule(planned, spending)
    at = planned[-1] if planned else 0
    spent = spending.until(at) if planned else 0.0
    for units in _sequence():
        if units > at:
            now = spending.until(units)
            yield Look(units, now - spent)
            spent = now


def _sequence() -> Iterator[int]:
    units = FIRST_LOOK
    while True:
        yield units
        units = math.ceil(units * _GROWTH)


def can_decide(look: Look, claims: int, spending: Spending) -> bool:
    """True if a look (interim analysis) can decide one of `claims` claims that share the error. It can if the error
    suffices in the clearest case, in which the log-ratios of all units have the same sign."""
    return _reaches(spending.until(look.blocks), look.blocks, claims, max(spending.worse, 1 - spending.worse))


def _reaches(spent: float, units: int, claims: int, share: float = 0.5) -> bool:
    return spent / claims * share + _STEP >= 2.0 ** -min(units, BITS)


@dataclass(frozen=True, slots=True)
class Step:
    """The values of a claim that one look (interim analysis) reads, and the error that the claim is allowed to have
    spent by then."""

    units: tuple[int, ...]
    """The numbers of the units (such as blocks) that have a value. Units are counted from 0."""
    values: tuple[float, ...]
    """The log-ratios of these units, rounded to DECIMALS."""
    spent: float
    """The error that this claim is allowed to have spent by this look (interim analysis), for the verdicts "better" and
    "worse" together."""
    shares: tuple[float, ...] = ()
    """The share of the effect that each value has, in the order of `values`; empty if each value has the whole effect.
    If the log-ratio is theta, the values minus theta times their shares have random signs. Only the factors of a
    screening study have shares (`screening`)."""

    def at(self, theta: float) -> Floats:
        """Returns the values minus the part of them that a log-ratio of `theta` explains."""
        return np.clip(self.values, -WORST, WORST) - theta * (np.asarray(self.shares) if self.shares else 1.0)


def interval(steps: tuple[Step, ...], worse: float = 0.5) -> Interval:
    """Returns the estimate and the sequential interval after the last of these looks (interim analyses). `steps` has
    all looks at the claim so far.

    `worse` is the part of the error for the upper bound, which excludes larger values; the lower bound has the rest of
    the error. A bound is infinite if the looks do not limit the log-ratio yet. Raises ValueError if the last look has
    no unit, or if one of its values is NaN.
    """
    last = steps[-1]
    if not last.values or any(map(math.isnan, last.values)):
        raise ValueError("an interval needs the log-ratio of at least one unit, and no log-ratio may be NaN")
    low, high = limit(steps, 1, 1 - worse), limit(steps, -1, worse)
    middle = estimate(last.values, last.shares)
    if last.shares:  # with shares, the steps of the statistic are not evenly distributed around its middle
        middle = min(max(middle, low), high)
    return Interval(low, middle, high)


def estimate(values: Sequence[float], shares: Sequence[float] = ()) -> float:
    """Returns the Hodges-Lehmann estimate of the log-ratio, which is the median of the Walsh averages: the means of all
    pairs of values, including pairs of a value with itself. `shares` are those of `Step`."""
    return float(np.median(_walsh(tuple(values), tuple(shares))))


def has_estimate(step: Step) -> bool:
    """True if the values of a look (interim analysis) tell anything about the log-ratio. Values with shares tell
    nothing if all shares are zero."""
    return bool(len(_walsh(step.values, step.shares)))


@lru_cache(maxsize=4096)
def limit(steps: tuple[Step, ...], side: int, share: float = 0.5) -> float:
    """Returns one bound of the interval after the last of these looks (interim analyses): the lower bound for side 1,
    the upper bound for side -1.

    `share` is the part of the error on this side; it is a half if the interval holds equally on both sides. The bound
    is one of the Walsh averages, because the ranks and signs of the values minus theta change only there. Which flips
    earlier looks have rejected also depends on theta, so a look may accept a theta that is further out than one that it
    rejects. Zero is treated separately, because it decides the verdict: zero is outside of the interval only if a look
    rejects it.
    """
    before = limit(steps[:-1], side, share) if len(steps) > 1 else -side * math.inf
    averages = side * _walsh(steps[-1].values, steps[-1].shares)[::side]
    if steps[-1].shares and side * before < 0 and rejects(steps, 0.0, side, share):
        return side * _beyond_zero(steps, averages, side, share)
    low = int(np.searchsorted(averages, side * before)) if math.isfinite(before) else 0
    spared = _first_spared(steps, averages, low, side, share)
    bound = side * before if spared == 0 else max(side * before, float(averages[spared - 1]))
    if side * before <= 0 < bound and not rejects(steps, 0.0, side, share):
        bound = 0.0
    return side * bound


def _beyond_zero(steps: tuple[Step, ...], averages: Floats, side: int, share: float) -> float:
    """Returns the bound for values with shares if the last look (interim analysis) rejects that the log-ratio is zero.

    Some shares may be negative, so that the statistic does not only fall as theta grows: a theta far beyond zero may be
    accepted although zero is rejected. Therefore the search begins at the cell of zero, which counts as rejected.
    """
    zero = int(np.searchsorted(averages, 0.0, side="right"))
    if zero == len(averages):
        return 0.0
    spared = max(zero + 1, _first_spared(steps, averages, zero, side, share))
    return float(averages[spared - 1])


def _first_spared(steps: tuple[Step, ...], averages: Floats, low: int, side: int, share: float) -> int:
    """Returns the first cell, from `low` on, in which the last look (interim analysis) does not reject the log-ratio
    theta. Cells are the gaps between neighbouring Walsh averages.

    The sum of signed ranks in a cell is the number of averages minus twice the number of the cell. From the bound in
    one cell it follows which cell should be the first that is not rejected. The search tries that cell and its
    neighbours. If this takes too many steps, it continues by bisection.
    """
    number = len(averages)
    if low == number:
        return low
    rejected, expected = _at_cell(steps, averages, low, side, share)
    if not rejected:
        return low
    high, step = number, 1
    for tried in count():
        if high - low == 1:
            break
        if tried >= _TRIED:
            at = (low + high) // 2
        elif low < expected < high:
            at = expected
        else:
            at, step = low + step if expected <= low else high - step, 2 * step
        at = min(max(at, low + 1), high - 1)
        rejected, expected = _at_cell(steps, averages, at, side, share)
        low, high = (at, high) if rejected else (low, at)
    return high


def _at_cell(steps: tuple[Step, ...], averages: Floats, cell: int, side: int, share: float) -> tuple[bool, int]:
    """Returns whether the last look (interim analysis) rejects the log-ratios theta of a cell, and the first cell that
    would not be rejected if the bound of this cell applied to all cells. Cell i is between the Walsh averages i - 1 and
    i."""
    above = float(averages[cell])
    below = float(averages[cell - 1]) if cell else above - 1.0
    *_, (seen, bound) = _readings(steps, side * (below + above) / 2, side, share)
    number = len(averages)
    return seen > bound, math.ceil(min(max((number - bound) / 2, 0), number))


def rejects(steps: tuple[Step, ...], theta: float, side: int, share: float = 0.5) -> bool:
    """True if the last of these looks (interim analyses) rejects that the log-ratio is `theta`, in favour of a larger
    log-ratio (side 1) or a smaller one (side -1). `share` is the part of the error on this side."""
    *_, last = rejections(steps, theta, side, share)
    return last


def rejections(steps: Iterable[Step], theta: float, side: int, share: float = 0.5) -> Iterator[bool]:
    """Yields, for each look (interim analysis), whether it rejects that the log-ratio is `theta`. The arguments are
    those of `rejects`."""
    return (seen > bound for seen, bound in _readings(steps, theta, side, share))


def _readings(steps: Iterable[Step], theta: float, side: int, share: float) -> Iterator[tuple[float, float]]:
    """Yields, for each look (interim analysis), the observed sum of signed ranks, and the highest sum that the look
    does not reject.

    Flips that earlier looks have rejected are set aside. Of the remaining flips, those with the highest sums are
    rejected, never more than the error spent until then allows. Flips with equal sums are rejected together or not at
    all.
    """
    alive = np.ones(1, dtype=bool)
    rejected = 0
    for step in steps:
        sums = _flipped(step, theta, side)
        grown = len(sums) // len(alive)
        if grown > 1:  # each flip of the units so far is combined with every flip of the new units
            alive, rejected = np.tile(alive, grown), rejected * grown
        elif len(sums) < len(alive):
            sums = np.tile(sums, len(alive) // len(sums))
        may = int(step.spent * share * len(sums) + _STEP) - rejected
        if may <= 0:
            yield float(sums[0]), math.inf
            continue
        living = sums[alive]
        bound = _highest_spared(living, may, len(step.values))
        alive &= sums <= bound
        rejected += len(living) - int(np.count_nonzero(alive))
        yield float(sums[0]), bound


def _highest_spared(sums: Sums, may: int, units: int) -> float:
    """Returns the highest sum that is not rejected if the `may` highest sums may be rejected; minus infinity if all
    sums may be rejected."""
    if may >= len(sums):
        return -math.inf
    deviation = math.sqrt(units * (units + 1) * (2 * units + 1) / 6)
    tail = sums[sums > _TAIL * deviation]
    among = tail if len(tail) > may else sums
    return float(np.sort(among)[-1 - may])


def _flipped(step: Step, theta: float, side: int) -> Sums:
    """Returns the sum of signed ranks of the values minus theta for each flip of the signs. Element 0 is the observed
    sum."""
    values = side * step.at(theta)
    ranks = np.empty(len(values))
    ranks[np.argsort(np.abs(values), kind="stable")] = np.arange(1, len(values) + 1)
    return flipped_sums(np.sign(values) * ranks, code_words(step.units))


@lru_cache(maxsize=256)
def _walsh(values: tuple[float, ...], shares: tuple[float, ...] = ()) -> Floats:
    """Returns the Walsh averages in ascending order: the means of all pairs of values, including pairs of a value with
    itself (Walsh 1949).

    With shares, the average of a pair is the sum of its values divided by the sum of its shares: the log-ratio at which
    the signs of the two values change their order. Pairs whose shares sum to zero or less have no such log-ratio.
    """
    clipped = np.clip(np.asarray(values, dtype=np.float64), -WORST, WORST)
    first, second = np.triu_indices(len(clipped))
    averages: Floats = clipped[first] + clipped[second]
    if shares:
        whole = np.asarray(shares, dtype=np.float64)
        of_pairs = whole[first] + whole[second]
        known = of_pairs > _LEAST_SHARE
        averages = averages[known] / of_pairs[known]
    else:
        averages = averages / 2
    averages = np.sort(averages)
    averages.flags.writeable = False
    return averages


def read(steps: tuple[Step, ...], look: Look, limits: Limits, claims: int, worse: float = 0.5) -> Reading:
    """Evaluates a claim at the last of these looks (interim analyses). The claim is one of `claims` claims that share
    the error, and `worse` is the part of the error that is spent on the verdict "worse".

    The claim is equivalent by two one-sided tests (Schuirmann 1987): for each of the two limits, some look so far must
    reject it. Each test may use the whole error, because the difference cannot be beyond both limits. The median
    log-ratio does not show that an arm stood still in a few units, so the mean must exclude both limits too. The test
    of the lower limit alone shows that the arm is not worse by the margin or more.
    """
    between = interval(steps, worse)
    beyond_lower, beyond_upper = (
        limits[0] < limits[1]
        and _excludes(steps, limit_of_side, side)
        and _mean_excludes(steps[-1], limit_of_side, side)
        for limit_of_side, side in zip(limits, (1, -1), strict=True)
    )
    equivalent = beyond_lower and beyond_upper
    word = between.word((math.inf, -math.inf))
    if word == "undecided" and equivalent:
        word = "equivalent"
    return Reading(look, look.alpha / claims, between, word, equivalent, beyond_lower)


@lru_cache(maxsize=4096)
def _excludes(steps: tuple[Step, ...], theta: float, side: int) -> bool:
    """True if one of these looks (interim analyses) rejects that the log-ratio is `theta`, when this one-sided test may
    use the whole error."""
    if math.isinf(theta) or (len(steps) > 1 and _excludes(steps[:-1], theta, side)):
        return True
    return rejects(steps, theta, side, 1.0)


def _mean_excludes(step: Step, theta: float, side: int) -> bool:
    """True if the mean of the values that a look (interim analysis) reads excludes `theta` on this side at 5%. The test
    compares the sum of the values with the sums after flipping signs, so that each unit counts by its size and not by
    its rank (Fisher 1935, The Design of Experiments, 21)."""
    if math.isinf(theta):
        return True
    values = side * step.at(theta)
    sums = flipped_sums(values, code_words(step.units))
    return bool(np.count_nonzero(sums >= sums[0]) <= ERROR * len(sums))
