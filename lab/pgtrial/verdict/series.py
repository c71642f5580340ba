"""Reads several claims at the planned looks of a study. A claim is a comparison of an arm with the baseline, and a look
is an interim analysis of the blocks so far. All claims, of every kind, are read by the loop over looks in this module.

Each look reads the blocks (or pairs of servers) up to it. It has an allowed probability of a wrong verdict, and divides
it evenly among its claims (Bonferroni). A look may choose the claims that it reads from the blocks up to it, if the
choice treats the two trials of each block alike. Exchanging the two trials then does not change the choice. If the arms
do not differ, the signs of the blocks are therefore still as random as a coin, and each claim is as exact as if it had
been named before the study. A verdict that a look has decided is kept, even if a later look does not read the claim any
more.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import TypeVar

from pgtrial.model.records.claims import Estimate, Word
from pgtrial.statistics import p8
from pgtrial.statistics.rules import Looks, Reader
from pgtrial.verdict.grid import Grid
from pgtrial.verdict.metric import RATIO, Scale

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True)
class Question:
    """The input from which a look (interim analysis) decides a claim: the value of each block or pair of servers, the
    margin, and the number of claims (comparisons) that share the look's allowed probability of a wrong verdict."""

    values: Mapping[int, float]
    """The gain of the arm over the baseline, for each complete block (or pair of servers) in which it is known. It is
    above zero if the arm is better."""
    family: int
    """The number of claims (comparisons) among which the look (interim analysis) divides its allowed probability of a
    wrong verdict."""
    margin: float
    scale: Scale = RATIO
    cut: Mapping[int, frozenset[str]] = field(default_factory=dict)
    """For each block (or pair of servers), the arms whose value is only a bound, so that the true value may be worse.
    If a look (interim analysis) reads such a block, it can find neither that such an arm is better than the other nor
    that the two are equivalent."""
    arm: str | None = None
    """The name of the arm that the claim (comparison) is about, as `cut` names it. It is not needed if no value is a
    bound."""
    failed: Set[int] = frozenset()
    """The blocks in which the value of a failed trial is replaced by a milder one, as in a screening study. A look
    (interim analysis) that reads such a block cannot find that the arms are equivalent."""

    def allowed(self, reading: p8.Reading, units: Sequence[int]) -> p8.Reading:
        """Returns the reading, which is the result of a look (interim analysis) at this claim (comparison), if its
        values allow it. If its verdict rests on values that are only bounds (the true value may be worse) or replace
        those of failed trials, the reading is returned with the verdict undecided."""
        if not self.is_inexact(units):
            return reading
        cut = frozenset[str]().union(*(self.cut[unit] for unit in self.cut.keys() & set(units)))
        forbidden = {"equivalent", *(("better",) if self.arm in cut else ()), *(("worse",) if cut - {self.arm} else ())}
        word = "undecided" if reading.verdict in forbidden else reading.verdict
        return replace(reading, verdict=word, equivalent=False, not_worse=False)

    def is_inexact(self, units: Sequence[int]) -> bool:
        """True if the value of one of these blocks (or pairs of servers) is only a bound, or replaces that of a failed
        trial."""
        return any(self.cut.get(unit) or unit in self.failed for unit in units)

    @property
    def limits(self) -> p8.Limits:
        """Returns the limits between which a difference counts as equivalent, on the scale of the values."""
        return self.scale.limits(self.margin)


@dataclass(frozen=True)
class Series:
    """The state of a claim (a comparison of an arm with the baseline) after the looks, the interim analyses, so far."""

    asked: Question
    """The claim (comparison) with its values, as the last look (interim analysis) that read the claim had them."""
    decision: p8.Decision
    used: Sequence[int]
    """The numbers of the blocks (or pairs of servers) from whose values the shown interval was computed. Before the
    first look (interim analysis) these are all complete blocks with a value."""

    @property
    def decided(self) -> bool:
        """True if a look (interim analysis) has given a verdict on the claim (comparison). Later looks never reverse
        it."""
        return self.decision.verdict != "undecided"

    @property
    def look(self) -> p8.Look | None:
        """Returns the look (interim analysis) whose verdict and interval are shown; None before the first look."""
        return self.decision.shown.look if self.decision.shown is not None else None

    @property
    def shown(self) -> p8.Interval | None:
        """Returns the interval that is shown with the verdict, on the scale of the values; None before the first look
        (interim analysis)."""
        return self.decision.shown.interval if self.decision.shown is not None else None

    @property
    def difference(self) -> Estimate | None:
        """Returns the interval that is shown with the verdict, as the difference that users see; None before the first
        look (interim analysis)."""
        return as_difference(self.shown, self.asked.scale) if self.shown is not None else None

    @property
    def within_margin(self) -> bool:
        """True if the whole interval lies within the margin, whatever the verdict is. The difference is then too small
        to matter, even if it is certain."""
        if self.shown is None or self.asked.is_inexact(self.used):
            return False
        return self.shown.between(self.asked.limits)

    @property
    def not_worse(self) -> bool:
        """True if a look (interim analysis) has excluded that the arm is worse than the baseline by the margin or
        more."""
        return any(reading.not_worse for reading in self.decision.readings)

    def verdict(self, *, withheld: bool) -> Word:
        """Returns the verdict in one word. The word is `withheld` if the argument `withheld` is true: the audit has
        found that the comparison is not fair, so that no verdict is given."""
        return "withheld" if withheld else self.decision.verdict


Choice = Callable[[Set[int], Set[Key]], Mapping[Key, Question] | None]
"""A function that returns the claims (comparisons) that a look (interim analysis) reads. Its arguments are the blocks
up to the look and the keys of the claims that are decided already. It returns None if the look reads no claim."""


def follow(grid: Grid, choice: Choice[Key]) -> dict[Key, Series]:
    """Returns the state of the claims (comparisons) after the looks (interim analyses) so far: first the claims that
    the last look reads, in its order, then claims that an earlier look has decided and that the last look no longer
    reads. `choice` returns which claims a look reads.

    Before the first look, the claims are those that `choice` returns for all stored blocks.
    """
    asked: dict[Key, Question] = {}
    readings: dict[Key, list[p8.Reading]] = {}
    readers: dict[Key, Reader] = {}
    latest: Mapping[Key, Question] | None = None
    reached = grid.units.reached(grid.counted)
    for look, units in reached:
        decided = {
            key for key, of_claim in readings.items() if any(reading.verdict != "undecided" for reading in of_claim)
        }
        chosen = choice(grid.units.blocks(units), decided)
        if chosen is None:
            continue
        latest = chosen
        for key, question in chosen.items():
            asked[key] = question
            of_claim = readings.setdefault(key, [])
            if known := [unit for unit in units if unit in question.values]:
                reader = readers.setdefault(key, grid.units.reader())
                values = [question.values[unit] for unit in known]
                reading = reader.read(look, known, values, question.limits, question.family)
                of_claim.append(question.allowed(reading, known))
    if latest is None:
        latest = choice(set(grid.blocks), set()) or {}
    units_of = dict(reached)

    def series(key: Key, question: Question) -> Series:
        decision = p8.conclude(readings.get(key, ()))
        rests_on = units_of[decision.shown.look] if decision.shown is not None else question.values
        return Series(question, decision, [unit for unit in rests_on if unit in question.values])

    now = {key: series(key, question) for key, question in latest.items()}
    earlier = {key: series(key, question) for key, question in asked.items() if key not in now}
    return now | {key: of_claim for key, of_claim in earlier.items() if of_claim.decided}


def read(
    grid: Grid,
    logs: Mapping[int, float],
    family: int,
    margin: float | None = None,
    scale: Scale = RATIO,
    *,
    cut: Mapping[int, frozenset[str]] | None = None,
    arm: str | None = None,
) -> Series:
    """Reads one claim (comparison) at every look (interim analysis) so far, and returns its state. `logs` has the value
    of each block, usually the log-ratio of the arm to the baseline. `family` is the number of claims that share the
    look's allowed probability of a wrong verdict. The margin is the study's margin unless another margin is given.

    `cut` has, for each block, the arms whose value is only a bound, and `arm` is the arm that the claim is about.
    """
    values, cut = grid.units.means(logs, grid.counted), cut or {}
    cut_blocks = {unit: cut.keys() & grid.units.blocks([unit]) for unit in (values if cut else ())}
    of_units = {unit: frozenset[str]().union(*map(cut.__getitem__, of)) for unit, of in cut_blocks.items() if of}
    question = Question(values, family, grid.plan.margin if margin is None else margin, scale, of_units, arm)
    return follow(grid, lambda _, __: {None: question})[None]


def read_values(looks: Looks, values: Sequence[float], family: int, margin: float, scale: Scale = RATIO) -> Series:
    """Reads one claim (comparison) at every look (interim analysis) that its values reach, and returns its state. This
    function is for values that do not come from a study, such as the numbers that `pgtrial judge` reads."""
    question = Question(dict(enumerate(values)), family, margin, scale)
    decision = p8.conclude(list(looks.readings(values, question.limits, family)))
    used = decision.shown.look.blocks if decision.shown is not None else len(values)
    return Series(question, decision, range(used))


def described(grid: Grid, logs: Mapping[int, float], family: int, scale: Scale = RATIO) -> tuple[int, Estimate | None]:
    """Returns an interval for log-ratios that explain a verdict but get no verdict of their own, such as those of
    costs. The result is a pair: the number of blocks (or pairs of servers) at the latest look (interim analysis), and
    the difference with its interval at this look.

    Blocks without a value are left out, so that a look is reached only if enough blocks have a value. Before the first
    look, the number is that of all blocks with a value, and the difference is None.
    """
    values = list(grid.units.means(logs, grid.counted).values())
    reached = [look for look in grid.units.looks() if look.blocks <= len(values)]
    if not reached:
        return len(values), None
    look = reached[-1]
    return look.blocks, as_difference(grid.units.at_once(values[: look.blocks], look, family), scale)


def established_margin(interval: p8.Interval, scale: Scale = RATIO) -> float:
    """Returns the smallest margin with which the interval would show that the arms are equivalent: 0.02 means that all
    differences above 2% are excluded. The result is infinite if there is no such margin."""
    if scale.falls:
        return p8.Interval(-interval.high, -interval.estimate, -interval.low).established_margin
    return interval.established_margin


def as_difference(interval: p8.Interval, scale: Scale = RATIO) -> Estimate:
    """Returns an interval on the scale of the values as a difference in the form that users see. Infinite bounds become
    None."""
    low, high = (scale.shown(bound) if math.isfinite(bound) else None for bound in (interval.low, interval.high))
    return Estimate(
        low=high if scale.falls else low, value=scale.shown(interval.estimate), high=low if scale.falls else high
    )
