"""The claims that a study makes, which are comparisons of an arm with the baseline, and which of them share the allowed
probability of a wrong verdict.

If the speed of an arm changes for good within trials, a claim is divided into two parts: before and after the change.
If the throughput falls off a cliff between two sizes of the data, it is divided into one part for each side of the
cliff.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass

from pgtrial.model.records.claims import SIDES, BlockRatio, Side, When
from pgtrial.model.records.plan import Plan
from pgtrial.verdict.changes import Changes
from pgtrial.verdict.failures import failed_in
from pgtrial.verdict.grid import Grid
from pgtrial.verdict.screening import factor_series, labels
from pgtrial.verdict.series import Question, Series, follow
from pgtrial.verdict.sweeps import sides


@dataclass(frozen=True)
class Subject:
    """The subject of a claim, that is, what the claim compares: an arm with the baseline, at one load point (`point`)
    or, if `point` is None, for the mean over all load points."""

    arm: str
    point: int | None
    family: int
    """The number of claims (comparisons) among which each look (interim analysis) divides its allowed probability of a
    wrong verdict."""


def subjects(plan: Plan) -> tuple[list[Subject], list[Subject]]:
    """Returns first the subjects of the primary claims, which compare each arm with the baseline over all load points
    and decide the verdicts, and then the subjects of the comparisons at single load points.

    In a screening study the primary claims compare the second level of each factor with the first one.
    """
    if plan.factors:
        return [Subject(label, None, primary_sharing(plan)) for label in labels(plan)], []
    arms, points = plan.others, range(len(plan.load_points))
    at_points = [Subject(arm, point, sharing(plan)) for arm in arms for point in points]
    return [Subject(arm, None, primary_sharing(plan)) for arm in arms], at_points


def primary_sharing(plan: Plan) -> int:
    """Returns among how many primary claims (the comparisons that decide the verdicts) each look (interim analysis)
    divides its allowed probability of a wrong verdict. If the plan lets several studies share the error of 5%, the
    claims of all of them count. The result is at least one."""
    return plan.sharing(len(plan.factors) or max(1, len(plan.others)), over_studies=True)


def sharing(plan: Plan) -> int:
    """Returns among how many comparisons at single load points each look (interim analysis) divides its allowed
    probability of a wrong verdict."""
    points = len(plan.load_points)
    if points > 1:
        return plan.sharing(points, in_each_comparison=True, over_studies=True)
    return plan.sharing(max(1, len(plan.others)), over_studies=True)


Key = When | Side | None
"""The part of the data that a claim (comparison) is about: the time before or after a change of speed, one side of a
cliff (a size of the data above which the throughput falls), or, if None, whole trials with all sizes of the data."""


@dataclass(frozen=True)
class Part:
    """A claim (comparison) on a subject, or on a part of it: the time before or after a lasting change of speed, or one
    side of a cliff (a size of the data above which the throughput falls)."""

    about: Subject
    regime: Key
    ratios: list[BlockRatio]
    """The logarithms of the ratio of the arm to the baseline, one for each block or, if each arm has several servers,
    for each pair of servers."""
    series: Series


def parts_of(grid: Grid, changes: Changes, about: Subject) -> list[Part]:
    """Returns the claims (comparisons) about a subject after the looks (interim analyses) so far: a single claim, or
    one claim for each time before and after a lasting change of speed, or one for each side of a cliff (a size of the
    data above which the throughput falls).

    Each look chooses from its own blocks which of these claims it reads, by a rule that does not know which arm is
    which. As soon as a look has decided a claim, the kind of the claims is fixed: if a later look chooses another kind,
    it reads no claim. Therefore no look uses its allowed probability of a wrong verdict twice, and a claim that is
    decided stays decided.
    """
    if grid.plan.factors:
        return [Part(about, None, *factor_series(grid, about.arm, about.family))]
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
    """Returns the kinds of these claims (comparisons): `whole` (about whole trials of all sizes), `regime` (about the
    time before or after a change of speed) or `side` (about one side of a cliff)."""
    return {"whole" if key is None else "side" if key in SIDES else "regime" for key in keys}


def counting(ratios: list[BlockRatio]) -> dict[int, float]:
    """Returns the log-ratios of the arm to the baseline, by the number of the block (or pair of servers). Blocks that
    do not count, and blocks in which the ratio is not known, are left out."""
    return {ratio.block: ratio.log_ratio for ratio in ratios if ratio.counted and ratio.log_ratio is not None}
