"""The statements of a replay: which templates are slower on an arm, as a family of claims that hold together.

Compared is the mean time of a template's statements within a block, as speeds are: the log-ratio, by the rule P8. Each
look chooses its templates from its own blocks, and they share its error evenly (Bonferroni). The choice is symmetric in
the two trials of every block: exchanging them changes nothing of it. So the coin makes each claim as exact as if the
templates had been named before. What a look has decided stays, also where a later look no longer chooses the template.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median

from pgtrial.model.records.replay import TemplateResult
from pgtrial.model.records.results import StatementClaim
from pgtrial.model.study.replay import MOST_STATEMENTS
from pgtrial.statistics import p8
from pgtrial.statistics.claims import concluded
from pgtrial.statistics.ratios import Grid

FEWEST_STATEMENTS = 10
"""A template is compared if each completed trial has so many timed statements of it."""

LEAST_SHARE = 0.01
"""And if it takes so much of the time of all statements: the median over the blocks of the larger share of the two
trials. Of more than MOST_STATEMENTS those with the largest shares."""


def statement_claims(grid: Grid, withheld: Collection[str]) -> list[StatementClaim]:
    """The claims of each comparison, the largest share first; none of a study without a replay.

    `withheld` holds the arms whose comparison is withheld.
    """
    if all(point.replay is None for point in grid.plan.load_points):
        return []
    return [claim for arm in grid.plan.others for claim in _Comparison(grid, arm).claims(withheld=arm in withheld)]


class _Statements:
    """What became of the statements of a completed trial, by template."""

    def __init__(self, templates: Sequence[TemplateResult]):
        self.results = {result.template: result for result in templates}
        self._total_us = math.fsum(result.total_us for result in templates)
        self.enough = {result.template for result in templates if result.timed >= FEWEST_STATEMENTS}

    def share(self, number: int) -> float:
        """A template's share of the time of all statements."""
        return self.results[number].total_us / self._total_us if self._total_us and number in self.results else 0.0

    def mean_us(self, number: int) -> float | None:
        """The mean time of a template's statements, microseconds; None where none has a time."""
        result = self.results.get(number)
        return result.time_us.mean if result is not None and result.time_us is not None else None


@dataclass(frozen=True)
class _Series:
    """What the looks so far said about one template."""

    family: int
    """Templates that shared the error of the last look that read it."""
    readings: tuple[p8.Reading, ...] = ()

    @property
    def decided(self) -> bool:
        return any(reading.verdict != "undecided" for reading in self.readings)


class _Comparison:
    """The statements of an arm beside those of the baseline."""

    def __init__(self, grid: Grid, arm: str):
        self._grid, self._arm = grid, arm
        self._arms = (arm, grid.plan.baseline)
        self._trials = {
            (trial.arm, trial.block): _Statements(trial.replay.templates)
            for name in self._arms
            for trial in grid.of(name)
            if trial.status != "failed" and trial.replay is not None
        }
        self._log_ratios: dict[int, dict[int, float]] = {}

    def claims(self, *, withheld: bool) -> list[StatementClaim]:
        """Empty while one of the arms has no completed trial."""
        trials = {name: [own for (arm, _), own in self._trials.items() if arm == name] for name in self._arms}
        if not all(trials.values()):
            return []
        limits = p8.ratio_limits(self._grid.plan.margin)
        claims = []
        for number, series in self._series(limits).items():
            results = {
                name: [own.results[number] for own in trials[name] if number in own.results] for name in self._arms
            }
            every = [result for of_arm in results.values() for result in of_arm]
            units = len(self._grid.units.means(self._logs(number), self._grid.counted))
            found = concluded(p8.conclude(series.readings, limits), limits, units)
            claims.append(
                StatementClaim(
                    template=number,
                    text=every[0].text,
                    arm=self._arm,
                    baseline=self._grid.plan.baseline,
                    statements=round(median(result.statements for result in every)),
                    share={name: median(own.share(number) for own in trials[name]) for name in self._arms},
                    mean_us={name: median(own.mean_us(number) or 0.0 for own in trials[name]) for name in self._arms},
                    verdict="withheld" if withheld else found.verdict,
                    within_margin=found.within_margin,
                    difference=found.difference,
                    claims=series.family,
                    blocks=found.blocks,
                )
            )
        return claims

    def _series(self, limits: p8.Limits) -> dict[int, _Series]:
        """By template what the looks said: those of the last look, the largest share first, then others once decided.

        Before the first look these are the templates that all stored blocks would choose.
        """
        grid = self._grid
        found: dict[int, _Series] = {}
        family = self._family(grid.blocks)
        for look, units in grid.units.reached(grid.counted):
            blocks = grid.units.blocks(units)
            family = self._family(blocks)
            for number in family:
                readings = found[number].readings if number in found else ()
                if values := grid.units.means(self._logs(number), blocks):
                    readings = (*readings, grid.units.reading(look, values, limits, len(family)))
                found[number] = _Series(len(family), readings)
        of_family = {number: found.get(number, _Series(len(family))) for number in family}
        return of_family | {number: series for number, series in found.items() if series.decided}

    def _family(self, blocks: Collection[int]) -> list[int]:
        """The templates that these blocks choose, the largest share first."""
        pairs = [[self._trials[arm, block] for arm in self._arms if (arm, block) in self._trials] for block in blocks]
        pairs = [pair for pair in pairs if pair]
        if not pairs:
            return []
        enough = set.intersection(*(trial.enough for pair in pairs for trial in pair))
        shares = {number: median(max(trial.share(number) for trial in pair) for pair in pairs) for number in enough}
        notable = sorted(number for number, share in shares.items() if share >= LEAST_SHARE)
        return sorted(notable, key=lambda number: -shares[number])[:MOST_STATEMENTS]

    def _logs(self, number: int) -> dict[int, float]:
        """By complete block the log-ratio of a template's speeds; computed once."""
        if number not in self._log_ratios:
            self._log_ratios[number] = self._grid.block_means([0], partial(self._log_ratio, number))
        return self._log_ratios[number]

    def _log_ratio(self, number: int, block: int, _point: int) -> float | None:
        """A failed trial is the worst there is, two of them say nothing."""
        trials = [self._trials.get((arm, block)) for arm in self._arms]
        ours, theirs = (trial.mean_us(number) if trial is not None else None for trial in trials)
        if not ours and not theirs:
            return None
        if not ours or not theirs:
            return p8.WORST if ours else -p8.WORST
        return math.log(theirs / ours)
