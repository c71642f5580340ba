"""Says of a CI runner how its own speed changed while a gate measured: that it drifted, or that it switched between two
speeds. Both set-ups share such changes, so that they are no difference between them, but noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean

from pgtrial.model.units import percent, plural
from pgtrial.report.data import StudyData
from pgtrial.statistics.drift import trend_within
from pgtrial.statistics.two_levels import TwoLevels, two_levels
from pgtrial.verdict.grid import Grid

_NEGLIGIBLE = 0.02
"""The share of the speed below which a change of the runner's own speed is not named."""


def change_of_runner(data: StudyData) -> str | None:
    """Returns a sentence about how the speed of the runner changed: it switched between two speeds, changed once, or
    drifted. Returns None if it did not change, or for loads with a given rate, whose throughput says nothing of the
    speed."""
    if data.plan.is_paced:
        return None
    speeds = _speeds(data)
    levels = two_levels(list(speeds.values()))
    if levels is None:
        return _drift(list(speeds.values()))
    return _switches(levels, [list(speeds)[at] + 1 for at in levels.switches])


def _switches(levels: TwoLevels, blocks: Sequence[int]) -> str | None:
    """Returns a sentence about two levels of the speed. `blocks` are those that begin with another level, counted from
    1."""
    apart = math.expm1(levels.upper - levels.lower)
    if apart < _NEGLIGIBLE:
        return None
    if len(blocks) > 1:
        return (
            f"This runner is bistable: it switched {plural(len(blocks), 'time')} between two speeds that are about "
            f"{percent(apart, 0)} apart, for all set-ups alike."
        )
    rises = levels.is_upper[-1]
    change = apart if rises else -math.expm1(levels.lower - levels.upper)
    return (
        f"The speed of this runner changed once: from block {blocks[0]} on all set-ups were about "
        f"{percent(change, 0)} {'faster' if rises else 'slower'}."
    )


def _drift(speeds: Sequence[float]) -> str | None:
    """Returns a sentence about a steady trend of the speed, which is given in the order of the blocks."""
    trend = trend_within(["all"] * len(speeds), list(speeds))
    change = math.expm1(trend.slope * (len(speeds) - 1)) if trend is not None else 0.0
    if abs(change) < _NEGLIGIBLE:
        return None
    return (
        f"This runner drifts: from the first block to the last one all set-ups became about {percent(abs(change), 0)} "
        f"{'faster' if change > 0 else 'slower'}."
    )


def _speeds(data: StudyData) -> dict[int, float]:
    """Returns the mean log-throughput of the trials in each complete block in which no trial failed and no arm was left
    out. These blocks have the same arms and load points, so that their means differ only by the speed of the runner and
    by noise."""
    plan, speeds = data.plan, {}
    for block, trials in Grid(plan, data.trials).by_block.items():
        tps = [trial.measured.tps for trial in trials if trial.measured is not None and trial.measured.tps > 0]
        if len(tps) == len(plan.arms) * len(plan.load_points):
            speeds[block] = fmean(map(math.log, tps))
    return speeds
