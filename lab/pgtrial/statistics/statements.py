"""The statements of a replay: which templates are slower on an arm, as a family of claims that hold together.

Compared is the mean time of a template's statements within a block, as speeds are: the log-ratio, by the rule P8. The
templates of a comparison share the error of each look evenly (Bonferroni). Which templates these are follows from both
arms alike: exchanging the two trials of a block changes nothing of it. So the coin makes each claim as exact as if they
had been named before.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
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
    return [claim for arm in grid.plan.others for claim in _claims(grid, arm, withheld=arm in withheld)]


def _claims(grid: Grid, arm: str, *, withheld: bool) -> list[StatementClaim]:
    """The claims of a comparison; none while one of the arms has no completed trial."""
    arms, margin = (arm, grid.plan.baseline), grid.plan.margin
    trials = {each: [results for trial in grid.of(each) if (results := _completed(trial))] for each in arms}
    if not all(trials.values()):
        return []
    shares = {each: _shares(own) for each, own in trials.items()}
    templates = _compared(shares.values())
    claims = []
    for number in templates:
        own = {each: [trial[number] for trial in trials[each]] for each in arms}
        every = [result for of_arm in own.values() for result in of_arm]
        logs = grid.block_means([0], partial(_log_ratio, grid, arm, number))
        found = outcome(grid, logs, p8.ratio_limits(margin), len(templates))
        claims.append(
            StatementClaim(
                template=number,
                text=every[0].text,
                arm=arm,
                baseline=grid.plan.baseline,
                statements=round(median(each.statements for each in every)),
                share={each: shares[each][number] for each in arms},
                mean_us={each: median(_mean_us(result) or 0.0 for result in own[each]) for each in arms},
                verdict="withheld" if withheld else found.verdict,
                within_margin=found.within_margin,
                difference=found.difference,
                claims=len(templates),
                blocks=found.blocks,
            )
        )
    return claims


def _compared(shares: Collection[Mapping[int, float]]) -> list[int]:
    """The templates that are compared, the largest share on one of the arms first."""
    common = set.intersection(*map(set, shares))
    most = {number: max(of_arm[number] for of_arm in shares) for number in sorted(common)}
    notable = [number for number in most if most[number] >= LEAST_SHARE]
    return sorted(notable, key=lambda number: -most[number])[:MOST_STATEMENTS]


def _log_ratio(grid: Grid, arm: str, number: int, block: int, point: int) -> float | None:
    """The log-ratio of speeds. A failed trial is the worst there is, two of them say nothing."""
    ours, theirs = (_mean_us(_completed(trial).get(number)) for trial in grid.pair(block, point, arm))
    if not ours and not theirs:
        return None
    if not ours or not theirs:
        return p8.WORST if ours else -p8.WORST
    return math.log(theirs / ours)


def _completed(trial: Trial | None) -> _By:
    """Empty for a trial that is not there, or has failed."""
    if trial is None or trial.status == "failed" or trial.replay is None:
        return {}
    return {each.template: each for each in trial.replay.templates}


def _shares(trials: Sequence[_By]) -> dict[int, float]:
    """By template the median share of the time, of those with enough statements in each trial."""
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
