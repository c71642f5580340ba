"""Whether arms are compared at equal quality of their answers: a faster arm that answers worse is no better one."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import Literal

from pgtrial.model.records.plan import Quality
from pgtrial.statistics.ratios import Grid

_ROUNDING = 1e-9

Rule = Literal["unequal_quality", "quality_not_reached"]


@dataclass(frozen=True)
class QualityCell:
    """An arm at a load point whose quality forbids to compare it with the baseline there."""

    rule: Rule
    arm: str
    point: int
    quality: Quality
    value: float
    """The median over its trials."""
    of_baseline: float

    def withholds(self, baseline: str, arm: str, point: int | None) -> bool:
        """Whether there is no verdict on `arm`, at a load point or (None) as the mean over all that holds this one."""
        return self.arm in (arm, baseline) and point in (None, self.point)


def quality_cells(grid: Grid) -> list[QualityCell]:
    """Where the quality is too low or unlike the baseline's, in the order of the load points and arms."""
    found = []
    for point, load_point in enumerate(grid.plan.load_points):
        quality = None if load_point.pack is None else load_point.pack.quality
        if quality is None:
            continue
        known = {arm: quality_of(grid, arm, point) for arm in grid.plan.arms}
        # an arm whose trials have all failed is judged by that
        values = {arm: value for arm, value in known.items() if value is not None}
        base = values.get(grid.plan.baseline)
        if base is None:
            continue
        for arm, value in values.items():
            rule = _rule(quality, value, base)
            if rule is not None:
                found.append(QualityCell(rule, arm, point, quality, value, base))
    return found


def quality_of(grid: Grid, arm: str, point: int) -> float | None:
    """Median quality over the completed trials of an arm at a load point; None without any."""
    known = [trial.quality for trial in grid.of(arm, point) if trial.quality is not None]
    return median(known) if known else None


def _rule(quality: Quality, value: float, base: float) -> Rule | None:
    if not quality.reaches(value):
        return "quality_not_reached"
    return "unequal_quality" if abs(value - base) > quality.tolerance + _ROUNDING else None
