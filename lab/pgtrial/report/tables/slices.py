"""The tables of interleaved trials, in which the arms take turns in short slices of time. They show the slices of one
block, the carry-over (the effect of one arm's slice on the speed of the next arm), and the precision that the study had
reached over time."""

from __future__ import annotations

from typing import Any

from pgtrial.model.records.claims import Claim, Estimate
from pgtrial.model.records.load_point import LoadPoint, rate_unit
from pgtrial.model.records.results import CarryOver, CarryOverShift
from pgtrial.model.records.trial import SliceRow, Trial
from pgtrial.model.units import format_duration, percent
from pgtrial.report.data import StudyData
from pgtrial.report.table import Column, Table, number
from pgtrial.report.words import in_regime, signed
from pgtrial.statistics.precision import half_width
from pgtrial.verdict.pace import Reached


def slice_tables(data: StudyData) -> list[Table[Any]]:
    """Returns all tables about the slices of time in which the arms of an interleaved study take turns. The result is
    empty if the study is not interleaved."""
    if data.plan.interleaving is None:
        return []
    return [_precision_table(data), _carry_over_table(data), _shift_table(data), _block_table(data)]


def middle_block(data: StudyData, point: LoadPoint) -> list[tuple[Trial, SliceRow]]:
    """Returns the slices (turns of the arms) in the measured part of one block, with their trials, in the order of
    time. The block is the one in the middle of the stored blocks."""
    known = [trial for trial in data.trials if trial.load_point == point and trial.index in data.slices]
    blocks = sorted({trial.block for trial in known})
    shown = [trial for trial in known if trial.block == blocks[len(blocks) // 2]] if blocks else []
    rows = [(trial, row) for trial in shown for row in data.slices[trial.index] if row.phase == "measure"]
    return sorted(rows, key=lambda row: row[1].planned_begin_s)


def slice_tps(trial: Trial, row: SliceRow) -> float | None:
    """Returns the committed transactions per second in a slice, over the time in which its clients were active; None if
    no client was active."""
    return row.transactions / row.client_s * trial.load_point.clients if row.client_s else None


def comparison(claim: Claim) -> str:
    """Returns the two arms of a comparison as text, such as `off / on`. If the comparison is only about the part of the
    trials before or after a lasting change of speed, the name of this part follows."""
    return f"{claim.arm} / {claim.baseline}{in_regime(claim)}"


def _precision_table(data: StudyData) -> Table[tuple[Claim, Reached]]:
    unit = data.unit
    return Table(
        f"The precision over time: the exact 95% interval of the primary claim after each {unit}, which is "
        "no guarantee for all rows together, and at planned looks the sequential interval, on which "
        "verdicts rest. The time is that of the trials with their preparation.",
        data.reached,
        [
            Column("arms", lambda row: comparison(row[0])),
            number(f"{unit}s", lambda row: row[1].units),
            number("after", lambda row: row[1].spent.wall_s, format_duration),
            number("measured", lambda row: row[1].spent.measured, ".0%"),
            number("difference", lambda row: row[1].difference.value, signed),
            number("95% interval", lambda row: row[1].difference.text()),
            number("half-width", lambda row: half_width(row[1].difference), percent),
            number("sequential interval", lambda row: row[1].at_look, Estimate.text),
        ],
        lambda row: row[1].at_look is not None,
    )


def _carry_over_table(data: StudyData) -> Table[CarryOver]:
    return Table(
        "Carry-over: the speed of an arm in slices that follow another arm's slice, relative to its "
        "speed among its own slices only.",
        data.result.carry_over,
        [
            Column("load point", lambda row: data.labels[row.load_point]),
            Column("arm", lambda row: row.arm),
            Column("after", lambda row: row.preceding),
            number("blocks", lambda row: row.blocks),
            number("difference", lambda row: row.difference and row.difference.value, signed),
            number("95% interval", lambda row: row.difference, Estimate.text),
        ],
    )


def _shift_table(data: StudyData) -> Table[CarryOverShift]:
    return Table(
        "The effect of carry-over on the comparisons. An equal loss of both arms does not change their ratio.",
        data.result.carry_over_shifts,
        [
            Column("load point", lambda row: "mean" if row.load_point is None else data.labels[row.load_point]),
            Column("arms", lambda row: f"{row.arm} / {row.baseline}"),
            number("blocks", lambda row: row.blocks),
            number("shift", lambda row: row.difference and row.difference.value, signed),
            number("95% interval", lambda row: row.difference, Estimate.text),
        ],
    )


def _block_table(data: StudyData) -> Table[tuple[Trial, SliceRow]]:
    rows = [row for point in data.plan.load_points for row in middle_block(data, point)]
    return Table(
        "The slices of one block, in seconds since the start of its load: as planned, and from the first "
        "to the last moment at which a client was active. Transactions that take longer than a slice are "
        "counted in it, with their time.",
        rows,
        [
            number("block", lambda row: row[0].block + 1),
            Column("load point", lambda row: row[0].load_point.label),
            number("round", lambda row: row[1].round + 1),
            Column("arm", lambda row: row[0].arm),
            number("planned from", lambda row: row[1].planned_begin_s, ".3f"),
            number("to", lambda row: row[1].planned_end_s, ".3f"),
            number("really from", lambda row: row[1].begin_s, ".3f"),
            number("to", lambda row: row[1].end_s, ".3f"),
            number("clients' s", lambda row: row[1].client_s, ".3f"),
            number("committed", lambda row: row[1].transactions, ","),
            number("failed", lambda row: row[1].failures, ","),
            number(rate_unit(data.plan.load_points), lambda row: slice_tps(*row), ",.0f"),
            number("mean ms", lambda row: row[1].mean_us and row[1].mean_us / 1000, ".3f"),
        ],
        folded=True,
    )
