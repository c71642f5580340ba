"""The claims that a study makes about its arms, and which of them share an error. If the speed of an arm changes within
trials, or falls off a cliff between two sizes of the data, a claim is divided into parts: one for each regime, or one
for each side of the cliff."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass

from pgtrial.model.records.claims import SIDES, BlockRatio, Side, When
from pgtrial.model.records.plan import Plan
from pgtrial.verdict.changes import Changes
from pgtrial.verdict.failures import failed_in
from pgtrial.verdict.grid import Grid
from pgtrial.verdict.series import Question, Series, follow
from pgtrial.verdict.sweeps import sides


@dataclass(frozen=True)
class Subject:
    """The subject of a claim: an arm in comparison with the baseline, at one load point (`point`) or, if `point` is
    None, for the mean over all load points."""

    arm: str
    point: int | None
    family: int
    """The number of claims that share the error of each look."""


def subjects(plan: Plan) -> tuple[list[Subject], list[Subject]]:
    """Returns the subjects of the primary claims, which are about the mean over all load points, and the subjects of
    the claims at single load points."""
    arms, points = plan.others, range(len(plan.load_points))
    at_points = [Subject(arm, point, sharing(plan)) for arm in arms for point in points]
    return [Subject(arm, None, primary_sharing(plan)) for arm in arms], at_points


def primary_sharing(plan: Plan) -> int:
    """Returns how many primary claims share the error of each look, counted over all studies that share the error of
    5%. It is at least one."""
    return plan.sharing(max(1, len(plan.others))) * plan.studies


def sharing(plan: Plan) -> int:
    """Returns how many claims at load points share the error of each look."""
    points = len(plan.load_points)
    return plan.studies * (
        plan.sharing(points, in_each_comparison=True) if points > 1 else plan.sharing(max(1, len(plan.others)))
    )


Key = When | Side | None
"""The part of a subject that a claim is about: a regime, a side of a cliff, or, if None, whole trials with all sizes of
the data."""


@dataclass(frozen=True)
class Part:
    """A claim on a subject, or on a part of it: there is one for each regime or each side of a cliff."""

    about: Subject
    regime: Key
    ratios: list[BlockRatio]
    """The log-ratios of all units of analysis."""
    series: Series


def parts_of(grid: Grid, changes: Changes, about: Subject) -> list[Part]:
    """Returns the claims about a subject after the looks so far: a single claim, or one claim for each regime or side
    of a cliff.

    Each look chooses from its own blocks which of these claims it reads, by a rule that does not know which arm is
    which. As soon as a look has decided a claim, the kind of the claims is fixed: if a later look chooses another kind,
    it reads no claim. Therefore no look spends its error twice, and a claim that is decided stays decided.
    """
    ratios: dict[Key, list[BlockRatio]] = {}

    def choice(blocks: Set[int], decided: Set[Key]) -> Mapping[Key, Question] | None:
        chosen: dict[Key, list[BlockRatio]] = dict(changes.ratios(about.arm, about.point, blocks).items())
        if not chosen and about.point is None:
            chosen.update((side, grid.ratios(about.arm, of)) for side, of in sides(grid, about.arm, blocks).items())
        chosen = chosen or {None: grid.ratios(about.arm, grid.over(about.point))}
        if decided and _kinds(decided) != _kinds(chosen):
            return None
        for regime, of_blocks in chosen.items():
            ratios[regime] = grid.units.pooled(of_blocks)
        # as soon as a transaction has failed in either arm, the claim on failures takes half of the error
        shared = len(chosen) * about.family * (2 if failed_in(grid, about.arm, grid.over(about.point), blocks) else 1)
        return {
            regime: Question(
                counting(ratios[regime]),
                shared,
                grid.plan.margin,
                grid.primary.scale,
                {ratio.block: frozenset(ratio.cut) for ratio in ratios[regime] if ratio.cut},
                about.arm,
            )
            for regime in chosen
        }

    return [Part(about, regime, ratios[regime], series) for regime, series in follow(grid, choice).items()]


def _kinds(keys: Iterable[Key]) -> set[str]:
    """Returns which kinds of claims these are: `whole` (whole trials of all sizes), `regime` or `side` (of a cliff)."""
    return {"whole" if key is None else "side" if key in SIDES else "regime" for key in keys}


def counting(ratios: list[BlockRatio]) -> dict[int, float]:
    """Returns the log-ratios of the blocks (or units) that count and have a log-ratio, in order."""
    return {ratio.block: ratio.log_ratio for ratio in ratios if ratio.counted and ratio.log_ratio is not None}
