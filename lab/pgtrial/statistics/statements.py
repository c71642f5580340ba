"""The statements of a replay: which templates are slower on an arm, as a family of claims that hold together.

Compared is the mean time of a template's statements within a block, as speeds are: the log-ratio, by the rule P8. The
templates of a comparison share the error of each look evenly (Bonferroni). Which templates these are follows from both
arms alike: exchanging the two trials of a block changes nothing of it. So the coin makes each claim as exact as if they
had been named before.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median

from pgtrial.model.records.replay import TemplateResult
from pgtrial.model.records.results import StatementClaim
from pgtrial.model.records.trial import Trial
from pgtrial.model.study.replay import MOST_STATEMENTS
from pgtrial.statistics import p8
from pgtrial.statistics.claims import outcome
from pgtrial.statistics.ratios import Grid

FEWEST_STATEMENTS = 10
"""A template is compared if each completed trial has so many timed statements of it."""

LEAST_SHARE = 0.01
"""And if it takes so much of the time of all statements, on one of the two arms at least. Of more than MOST_STATEMENTS
those with the largest shares."""

_By = Mapping[int, TemplateResult]
"""The results of a trial by template."""


def statement_claims(grid: Grid, withheld: Collection[str]) -> list[StatementClaim]:
    """The claims of each comparison, the largest share first; none of a study without a replay.

    `withheld` holds the arms whose comparison is withheld.
    """
    if all(point.replay is None for point in grid.plan.load_points):
        return []
    compared = [found for arm in grid.plan.others if (found := _comparison(grid, arm)) is not None]
    return [
        each.claim(number, len(each.templates), withheld=each.arm in withheld)
        for each in compared
        for number in each.templates
    ]


@dataclass(frozen=True)
class _Comparison:
    """An arm against the baseline."""

    grid: Grid
    arm: str
    trials: Mapping[str, Sequence[_By]]
    """By arm, the completed trials."""
    shares: Mapping[str, Mapping[int, float]]
    """By arm and template, the median share of the time, of those with enough statements in each trial."""

    @property
    def templates(self) -> list[int]:
        """The templates that are compared, the largest share on one of the arms first."""
        most = {
            number: max(shares[number] for shares in self.shares.values())
            for number in set.intersection(*map(set, self.shares.values()))
        }
        notable = [number for number in sorted(most) if most[number] >= LEAST_SHARE]
        return sorted(notable, key=lambda number: -most[number])[:MOST_STATEMENTS]

    def claim(self, number: int, claims: int, *, withheld: bool) -> StatementClaim:
        """The claim on a template, one of so many."""
        logs = self.grid.block_means([0], partial(self._log_ratio, number))
        found = outcome(self.grid, logs, p8.ratio_limits(self.grid.plan.margin), claims)
        by_arm = {arm: [trial[number] for trial in trials] for arm, trials in self.trials.items()}
        every = [each for own in by_arm.values() for each in own]
        return StatementClaim(
            template=number,
            text=every[0].text,
            arm=self.arm,
            baseline=self.grid.plan.baseline,
            statements=round(median(each.statements for each in every)),
            share={arm: self.shares[arm][number] for arm in by_arm},
            mean_us={arm: median(_mean_us(each) or 0.0 for each in own) for arm, own in by_arm.items()},
            verdict="withheld" if withheld else found.verdict,
            within_margin=found.within_margin,
            difference=found.difference,
            claims=claims,
            blocks=found.blocks,
        )

    def _log_ratio(self, number: int, block: int, point: int) -> float | None:
        """The log-ratio of speeds. A failed trial is the worst there is, two of them say nothing."""
        pair = self.grid.pair(block, point, self.arm)
        ours, theirs = (_mean_us(_completed(trial).get(number)) for trial in pair)
        if not ours and not theirs:
            return None
        if not ours or not theirs:
            return p8.WORST if ours else -p8.WORST
        return math.log(theirs / ours)


def _comparison(grid: Grid, arm: str) -> _Comparison | None:
    """None while one of the arms has no completed trial."""
    of_arm = {each: [_completed(trial) for trial in grid.of(each)] for each in (arm, grid.plan.baseline)}
    trials = {each: [found for found in own if found] for each, own in of_arm.items()}
    if not all(trials.values()):
        return None
    return _Comparison(grid, arm, trials, {each: _shares(own) for each, own in trials.items()})


def _completed(trial: Trial | None) -> _By:
    """Empty for a trial that is not there, or has failed."""
    if trial is None or trial.status == "failed" or trial.replay is None:
        return {}
    return {each.template: each for each in trial.replay.templates}


def _shares(trials: Sequence[_By]) -> dict[int, float]:
    enough = set.intersection(
        *({number for number, each in trial.items() if each.timed >= FEWEST_STATEMENTS} for trial in trials)
    )
    totals = [math.fsum(each.total_us for each in trial.values()) for trial in trials]
    return {
        number: median(
            trial[number].total_us / total if total else 0.0 for trial, total in zip(trials, totals, strict=True)
        )
        for number in enough
    }


def _mean_us(result: TemplateResult | None) -> float | None:
    return result.time_us.mean if result is not None and result.time_us is not None else None
