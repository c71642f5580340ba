"""What a study's blocks reached in the time that they took: the width of a claim's interval after each of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from pgtrial.model.records.plan import Plan
from pgtrial.model.records.results import Claim, Estimate
from pgtrial.model.records.trial import Trial
from pgtrial.statistics import p8
from pgtrial.statistics.claims import as_difference
from pgtrial.statistics.ratios import Grid

ALPHA = 0.05


@dataclass(frozen=True)
class Spent:
    """Time that all trials up to a block took, seconds."""

    wall_s: float
    """In which some trial was under way, from its preparation to its end."""
    measured_s: float
    """Of that, in which trials were measured."""

    @property
    def measured(self) -> float:
        """The share of the time in which trials were measured."""
        return self.measured_s / self.wall_s


@dataclass(frozen=True)
class Reached:
    """What so many units of a claim say, and after what time."""

    units: int
    spent: Spent
    difference: Estimate
    """With the exact 95% interval of these units alone, which promises nothing for all looks together."""
    at_look: Estimate | None
    """With the sequential interval; None: no planned look."""


def reached(plan: Plan, trials: Sequence[Trial], claim: Claim) -> list[Reached]:
    """After each unit of a claim from which on an interval is bounded, in order."""
    grid = Grid(plan, trials)
    spent = _spent(grid)
    counted = [ratio for ratio in claim.ratios if ratio.counted and ratio.log_ratio is not None]
    logs = [ratio.log_ratio for ratio in counted if ratio.log_ratio is not None]
    looks = {look.blocks: look.difference for look in claim.looks}
    found = []
    for units in range(1, len(logs) + 1):
        difference = as_difference(p8.interval(logs[:units], ALPHA / claim.family))
        if difference.low is not None:
            last = max(grid.units.blocks([ratio.block for ratio in counted[:units]]))
            found.append(Reached(units, spent[last], difference, looks.get(units)))
    return found


def _spent(grid: Grid) -> dict[int, Spent]:
    """By complete block: the time of all blocks up to it."""
    found, wall_s, measured_s = {}, 0.0, 0.0
    for block, own in grid.by_block.items():
        wall_s += under_way_s(own)
        measured_s += sum(trial.measured.duration_s for trial in own if trial.measured)
        found[block] = Spent(wall_s, min(measured_s, wall_s))
    return found


def block_seconds(grid: Grid) -> dict[int, float]:
    """Wall time of each complete block, seconds."""
    return {block: under_way_s(own) for block, own in grid.by_block.items()}


def under_way_s(trials: Sequence[Trial]) -> float:
    """How long at least one of the trials was under way, seconds."""
    spans = sorted((datetime.fromisoformat(each.started), datetime.fromisoformat(each.ended)) for each in trials)
    total, until = 0.0, None
    for started, ended in spans:
        begins = started if until is None else max(started, until)
        total += max(0.0, (ended - begins).total_seconds())
        until = ended if until is None else max(until, ended)
    return total


def half_width(difference: Estimate | None) -> float | None:
    """Half of the interval's width, a share; None for an unbounded one."""
    if difference is None or difference.low is None or difference.high is None:
        return None
    return (difference.high - difference.low) / 2
