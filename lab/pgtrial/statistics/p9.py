"""The rule P9: at planned looks, sequential intervals of the log-ratios by sign flips; all looks together err in 5%.

The statistic is P8's, the signed-rank sum (Wilcoxon 1945), and so is its foundation: the lab's coin gives each unit's
log-ratio a random sign if the arms do not differ. P9 differs in how the looks share the error. P8 adds the errors of
its looks up and keeps most of the 5% for looks that a short study never reaches. P9 spends an amount that the plan
fixes before the first block (Lan and DeMets 1983), and at each look it rejects only among those sign vectors that no
earlier look has rejected. So the plan's looks together err in as many studies as they may, and not in half of them.

At each look the values minus a log-ratio theta are ranked by their magnitude. The sum of the signed ranks is compared
with the sums of all flips of the signs (`sign_flips`). Flips that an earlier look has rejected are set aside; of the
others the highest are rejected, as many as the error spent by this look allows. The interval of a look holds each theta
that neither this look nor an earlier one rejects. Intervals are therefore nested: a later one never contradicts an
earlier one, and all of them together contain the truth in at least 95% of studies.

docs/method.md has the proof and measured error rates. Values are log-ratios as in `p8`; a unit is a block, or a pair
of deployments.
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
"""The probability with which all looks of a study together may be wrong."""

KEPT = 0.01
"""The part of ERROR that a plan keeps for looks after its end, where the study can go on."""

ONE_SIDED = 0.9
"""The part of the error on the side of "worse" in a study that asks only for that. The rest keeps "better" possible,
and the interval one of 95%."""

FIRST_LOOK = 6
"""The number of units of the earliest look. With fewer units, even equal signs of all are more probable than 2.5%."""

DECIMALS = 12
"""The decimals to which a log-ratio is rounded. Two log-ratios that differ only in sign may come out unequal by a
rounding error that depends on the sign, and then their ranks would depend on the signs."""

_GROWTH = 1.2
"""The factor from look to look. Each comes after a fifth more units: 6, 8, 10, 12, 15, 18, 22, 27, 33, 40, ..."""

_SHAPE = 1.5
"""The exponent by which the error is spent over the plan: little at early looks (Kim and DeMets 1987)."""

_EARLY, _EARLY_ERROR = 8, 2.0**-7
"""After 8 units a plan of any length may spend enough to decide where all of 8 signs are equal: large differences are
common, and a long plan is no reason to measure them for longer."""

_TAIL = 1.5
"""The number of standard deviations beyond which a sum is in the tail. The bound is searched among the 7% of sums in
the tail first, which saves sorting all of them."""

_TRIED = 8
"""The number of cells that the search for the bound tries near the expected place, before it goes on by bisection."""

_STEP = 1e-9
"""The slack for rounding when a share of the group is turned into a number of flips."""


@dataclass(frozen=True, slots=True)
class Spending:
    """How a plan spends the error over its looks. It is fixed before the first unit."""

    end: int
    """The number of units at which the plan ends."""
    kept: float = KEPT
    """The part of the error that is kept for looks after the end."""
    worse: float = 0.5
    """The part of the error on the side of "worse"; the rest is on the side of "better"."""

    def until(self, units: int) -> float:
        """Returns the error that all looks up to this number of units may spend together."""
        if units >= self.end:
            return ERROR - self.kept * self.end / units
        early = _EARLY_ERROR if units >= _EARLY else 0.0
        return early + (ERROR - self.kept - _EARLY_ERROR) * math.pow(units / self.end, _SHAPE)


def first_look(claims: int = 1, kept: float = KEPT) -> int:
    """Returns the units of the shortest plan that can decide `claims` which share its error: 6 for one, 7 for two."""
    return next(units for units in count(FIRST_LOOK) if _reaches(Spending(units, kept).until(units), units, claims))


def looks(end: int, claims: int = 1, kept: float = KEPT) -> list[int]:
    """Returns the looks, in units, of a plan for `claims` primary claims that ends at `end`.

    The end is a look, and so is each step of the sequence before it at which the error spent until then allows a
    verdict. A plan that cannot decide anything has none.
    """
    if end < first_look(claims, kept):
        return []
    spending = Spending(end, kept)
    before = takewhile(lambda units: units < end, _sequence())
    return [*(units for units in before if _reaches(spending.until(units), units, claims)), end]


def schedule(planned: Sequence[int], spending: Spending) -> list[Look]:
    """Returns the planned looks; the alpha of each is what it adds to the error that may have been spent."""
    until = [0.0, *(spending.until(units) for units in planned)]
    return [Look(units, until[place + 1] - until[place]) for place, units in enumerate(planned)]


def plan_and_beyond(planned: Sequence[int], spending: Spending) -> Iterator[Look]:
    """Yields the planned looks, then those of a study that goes on, without end.

    The looks follow from the plan alone. A user who goes on with a study has seen its result, and a look that is placed
    by the result errs more often.
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
    """True if a look can decide one of `claims` that share the error, at least where all signs are equal."""
    return _reaches(spending.until(look.blocks), look.blocks, claims, max(spending.worse, 1 - spending.worse))


def _reaches(spent: float, units: int, claims: int, share: float = 0.5) -> bool:
    return spent / claims * share + _STEP >= 2.0 ** -min(units, BITS)


@dataclass(frozen=True, slots=True)
class Step:
    """The values of a claim that one look reads, and the error that the claim may have spent by then."""

    units: tuple[int, ...]
    """The numbers of the units that have a value, counted from 0."""
    values: tuple[float, ...]
    """The log-ratios of these units, rounded to DECIMALS."""
    spent: float
    """The error that this claim may have spent by now, on both sides together."""


def interval(steps: tuple[Step, ...], worse: float = 0.5) -> Interval:
    """Returns the estimate and the sequential interval after the last of these looks, which are all that read a claim.

    `worse` is the part of the error that the upper bound has, which excludes larger values; the lower has the rest.
    Infinite bounds mean that nothing is established yet. Raises ValueError for a look without a unit or with a NaN.
    """
    last = steps[-1]
    if not last.values or any(map(math.isnan, last.values)):
        raise ValueError("an interval needs the log-ratio of at least one unit, and every one a number")
    return Interval(limit(steps, 1, 1 - worse), estimate(last.values), limit(steps, -1, worse))


def estimate(values: Sequence[float]) -> float:
    """Returns the Hodges-Lehmann estimate of the log-ratio: the median of the Walsh averages."""
    return float(np.median(_walsh(tuple(values))))


@lru_cache(maxsize=4096)
def limit(steps: tuple[Step, ...], side: int, share: float = 0.5) -> float:
    """Returns the lower (side 1) or upper (side -1) bound of the interval after the last of these looks.

    `share` is the part of the error on this side: a half for an interval that is to hold on both sides. The bound is
    a Walsh average, for only there the ranks and signs of the values minus theta change. Which flips earlier looks have
    rejected depends on theta, too, so a look may spare a theta beyond one that it rejects. Zero decides the verdict: it
    is outside only if a look rejects it.
    """
    before = limit(steps[:-1], side, share) if len(steps) > 1 else -side * math.inf
    averages = side * _walsh(steps[-1].values)[::side]
    low = int(np.searchsorted(averages, side * before)) if math.isfinite(before) else 0
    spared = _first_spared(steps, averages, low, side, share)
    bound = side * before if spared == 0 else max(side * before, float(averages[spared - 1]))
    if side * before <= 0 < bound and not rejects(steps, 0.0, side, share):
        bound = 0.0
    return side * bound


def _first_spared(steps: tuple[Step, ...], averages: Floats, low: int, side: int, share: float) -> int:
    """Returns the first cell between averages, from `low` on, in which the last look does not reject theta.

    The sum of signed ranks in a cell is the number of averages minus twice the cell. So the bound of one cell tells
    which cell is expected to be the first. Its neighbours are tried next; if that takes too long, intervals are halved.
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
    """Returns whether the last look rejects theta in a cell, and the first cell that it would not reject if the bound
    of this cell held in all cells. Cell i lies between the averages i - 1 and i."""
    above = float(averages[cell])
    below = float(averages[cell - 1]) if cell else above - 1.0
    *_, (seen, bound) = _readings(steps, side * (below + above) / 2, side, share)
    number = len(averages)
    return seen > bound, math.ceil(min(max((number - bound) / 2, 0), number))


def rejects(steps: tuple[Step, ...], theta: float, side: int, share: float = 0.5) -> bool:
    """True if the last of these looks rejects that the log-ratio is `theta`, in favour of a larger one (side 1) or a
    smaller one (side -1). `share` is the part of the error on this side."""
    *_, last = rejections(steps, theta, side, share)
    return last


def rejections(steps: Iterable[Step], theta: float, side: int, share: float = 0.5) -> Iterator[bool]:
    """Yields for each look whether it rejects `theta`, as in `rejects`."""
    return (seen > bound for seen, bound in _readings(steps, theta, side, share))


def _readings(steps: Iterable[Step], theta: float, side: int, share: float) -> Iterator[tuple[float, float]]:
    """Yields for each look the observed sum of signed ranks and the highest that is not rejected.

    At each look the flips that earlier looks have rejected are set aside; of the rest those with the highest sums are
    rejected, never more than the error spent until then allows. Tied sums are rejected together or not at all.
    """
    alive = np.ones(1, dtype=bool)
    rejected = 0
    for step in steps:
        sums = _flipped(step, theta, side)
        grown = len(sums) // len(alive)
        if grown > 1:  # each flip of the units so far continues with every flip of the new ones
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
    """Returns the highest of the sums that is not rejected if the `may` highest are; -infinity if all are."""
    if may >= len(sums):
        return -math.inf
    deviation = math.sqrt(units * (units + 1) * (2 * units + 1) / 6)
    tail = sums[sums > _TAIL * deviation]
    among = tail if len(tail) > may else sums
    return float(np.sort(among)[-1 - may])


def _flipped(step: Step, theta: float, side: int) -> Sums:
    """Returns the sums of signed ranks of the values minus theta under each flip; element 0 is the observed one."""
    values = side * (np.clip(step.values, -WORST, WORST) - theta)
    ranks = np.empty(len(values))
    ranks[np.argsort(np.abs(values), kind="stable")] = np.arange(1, len(values) + 1)
    return flipped_sums(np.sign(values) * ranks, code_words(step.units))


@lru_cache(maxsize=256)
def _walsh(values: tuple[float, ...]) -> Floats:
    """Returns the means of all pairs, each value with itself included, ascending (Walsh 1949)."""
    clipped = np.clip(np.asarray(values, dtype=np.float64), -WORST, WORST)
    first, second = np.triu_indices(len(clipped))
    averages: Floats = np.sort((clipped[first] + clipped[second]) / 2)
    averages.flags.writeable = False
    return averages


def read(steps: tuple[Step, ...], look: Look, limits: Limits, claims: int, worse: float = 0.5) -> Reading:
    """Reads a claim at the last of these looks. The claim is one of `claims` that share the error; the side of "worse"
    has the part `worse` of it.

    Two one-sided tests make it equivalent (Schuirmann 1987): some look so far rejects both limits, each at the whole
    error, since the difference cannot lie beyond both. The median log-ratio does not see an arm that stands still in a
    few units, so the mean has to exclude both limits, too. The first of these tests alone says that the arm is not
    worse by the margin or more.
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
    """True if one of these looks rejects `theta` at the whole error on this side."""
    if math.isinf(theta) or (len(steps) > 1 and _excludes(steps[:-1], theta, side)):
        return True
    return rejects(steps, theta, side, 1.0)


def _mean_excludes(step: Step, theta: float, side: int) -> bool:
    """True if the mean of a look's values excludes `theta` on this side at 5%: by the sums of the flipped values
    themselves, in which a unit counts by its size (Fisher 1935, The Design of Experiments, 21)."""
    if math.isinf(theta):
        return True
    values = side * (np.clip(step.values, -WORST, WORST) - theta)
    sums = flipped_sums(values, code_words(step.units))
    return bool(np.count_nonzero(sums >= sums[0]) <= ERROR * len(sums))
