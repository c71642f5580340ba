"""Which claims a study makes about its arms, and which of them share an error; a regime is an attribute of a claim."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass

from pgtrial.model.records.plan import Plan
from pgtrial.model.records.results import BlockRatio, When
from pgtrial.verdict.changes import Changes
from pgtrial.verdict.grid import Grid
from pgtrial.verdict.series import Question, Series, follow


@dataclass(frozen=True)
class Subject:
    """What a claim is about: an arm against the baseline, at a load point or (None) as the mean over all of them."""

    arm: str
    point: int | None
    family: int
    """Number of claims that share the error of each look."""


def subjects(plan: Plan) -> tuple[list[Subject], list[Subject]]:
    """What a study makes claims about: over all load points, the primary claims, and at each load point of each arm."""
    arms, points = plan.others, range(len(plan.load_points))
    at_points = [Subject(arm, point, sharing(plan)) for arm in arms for point in points]
    return [Subject(arm, None, len(arms)) for arm in arms], at_points


def sharing(plan: Plan) -> int:
    """Number of claims at load points that share the error of each look."""
    return len(plan.load_points) if len(plan.load_points) > 1 else len(plan.others)


@dataclass(frozen=True)
class Part:
    """One claim of a subject: on whole trials, or on one regime."""

    about: Subject
    regime: When | None
    ratios: list[BlockRatio]
    """By unit."""
    series: Series


def parts_of(grid: Grid, changes: Changes, about: Subject) -> list[Part]:
    """The claims about a subject after the looks so far: one on whole trials, or one for each regime with known units.

    Each look chooses which of them it reads from its own blocks alone, by a rule in which both arms are alike. The
    first look that decides one of them also settles whether the subject has one claim or one for each regime: later
    looks that choose otherwise say nothing. So no look spends its error twice, and what is decided stays.
    """
    ratios: dict[When | None, list[BlockRatio]] = {}

    def choice(blocks: Set[int], decided: Set[When | None]) -> Mapping[When | None, Question] | None:
        by_regime = changes.ratios(about.arm, about.point, blocks)
        chosen: Mapping[When | None, list[BlockRatio]] = dict(by_regime.items())
        chosen = chosen or {None: grid.ratios(about.arm, grid.over(about.point))}
        if decided and (None in decided) != (None in chosen):
            return None
        for regime, of_blocks in chosen.items():
            ratios[regime] = grid.units.pooled(of_blocks)
        return {
            regime: Question(counting(ratios[regime]), len(chosen) * about.family, grid.plan.margin, grid.primary.scale)
            for regime in chosen
        }

    return [Part(about, regime, ratios[regime], series) for regime, series in follow(grid, choice).items()]


def counting(ratios: list[BlockRatio]) -> dict[int, float]:
    """The blocks or units that count and say something, each with its log-ratio, in order."""
    return {ratio.block: ratio.log_ratio for ratio in ratios if ratio.counted and ratio.log_ratio is not None}
