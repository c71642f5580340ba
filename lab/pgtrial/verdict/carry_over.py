"""Carry-over between slices: how much slower an arm is next to another arm's slices than it would be among its own.

Where a study is interleaved, the order within each round is random. So an arm has runs of one slice, between slices of
others, and runs of two, across the border of two rounds; which of them is drawn by the coin. In a run of two only half
of the slices follow another arm. With c for the loss of a slice that does, the logarithms of the speeds are m - c in
runs of one and m - c/2 in runs of two, so m = 2 ln(speed of runs of two) - ln(speed of runs of one) is that of the arm
among its own slices alone. Runs and not slices are compared, because a transaction across the border of two own slices
is counted where it ends: that moves transactions from one slice to the next, which would look like carry-over. The
clients finish their transactions at the end of a run, so that its transactions and its time belong together. The speed
of a run is its transactions by the time of its clients or, at a rate, the inverse of their mean response time.

What an arm leaves behind for longer than a slice is not seen.
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
"""The slices of interleaved trials, by index of the trial."""


@dataclass(frozen=True)
class Speeds:
    """Logarithms of an arm's speeds in one trial, transactions by seconds."""

    alone: float
    """Among its own slices alone, as extrapolated from runs of one and of two slices."""
    whole: float
    """In all its runs."""
    after: dict[str, float]
    """In its runs of one slice, by the arm before them."""


CellSpeeds = Mapping[tuple[int, int, str], Speeds]
"""By block, load point and arm."""


def carry_over(grid: Grid, speeds: CellSpeeds) -> list[CarryOver]:
    """What each arm leaves behind for each other one, by load point; empty for a study that is not interleaved."""
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
    """How far carry-over moves each comparison, by load point and (of several) as the mean over all of them.

    An equal loss of both arms leaves their ratio as it is; what moves it is the difference of the losses.
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
    """The speeds of all trials that alternated, without failed ones and those that have no run of either length."""
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
    """The speeds of trials that alternated, by arm; an arm without a run of either length is left out.

    `paced`: at a rate, so that response times differ and not the transactions.
    """
    arms = {_slot(row, slice_s): arm for arm, slices in rows.items() for row in slices}
    of_arms = {arm: _speeds_of_runs(list(_runs(slices, arms, slice_s)), paced=paced) for arm, slices in rows.items()}
    return {arm: speeds for arm, speeds in of_arms.items() if speeds is not None}


@dataclass(frozen=True)
class _Run:
    """Own slices without another arm's between them."""

    after: str
    rows: Sequence[SliceRow]


def _slot(row: SliceRow, slice_s: float) -> int:
    """The number of a slice among those of all arms."""
    return round(row.planned_begin_s / slice_s)


def _runs(slices: Sequence[SliceRow], arms: Mapping[int, str], slice_s: float) -> Iterator[_Run]:
    """The runs within the measured part; without those of which it is not known which arm was before them."""
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
    """Logarithm of the speed of slices together, at a rate of their inverse response time; None without transactions.

    The speed is transactions by the time of the clients.
    """
    if paced:
        rows = [row for row in rows if row.mean_us]
    transactions = sum(row.transactions for row in rows)
    seconds = math.fsum(row.transactions * (row.mean_us or 0.0) / 1e6 if paced else row.client_s for row in rows)
    return math.log(transactions / seconds) if transactions and seconds else None
