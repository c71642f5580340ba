"""Tables about throughput over numbers of clients and over sizes of the data: the universal scalability law that was
fitted to each arm, and the cliffs, which are sizes above which the throughput of an arm falls."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pgtrial.model.records.claims import Estimate
from pgtrial.model.records.load_point import rate_unit
from pgtrial.model.records.sweeps import Bounds, Cliff, Law, Scaling, SizeCurve
from pgtrial.model.units import percent
from pgtrial.report.data import StudyData
from pgtrial.report.sweep_words import between_text, noise_of_means, number_text, peak_position, reads_text, sweep_label
from pgtrial.report.table import Column, Table, number, range_text
from pgtrial.report.words import signed


def law_table(data: StudyData) -> Table[Scaling]:
    """Returns the table of the universal scalability laws that were fitted to the throughput over the number of
    clients: the parameters of each arm's law, how well it fits, and the largest throughput that follows from it."""
    points = data.plan.load_points
    unit = rate_unit(points)
    return Table(
        "The universal scalability law: X(n) = g n / (1 + a (n - 1) + b n (n - 1)) for n clients, with 95% jackknife "
        f"intervals over blocks. The largest {unit} is that of the law within the tested numbers; its difference to "
        "the baseline's is the Hodges-Lehmann estimate over blocks with its sequential interval. Where the blocks "
        "speak against the law, because it misses by more than their noise explains, it does not describe the arm, and "
        "only what was measured is shown.",
        data.result.scaling,
        [
            Column("load", lambda row: sweep_label(points, row)),
            Column("arm", lambda row: row.arm),
            number(f"one client, {unit} (g)", _parameter(lambda law: law.single, ",.0f")),
            number("serial (a)", _parameter(lambda law: law.serial, ".2%")),
            number("mutual (b)", _parameter(lambda law: law.mutual, ".3g")),
            number("peak", _peak),
            number(f"largest {unit}", _parameter(lambda law: law.highest, ",.0f")),
            number("most measured", _most_measured),
            number("misses by / noise explains", _misfit),
            number("difference", lambda row: row.difference and signed(row.difference.value)),
            number("95% interval", lambda row: row.difference, Estimate.text),
            Column("verdict", lambda row: row.verdict, verdict=lambda row: row.verdict),
            number("blocks", lambda row: row.blocks),
        ],
    )


def _believed(row: Scaling) -> Law | None:
    return row.law if row.law is not None and row.law.fits else None


def _parameter(of: Callable[[Law], Bounds], form: str) -> Callable[[Scaling], str | None]:
    """Returns a function that makes the cell of one parameter of the scalability law: its value with its interval as
    text, or None if the law does not fit the measurements of the arm."""

    def text(row: Scaling) -> str | None:
        law = _believed(row)
        value = of(law) if law is not None else None
        if value is None or value.value is None:
            return None
        bounds = range_text(value.low, value.high, form)
        return format(value.value, form) + (f" ({bounds})" if bounds is not None else "")

    return text


def _peak(row: Scaling) -> str | None:
    return "the law does not fit" if row.law is not None and not row.law.fits else peak_position(row)


def _misfit(row: Scaling) -> str | None:
    return f"{percent(row.law.misfit)} / {percent(noise_of_means(row, row.law))}" if row.law is not None else None


def _most_measured(row: Scaling) -> str | None:
    if not row.tps:
        return None
    most = max(row.tps)
    return f"{most:,.0f} at {row.clients[row.tps.index(most)]}"


@dataclass(frozen=True)
class _Row:
    """A row of the table: a cliff of an arm (a size of the data above which the throughput falls), or None for an arm
    without a cliff."""

    curve: SizeCurve
    cliff: Cliff | None


def _rows(curve: SizeCurve) -> list[_Row]:
    return [_Row(curve, cliff) for cliff in curve.cliffs] or [_Row(curve, None)]


def cliff_table(data: StudyData) -> Table[_Row]:
    """Returns the table of the cliffs of each arm, the sizes of the data above which the throughput falls. An arm
    without a cliff has one row that says this."""
    points = data.plan.load_points
    rows = [row for curve in data.result.cliffs for row in _rows(curve)]
    return Table(
        "Cliffs over the size of the data: beyond such a size the throughput falls by 20% or more while "
        "the size doubles. If reads per transaction begin to rise at the same size, the data outgrow a "
        "cache there. The difference from the baseline is that of the sizes of the first fall, over "
        "blocks; a positive one means that the arm holds more data.",
        rows,
        [
            Column("load", lambda row: sweep_label(points, row.curve)),
            Column("arm", lambda row: row.curve.arm),
            number("tested scales", lambda row: f"{row.curve.scales[0]:,} to {row.curve.scales[-1]:,}"),
            number("cliff at scale", _cliff),
            number("95% interval", lambda row: row.cliff and between_text(row.cliff.scale)),
            number("within a doubling", lambda row: row.cliff and percent(row.cliff.change)),
            Column("reads", lambda row: row.cliff and reads_text(row.cliff)),
            number("difference", lambda row: row.curve.difference and signed(row.curve.difference.value)),
            number("95% interval", lambda row: row.curve.difference, Estimate.text),
            Column("verdict", lambda row: row.curve.verdict, verdict=lambda row: row.curve.verdict),
            number("blocks", lambda row: row.curve.blocks),
        ],
    )


def _cliff(row: _Row) -> str:
    if row.cliff is None or row.cliff.scale.value is None:
        return "none" if row.curve.line else "not known"
    return number_text(row.cliff.scale.value)
