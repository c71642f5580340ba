"""The time that blocks take, the spread of their log-ratios, and the interval that a study had reached after each
block. Forecasts and the chart of the precision use these values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from statistics import median

from pgtrial.model.records.claims import Claim, Estimate
from pgtrial.model.records.machine import FEWEST_BLOCKS
from pgtrial.model.records.plan import Plan
from pgtrial.model.records.trial import Trial
from pgtrial.model.units import grouped
from pgtrial.statistics import p8
from pgtrial.statistics.paired_t import ALPHA
from pgtrial.statistics.shamos import spread
from pgtrial.verdict.carry_over import Slices, log_speed
from pgtrial.verdict.family import counting
from pgtrial.verdict.grid import Grid
from pgtrial.verdict.screening import noise_of_blocks
from pgtrial.verdict.series import as_difference


def measured_spread(grid: Grid) -> tuple[float, int] | None:
    """Returns the spread of the blocks' log-ratios of an arm to the baseline, by the metric that decides the verdict,
    and the number of complete blocks.

    With several arms it is the largest spread. Returns None if there are fewer than four blocks, or if pairs of
    deployments are compared and not blocks.
    """
    if grid.units.unit != "block":
        return None
    if grid.plan.factors:  # without the effects of the factors, whose levels differ from block to block
        known = [noise_of_blocks(grid)]
    else:
        known = [list(counting(grid.ratios(arm, grid.points)).values()) for arm in grid.plan.others]
    fewest = min(map(len, known), default=0)
    return (max(map(spread, known)), fewest) if fewest >= FEWEST_BLOCKS else None


def within_spread(grid: Grid, slices: Slices) -> float | None:
    """Returns the part of the standard deviation of a block's log-ratio that comes from the random variation within its
    trials. The remaining part comes from differences between whole trials. The part within trials is estimated from the
    two halves of each trial. In longer trials it is smaller, by the square root of the length.

    The value is for the mean over the load points, as the verdict is; with several arms it is the largest value.
    Returns None if fewer than four blocks are complete, or if the arms do not alternate in slices of time.
    """
    if grid.plan.interleaving is None or grid.units.unit != "block":
        return None
    shifts = [grid.block_means(grid.points, partial(_shift, grid, slices, arm)) for arm in grid.plan.others]
    known = [list(of_blocks.values()) for of_blocks in shifts]
    return max(map(spread, known)) / 2 if min(map(len, known)) >= FEWEST_BLOCKS else None


def block_time(plan: Plan, trials: Sequence[Trial]) -> float:
    """Estimates the wall time of a block in seconds: the median time of the trials so far, multiplied by the number of
    trials in a block.

    If the arms take turns in slices, the trials of a load point run at the same time, and their common time counts
    once. Before the first trial the estimate of the plan is used. Arms that the study no longer runs do not count.
    """
    arms, points = len(plan.arms) - len(plan.left), len(plan.load_points)
    if not trials:
        return plan.trial_estimate_s * arms * points
    if plan.interleaving is None:
        return median(under_way_s([trial]) for trial in trials) * arms * points
    together = grouped(((trial.block, trial.load_point), trial) for trial in trials).values()
    return median(_of_so_many(group, arms) for group in together) * points


def _of_so_many(trials: Sequence[Trial], arms: int) -> float:
    """Estimates the time in seconds that the trials of `arms` arms take together if they take turns in slices. The
    estimate follows from the time that the given trials, possibly of more or fewer arms, took together."""
    seconds = under_way_s(trials)
    return seconds if len(trials) == arms else seconds * arms / len(trials)


@dataclass(frozen=True)
class Spent:
    """The time in seconds that all trials up to a certain block took."""

    wall_s: float
    """The time during which at least one trial was in progress, from its preparation to its end."""
    measured_s: float
    """The time in which trials were measured, which is a part of `wall_s`."""

    @property
    def measured(self) -> float:
        """Returns the share of `wall_s` in which trials were measured."""
        return self.measured_s / self.wall_s


@dataclass(frozen=True)
class Reached:
    """The interval that a claim (the comparison of an arm with the baseline) had after its first blocks or pairs of
    servers, and the time that the trials had taken until then."""

    units: int
    spent: Spent
    difference: Estimate
    """The difference with the 95% interval that would be exact if the study had looked at its data only once, after
    these blocks. The error of all planned looks together would be larger than 5% with such intervals."""
    at_look: Estimate | None
    """The difference with the interval of the look (interim analysis) that is planned after just these blocks; None if
    no look is planned there."""


def reached(plan: Plan, trials: Sequence[Trial], claim: Claim) -> list[Reached]:
    """Returns the interval of a claim (comparison) after its first block, its first two blocks and so on; if each arm
    has several servers, pairs of servers count in place of blocks. It begins where the interval is bounded for the
    first time."""
    grid = Grid(plan, trials)
    spent = _spent(grid)
    counted = counting(claim.ratios)
    logs = list(counted.values())
    looks = {look.blocks: look.difference for look in claim.looks}
    points = []
    for units in range(1, len(logs) + 1):
        difference = as_difference(p8.interval(logs[:units], ALPHA / claim.family), grid.primary.scale)
        if difference.low is not None:
            last = max(grid.units.blocks(list(counted)[:units]))
            points.append(Reached(units, spent[last], difference, looks.get(units)))
    return points


def _spent(grid: Grid) -> dict[int, Spent]:
    """Returns, for each complete block, the time that this block and all earlier blocks took."""
    spent, wall_s, measured_s = {}, 0.0, 0.0
    for block, trials in grid.by_block.items():
        wall_s += under_way_s(trials)
        measured_s += sum(trial.measured.duration_s for trial in trials if trial.measured)
        spent[block] = Spent(wall_s, min(measured_s, wall_s))
    return spent


def block_seconds(grid: Grid) -> dict[int, float]:
    """Returns the wall time of each complete block, seconds."""
    return {block: under_way_s(trials) for block, trials in grid.by_block.items()}


def under_way_s(trials: Sequence[Trial]) -> float:
    """Returns the time in seconds during which at least one of the trials was in progress."""
    spans = sorted((datetime.fromisoformat(trial.started), datetime.fromisoformat(trial.ended)) for trial in trials)
    total, until = 0.0, None
    for started, ended in spans:
        begins = started if until is None else max(started, until)
        total += max(0.0, (ended - begins).total_seconds())
        until = ended if until is None else max(until, ended)
    return total


def _shift(grid: Grid, slices: Slices, arm: str, block: int, point: int) -> float | None:
    """Returns the log-ratio of the arm to the baseline in the second halves of their two trials, minus the log-ratio in
    the first halves. It shows how much a log-ratio varies within a trial."""
    ours, its = (_change(grid, slices, trial) for trial in grid.pair(block, point, arm))
    return ours - its if ours is not None and its is not None else None


def _change(grid: Grid, slices: Slices, trial: Trial | None) -> float | None:
    """Returns by how much the logarithm of a trial's speed changes from its first half to its second half."""
    rows = slices.get(trial.index, ()) if trial is not None and grid.goodput(trial) else ()
    measured = sorted((row for row in rows if row.phase == "measure"), key=lambda row: row.planned_begin_s)
    middle = len(measured) // 2
    halves = measured[:middle], measured[len(measured) - middle :]
    first, second = (log_speed(half, paced=grid.plan.is_paced) for half in halves)
    return second - first if first is not None and second is not None else None
