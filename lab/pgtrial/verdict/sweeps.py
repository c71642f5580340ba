"""Sweeps: groups of load points that differ only in the number of clients, or only in the size of the data.

Each block has one curve for each arm: the natural logarithm of the throughput at the load points of the sweep. A block
is used only if none of the arm's trials at these load points failed. The comparisons of the arms at the single load
points do count failed trials, as the worst result of all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from pgtrial.model.records.claims import Claim, Side
from pgtrial.model.records.load_point import LoadPoint
from pgtrial.model.records.plan import Plan
from pgtrial.model.records.sweeps import Bounds
from pgtrial.model.records.trial import Trial
from pgtrial.statistics.cliffs import FEWEST_SIZES, BrokenLine, broken_line
from pgtrial.statistics.p8 import Floats, Interval
from pgtrial.statistics.scalability import FEWEST_NUMBERS
from pgtrial.verdict.changes import WHEN
from pgtrial.verdict.grid import Grid

Dimension = Literal["clients", "scale"]

_FEWEST: Mapping[Dimension, int] = {"clients": FEWEST_NUMBERS, "scale": FEWEST_SIZES}


@dataclass(frozen=True)
class Sweep:
    """A sweep: six or more load points that differ only in the number of clients or only in the size of the data."""

    points: tuple[int, ...]
    """The indexes of the load points, sorted by the number in which they differ."""
    numbers: tuple[int, ...]
    """The number of clients, or the scale factor, at each load point, in ascending order."""


def sweeps(plan: Plan, over: Dimension) -> list[Sweep]:
    """Returns the sweeps of a study: groups of load points that differ only in the number of clients, or only in the
    scale, as `over` says. The result is empty for a load at a given rate, since the rate fixes the throughput."""
    if plan.is_paced:
        return []
    alike: dict[LoadPoint, dict[int, int]] = {}
    for point_index, point in enumerate(plan.load_points):
        alike.setdefault(point.model_copy(update={over: 0}), {})[getattr(point, over)] = point_index
    return [
        Sweep(tuple(point_index for _, point_index in sorted(by_number.items())), tuple(sorted(by_number)))
        for by_number in alike.values()
        if len(by_number) >= _FEWEST[over]
    ]


def family_of(plan: Plan, found: Sequence[Sweep]) -> int:
    """Returns among how many comparisons each look (interim analysis) divides its allowed probability of a wrong
    verdict. There is one comparison for each sweep (load points that differ in one number only) and each arm except the
    baseline."""
    return plan.sharing(len(found) * len(plan.others))


def changing_arms(grid: Grid, primary: Sequence[Claim]) -> set[str]:
    """Returns the arms whose speed changes for good within trials, and then also the baseline. They get no curve, since
    an average over the time before and after the change would describe neither of them."""
    changing = {claim.arm for claim in primary if any(part.regime in WHEN for part in claim.parts)}
    return changing | ({grid.plan.baseline} if changing else set())


def bounds(interval: Interval) -> Bounds:
    """Returns an interval in the form in which it is stored, with None in place of infinite numbers."""
    low, value, high = (end if math.isfinite(end) else None for end in (interval.low, interval.estimate, interval.high))
    return Bounds(low=low, value=value, high=high)


Curves = dict[int, tuple[float, ...]]
"""The values at the load points of a sweep (load points that differ in one number only), by block."""


def curves(grid: Grid, sweep: Sweep, arm: str) -> Curves:
    """Returns the natural logarithms of an arm's throughput, for each complete block in which none of its trials
    failed."""
    return readings(grid, sweep, arm, lambda trial: math.log(speed) if (speed := grid.goodput(trial)) else None)


def readings(grid: Grid, sweep: Sweep, arm: str, value: Callable[[Trial], float | None]) -> Curves:
    """Returns a value of an arm's trials at the load points of the sweep (load points that differ in one number only),
    for each complete block in which all of these values are known."""
    known = {}
    for block in grid.counted:
        trials = [grid.trial(block, point, arm) for point in sweep.points]
        values = [value(trial) for trial in trials if trial is not None]
        if len(values) == len(trials) and None not in values:
            known[block] = tuple(of_trial for of_trial in values if of_trial is not None)
    return known


def spoilt(grid: Grid, sweep: Sweep, arm: str) -> int:
    """Returns the number of complete blocks that the curve of the arm leaves out, because a trial at a load point of
    the sweep (load points that differ in one number only) failed or committed nothing."""
    in_blocks = ([grid.trial(block, point, arm) for point in sweep.points] for block in grid.counted)
    return sum(any(trial is not None and not grid.goodput(trial) for trial in trials) for trials in in_blocks)


def of_units(grid: Grid, sweep: Sweep, of_blocks: Curves, blocks: Collection[int] | None = None) -> Floats:
    """Returns an array with a row for each complete block or, if each arm has several servers, for each complete pair
    of servers. A row has the means of the values over the blocks of the pair. With `blocks`, only these blocks are
    used."""
    counted = grid.counted if blocks is None else sorted(set(blocks) & set(grid.counted))
    by_point = [
        grid.units.means({block: curve[index] for block, curve in of_blocks.items()}, counted)
        for index in range(len(sweep.points))
    ]
    rows = [list(of_point.values()) for of_point in by_point]
    return np.asarray(rows, dtype=np.float64).reshape(len(sweep.points), -1).T


def line_of_loser(grid: Grid, sweep: Sweep, arm: str, blocks: Collection[int]) -> BrokenLine | None:
    """Returns a broken line over the sizes of the data that was fitted to one curve of each block: the curve of the arm
    or of the baseline, whichever loses more throughput from the smallest to the largest size.

    A cliff is therefore found even if only one of the two arms has it. The choice of the curve does not depend on which
    of the two is the arm and which the baseline, so that what follows from the line favours neither arm.
    """
    ours, theirs = curves(grid, sweep, arm), curves(grid, sweep, grid.plan.baseline)
    losers = {
        block: min(ours[block], theirs[block], key=lambda curve: (curve[-1] - curve[0], curve))
        for block in sorted(ours.keys() & theirs.keys())
    }
    return broken_line(sweep.numbers, of_units(grid, sweep, losers, blocks))


def sides(grid: Grid, arm: str, blocks: Collection[int]) -> dict[Side, Sequence[int]]:
    """Returns the load points below and above the first cliff of an arm or of the baseline in these blocks. A cliff is
    a size of the data above which the throughput falls. The result is empty if there is no cliff.

    Load points of sweeps without a cliff, and load points that belong to no sweep, count as below.
    """
    above: list[int] = []
    for sweep in sweeps(grid.plan, "scale"):
        line = line_of_loser(grid, sweep, arm, blocks)
        if line is not None and line.cliffs:
            edge = line.cliffs[0].size.estimate
            above += [
                point_index for point_index, scale in zip(sweep.points, sweep.numbers, strict=True) if scale > edge
            ]
    if not above:
        return {}
    return {"below": [point_index for point_index in grid.points if point_index not in above], "above": sorted(above)}
