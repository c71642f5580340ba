"""The statistical rules by which a study decides at its looks (interim analyses), with one interface: P9 for new
studies, P8 for studies that were planned with an older version.

A rule says which looks a plan has and how much error each look may spend, reads a claim at one look after the other,
and forecasts the look at which a claim would be decided.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice, takewhile
from typing import Protocol

from pgtrial.statistics import boundaries, p8, p9
from pgtrial.statistics.p8 import Limits, Look, Present, Reading
from pgtrial.statistics.shamos import spread

_FURTHEST = 300
"""The largest number of units (such as blocks) for which pgtrial forecasts a look (interim analysis), unless the plan
itself is longer."""


class Reader(Protocol):
    """Evaluates one claim at the looks (interim analyses) of a study, in the order of the looks."""

    def read(self, look: Look, units: Sequence[int], values: Sequence[float], limits: Limits, claims: int) -> Reading:
        """Returns the result of a look (interim analysis) at the values of these units. There must be at least one
        unit; units are numbered from 0.

        The claim is one of `claims` claims that share the error. A difference between the limits counts as equivalent.
        """


class Rule(Protocol):
    """A statistical rule, which says how the looks (interim analyses) of a study share its error, and how they
    decide."""

    def schedule(self, planned: Sequence[int]) -> list[Look]:
        """Returns the planned looks (interim analyses), each with the additional error that may be spent at
        this look."""

    def plan_and_beyond(self, planned: Sequence[int]) -> Iterator[Look]:
        """Yields the planned looks (interim analyses), then the looks of a study that is extended, without end. All
        looks follow from the plan alone."""

    def can_decide(self, look: Look, claims: int) -> bool:
        """True if a look (interim analysis) can decide one of `claims` claims that share the error. It can if the error
        suffices in the clearest case, in which the log-ratios of all units have the same sign."""

    def level(self, planned: Sequence[int], look: Look, claims: int, *, margin: bool = False) -> float:
        """Returns the error of a two-sided test which has only one look (interim analysis) and rejects as easily as
        this look does after the looks before it. Forecasts use this error.

        `margin` is true for the test whether a difference is smaller than the margin.
        """

    def reader(self) -> Reader:
        """Returns a new reader, for one claim."""

    def present(self, values: Sequence[float], margin: float, claims: int, planned: Sequence[int]) -> Present | None:
        """Returns the estimate and the spread of the values so far, for a forecast; None for fewer than three
        values."""


@dataclass(frozen=True)
class P8:
    """The rule P8, for studies that were planned before P9 existed."""

    def schedule(self, planned: Sequence[int]) -> list[Look]:
        """Returns the planned looks (interim analyses) with the errors of P8's table, in the order of the table."""
        return p8.schedule(planned)

    def plan_and_beyond(self, planned: Sequence[int]) -> Iterator[Look]:
        """Yields the planned looks (interim analyses), then the later looks of P8's table, without end."""
        return p8.plan_and_beyond(planned)

    def can_decide(self, look: Look, claims: int) -> bool:
        """True if a look (interim analysis) has enough blocks for the signed-rank test to reach the error that each of
        `claims` claims may spend at the look."""
        return p8.can_decide(look, claims)

    def level(self, planned: Sequence[int], look: Look, claims: int, *, margin: bool = False) -> float:
        """Returns the look's error divided by the number of claims that share it. The looks of P8 do not depend on each
        other."""
        return look.alpha / claims

    def reader(self) -> Reader:
        """Returns a reader of one claim by the rule P8, whose looks (interim analyses) do not depend on each other."""
        return _EachByItself()

    def present(self, values: Sequence[float], margin: float, claims: int, planned: Sequence[int]) -> Present | None:
        """Returns the estimate and the spread from the values that the last look (interim analysis) has read or, before
        the first look, from all values; None for fewer than three values."""
        return p8.present(values, margin, claims=claims, planned=planned)


class _EachByItself:
    """A reader of one claim by P8, whose looks (interim analyses) do not depend on each other."""

    def read(self, look: Look, units: Sequence[int], values: Sequence[float], limits: Limits, claims: int) -> Reading:
        return p8.reading(look, values, limits, claims)


@dataclass(frozen=True)
class P9:
    """The rule P9, for new studies. `spending` says how the plan distributes the error of 5% over its looks (interim
    analyses)."""

    spending: p9.Spending

    def schedule(self, planned: Sequence[int]) -> list[Look]:
        """Returns the planned looks (interim analyses), each with the additional error that the plan's spending allows
        at this look."""
        return p9.schedule(planned, self.spending)

    def plan_and_beyond(self, planned: Sequence[int]) -> Iterator[Look]:
        """Yields the planned looks (interim analyses), then later looks without end. Their errors follow from the
        plan's spending."""
        return p9.plan_and_beyond(planned, self.spending)

    def can_decide(self, look: Look, claims: int) -> bool:
        """True if the error that may be spent by this look (interim analysis) suffices for a decision in the clearest
        case, in which the log-ratios of all units have the same sign."""
        return p9.can_decide(look, claims, self.spending)

    def level(self, planned: Sequence[int], look: Look, claims: int, *, margin: bool = False) -> float:
        """Returns the error of a two-sided test which has only one look (interim analysis), and the same bound as this
        look has after the looks before it."""
        until = takewhile(lambda before: before.blocks <= look.blocks, self.plan_and_beyond(planned))
        reached = [before.blocks for before in until]
        share = claims if margin else claims / self.spending.worse
        bound = boundaries.bounds(reached, [self.spending.until(units) / share for units in reached])[-1]
        return 2 * boundaries.nominal(bound)

    def reader(self) -> Reader:
        """Returns a reader of one claim, which remembers the values of earlier looks (interim analyses) and the error
        that they were allowed to spend."""
        return _Together(self.spending.worse)

    def present(self, values: Sequence[float], margin: float, claims: int, planned: Sequence[int]) -> Present | None:
        """Returns the estimate and the robust spread of the values; None for fewer than three values."""
        if len(values) < 3:
            return None
        return Present(len(values), p9.estimate(values), spread(values), margin)


@dataclass
class _Together:
    """A reader of one claim by P9. It keeps the values that earlier looks (interim analyses) read, and the error that
    they were allowed to spend."""

    worse: float
    """The part of the error that is spent on the verdict "worse"."""
    steps: tuple[p9.Step, ...] = ()
    spent: float = field(default=0.0)

    def read(self, look: Look, units: Sequence[int], values: Sequence[float], limits: Limits, claims: int) -> Reading:
        self.spent += look.alpha / claims
        rounded = tuple(round(value, p9.DECIMALS) for value in values)
        self.steps += (p9.Step(tuple(units), rounded, self.spent),)
        return p9.read(self.steps, look, limits, claims, self.worse)


@dataclass(frozen=True)
class Looks:
    """The looks (interim analyses) of a study: the planned looks, and all later looks, which follow from the rule."""

    rule: Rule
    planned: tuple[int, ...]
    """The numbers of units (such as blocks) after which the planned looks (interim analyses) take place, in ascending
    order."""

    def within(self, units: int) -> Looks:
        """Returns an object with the same rule and only those planned looks (interim analyses) that need at most this
        number of units."""
        return Looks(self.rule, tuple(look for look in self.planned if look <= units))

    def schedule(self) -> list[Look]:
        """Returns the planned looks (interim analyses), each with the additional error that may be spent at
        this look."""
        return self.rule.schedule(self.planned)

    def fewest(self, claims: int) -> int:
        """Returns the number of units (such as blocks) at the first look (interim analysis) that can decide one of
        `claims` claims which share the error."""
        return next(look.blocks for look in self._all() if self.rule.can_decide(look, claims))

    def next_after(self, units: int) -> int:
        """Returns the number of units at the first look (interim analysis) that comes after this number of units."""
        return next(look.blocks for look in self._all() if look.blocks > units)

    def until(self, units: int) -> list[int]:
        """Returns all planned looks (interim analyses), and later looks up to this number of units, as numbers of
        units."""
        later = takewhile(lambda look: look.blocks <= units, islice(self._all(), len(self.planned), None))
        return [*self.planned, *(look.blocks for look in later)]

    def needed(self, values: Sequence[float], margin: float, claims: int, void: int = 0) -> int | None:
        """Returns the total number of units at which the claim would be decided, if the estimate and the spread stay as
        they are.

        This is the first later look (interim analysis) for which q s / sqrt(N) is below the gap. Here q is the look's
        quantile, s the spread, and N the number of the look's units without the `void` units that have no value. The
        gap is the distance from the estimate to zero, or to the limits of the margin, whichever is larger. Returns None
        if no look that is forecast suffices, or if there are fewer than three values.
        """
        now = self.rule.present(values, margin, claims, self.planned)
        if now is None:
            return None
        ahead = (
            look for look in self._forecast() if look.blocks > len(values) + void and self.rule.can_decide(look, claims)
        )
        return next(
            (
                look.blocks
                for look in ahead
                if self._quantile(look, claims) * now.spread / math.sqrt(look.blocks - void) < now.gap
            ),
            None,
        )

    def chance(self, values: Sequence[float], margin: float, claims: int, units: int, void: int = 0) -> float | None:
        """Returns the probability that the look (interim analysis) after `units` units decides the claim, if the true
        difference is the estimated one.

        `void` of the units have no value. Returns None if there is no such look, if it cannot decide, or if there are
        fewer than three values.
        """
        now = self.rule.present(values, margin, claims, self.planned)
        look = next((look for look in self._forecast() if look.blocks == units), None)
        if now is None or look is None or not self.rule.can_decide(look, claims):
            return None
        return now.chance(units - void, self._quantile(look, claims))

    def level(self, look: Look, claims: int, *, margin: bool = False) -> float:
        """Returns the error of a two-sided test which has only one look (interim analysis) and rejects as easily as
        this look does; see `Rule.level`."""
        return self.rule.level(self.planned, look, claims, margin=margin)

    def more(self, values: Sequence[float], margin: float, claims: int, void: int = 0) -> int | None:
        """Returns how many more units (such as blocks) are needed until the claim would be decided, if the estimate and
        the spread stay as they are.

        `void` of the units so far have no value. If there are too few units for a forecast, returns the number up to
        the first look (interim analysis) that can decide. Returns None if no forecast is possible.
        """
        done, fewest = len(values) + void, self.fewest(claims)
        needed = self.needed(values, margin, claims, void)
        if needed is None and done >= fewest:
            return None
        return max(needed or 0, fewest) - done

    def readings(self, values: Sequence[float], limits: Limits, claims: int = 1) -> Iterator[Reading]:
        """Yields the result at each planned look (interim analysis) for which there are enough values, for one of
        `claims` claims that share the error."""
        reader = self.rule.reader()
        for look in self.schedule():
            if look.blocks <= len(values):
                yield reader.read(look, range(look.blocks), values[: look.blocks], limits, claims)

    def _all(self) -> Iterator[Look]:
        return self.rule.plan_and_beyond(self.planned)

    def _forecast(self) -> list[Look]:
        furthest = max((_FURTHEST, *self.planned))
        return list(takewhile(lambda look: look.blocks <= furthest, self._all()))

    def _quantile(self, look: Look, claims: int) -> float:
        return boundaries.quantile(self.level(look, claims) / 2)


def planned(end: int, claims: int, kept: float = p9.KEPT) -> Looks:
    """Returns the looks (interim analyses) of a new plan that ends at `end` units (such as blocks). If the plan is too
    short for any look, returns the first look that is possible."""
    units = p9.looks(end, claims, kept) or [p9.first_look(claims, kept)]
    return Looks(P9(p9.Spending(end, kept)), tuple(units))
