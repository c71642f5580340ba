"""Measures carry-over, the effect of one arm's slice on the speed of the next arm, in studies whose arms take turns in
slices of time. It is how much slower an arm is when the slice before its own belonged to another arm.

In such a study the order of the slices within each round is random. Therefore an arm sometimes has one slice between
slices of other arms (a run of one), and sometimes two slices in succession, across the border of two rounds (a run of
two). In a run of one every slice follows another arm, in a run of two only half of the slices do. If c is the loss of
the log speed in a slice that follows another arm, and m the log speed without carry-over, runs of one have the mean log
speed m - c and runs of two m - c/2. So m = 2 ln(speed of runs of two) - ln(speed of runs of one).

Runs are compared and not single slices, because a transaction that crosses the border of two slices of one arm is
counted in the slice in which it ends. This moves transactions from one slice to the next and would look like
carry-over. At the end of a run the clients finish their transactions, so that the transactions and the time of a run
belong together. The speed of a run is the number of its transactions divided by the time of its clients or, for a load
at a given rate, the inverse of their mean response time.

Effects that last longer than one slice are not detected.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby, permutations, product

from pgtrial.model.records.results import CarryOver, CarryOverShift
from pgtrial.model.records.trial import SliceRow
from pgtrial.verdict.family import sharing
from pgtrial.verdict.grid import Grid
from pgtrial.verdict.series import described

Slices = Mapping[int, Sequence[SliceRow]]
"""The slices of interleaved trials, by the index of the trial."""


@dataclass(frozen=True)
class Speeds:
    """The logarithms of an arm's speeds in one trial. A speed is a number of transactions divided by seconds."""

    alone: float
    """The speed that the arm would have if its slices were never preceded by a slice of another arm. It is extrapolated
    from runs of one slice and runs of two slices (a run is the arm's slices between two slices of other arms)."""
    whole: float
    """The speed over all runs of the arm in the trial. A run is the arm's slices between two slices of other arms."""
    after: dict[str, float]
    """The speed over the arm's single slices (turns) between slices of other arms, separately for each arm whose slice
    came before."""


CellSpeeds = Mapping[tuple[int, int, str], Speeds]
"""The speeds of the trials in which arms take turns in slices, by the block, the load point (both numbered from 0) and
the arm of the trial."""


def carry_over(grid: Grid, speeds: CellSpeeds) -> list[CarryOver]:
    """Returns by how much each arm's speed just after a slice of another arm differs from the speed that it would have
    if only its own slices came before.

    There is one entry for each pair of arms and load point, and none if the study is not interleaved.
    """
    losses = []
    for point, (arm, other) in product(grid.points, permutations(grid.plan.arms, 2)):
        logs = {
            block: speed.after[other] - speed.alone
            for block in grid.counted
            if (speed := speeds.get((block, point, arm))) is not None and other in speed.after
        }
        if logs:
            blocks, difference = described(grid, logs, sharing(grid.plan))
            losses.append(CarryOver(arm=arm, preceding=other, load_point=point, blocks=blocks, difference=difference))
    return losses


def shifts(grid: Grid, speeds: CellSpeeds) -> list[CarryOverShift]:
    """Returns by how much carry-over (the effect of one arm's slice on the speed of the next arm) changes each
    comparison, at each load point and, if there are several, for their mean.

    A loss of speed that both arms have in common does not change their ratio; only the difference of the two losses
    changes it.
    """
    baseline, points = grid.plan.baseline, grid.points
    moved = []
    for point, arm in product([*points, *([None] if len(points) > 1 else [])], grid.plan.others):
        over, claims = (points, len(grid.plan.others)) if point is None else ([point], sharing(grid.plan))
        logs = grid.block_means(over, partial(_shift, speeds, arm, baseline))
        if logs:
            blocks, difference = described(grid, logs, claims)
            moved.append(
                CarryOverShift(arm=arm, baseline=baseline, load_point=point, blocks=blocks, difference=difference)
            )
    return moved


def _shift(speeds: CellSpeeds, arm: str, baseline: str, block: int, point: int) -> float | None:
    ours, its = (speeds.get((block, point, name)) for name in (arm, baseline))
    return (ours.whole - ours.alone) - (its.whole - its.alone) if ours and its else None


def cell_speeds(grid: Grid, slices: Slices) -> CellSpeeds:
    """Returns the speeds of the trials in which arms took turns in slices. A trial is left out if it failed, or if it
    has no run of one slice or no run of two slices (a run is the arm's slices between two slices of other arms)."""
    if grid.plan.interleaving is None:
        return {}
    speeds: dict[tuple[int, int, str], Speeds] = {}
    for block, point in product(grid.counted, grid.points):
        trials = [trial for arm in grid.plan.arms if (trial := grid.trial(block, point, arm)) is not None]
        rows = {trial.arm: slices.get(trial.index, ()) for trial in trials if grid.goodput(trial)}
        slice_s, paced = grid.plan.interleaving.slice_at(point), grid.plan.is_paced
        speeds |= {(block, point, arm): of_arm for arm, of_arm in speeds_of(rows, slice_s, paced=paced).items()}
    return speeds


def speeds_of(rows: Mapping[str, Sequence[SliceRow]], slice_s: float, *, paced: bool = False) -> dict[str, Speeds]:
    """Returns the speeds, by arm, of trials in which arms took turns in slices. An arm is left out if it has no run of
    one slice or no run of two slices (a run is the arm's slices between two slices of other arms).

    `paced` is true for a load at a given rate, in which the arms differ in response times and not in numbers of
    transactions.
    """
    arms = {_slot(row, slice_s): arm for arm, slices in rows.items() for row in slices}
    of_arms = {arm: _speeds_of_runs(list(_runs(slices, arms, slice_s)), paced=paced) for arm, slices in rows.items()}
    return {arm: speeds for arm, speeds in of_arms.items() if speeds is not None}


@dataclass(frozen=True)
class _Run:
    """A run: consecutive slices of one arm. `after` is the arm whose slice came before the run."""

    after: str
    rows: Sequence[SliceRow]


def _slot(row: SliceRow, slice_s: float) -> int:
    """Returns the position of a slice in the sequence of the slices of all arms."""
    return round(row.planned_begin_s / slice_s)


def _runs(slices: Sequence[SliceRow], arms: Mapping[int, str], slice_s: float) -> Iterator[_Run]:
    """Yields the runs (consecutive slices of the arm) within the measured part. A run is left out if it is not known
    which arm's slice came before it."""
    ordered = sorted(slices, key=lambda row: row.planned_begin_s)
    for _, group in groupby(enumerate(ordered), lambda numbered: _slot(numbered[1], slice_s) - numbered[0]):
        rows = [row for _, row in group]
        before = arms.get(_slot(rows[0], slice_s) - 1)
        if before is not None and all(row.phase == "measure" for row in rows):
            yield _Run(before, rows)


def _speeds_of_runs(runs: Sequence[_Run], *, paced: bool) -> Speeds | None:
    def speed(of: Sequence[_Run]) -> float | None:
        return log_speed([row for run in of for row in run.rows], paced=paced)

    ones = [run for run in runs if len(run.rows) == 1]
    one, several, whole = map(speed, (ones, [run for run in runs if len(run.rows) > 1], runs))
    if one is None or several is None or whole is None:
        return None
    after = {other: speed([run for run in ones if run.after == other]) for other in {run.after for run in ones}}
    known = {other: log for other, log in after.items() if log is not None}
    return Speeds(alone=2 * several - one, whole=whole, after=known)


def log_speed(rows: Sequence[SliceRow], *, paced: bool) -> float | None:
    """Returns the logarithm of the common speed of some slices, or None if they have no transactions.

    The speed is the number of transactions divided by the time of the clients or, for a load at a given rate, the
    inverse of the mean response time.
    """
    if paced:
        rows = [row for row in rows if row.mean_us]
    transactions = sum(row.transactions for row in rows)
    seconds = math.fsum(row.transactions * (row.mean_us or 0.0) / 1e6 if paced else row.client_s for row in rows)
    return math.log(transactions / seconds) if transactions and seconds else None
