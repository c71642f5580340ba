"""The tables of the terminal's summary: the comparisons, the criteria and the fleet in few columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from pgtrial.model.records.plan import measure_of
from pgtrial.model.records.results import Claim, Criterion, StudyResult, Word
from pgtrial.model.records.where_it_ran import MachinePart, WhereItRan
from pgtrial.report.table import Column, Table, number
from pgtrial.report.tables.results import median_tps, signed
from pgtrial.report.tables.tasks import criterion_value
from pgtrial.report.words import interval_text


@dataclass(frozen=True)
class Line:
    """An arm at a load point, a regime of it, or the mean over the load points."""

    place: str
    arm: str
    measured: str | None = ""
    claim: Claim | None = None
    """None for the baseline."""


def comparison_table(result: StudyResult) -> Table[Line]:
    """One line per load point and arm, so that any number of arms fits the width."""
    by_goodput = measure_of(result.load_points) == "goodput"
    return Table(
        "",
        list(_lines(result, by_goodput=by_goodput)),
        [
            Column("load point", lambda line: line.place),
            Column("arm", lambda line: line.arm),
            number("tps" if by_goodput else "mean ms", lambda line: line.measured),
            number(f"/ {result.baseline}", _difference, verdict=_verdict),
            number("95% interval", _interval, verdict=_verdict),
            Column("verdict", lambda line: _verdict(line) or "", verdict=_verdict),
        ],
    )


def _lines(result: StudyResult, *, by_goodput: bool) -> Iterator[Line]:
    levels = {(level.load_point, level.arm): level for level in result.levels}
    claims = {(claim.load_point, claim.arm): claim for claim in result.by_load_point}
    # the mean over tasks counts the failed ones too, which a level does not
    means = {arm: value for row in result.criteria if row.primary for arm, value in row.values.items()}
    for place, point in enumerate(result.load_points):
        for arm in result.arms:
            level = levels.get((place, arm))
            if by_goodput:
                measured = median_tps(level) if level else None
            else:
                latency = level.latency_us["mean"] if level else None
                mean_s = means.get(arm, latency.median / 1e6 if latency else None)
                measured = f"{mean_s * 1000:,.3f}" if mean_s is not None else None
            label = point.label if arm == result.arms[0] else ""
            yield from _with_parts(Line(label, arm, measured, claims.get((place, arm))))
    for claim in result.primary if len(result.load_points) > 1 else ():
        yield from _with_parts(Line("mean (primary)" if claim is result.primary[0] else "", claim.arm, claim=claim))


def _with_parts(line: Line) -> Iterator[Line]:
    """A line, and one for each regime where it changes."""
    yield line
    for part in line.claim.parts if line.claim else ():
        yield Line("", f"- {part.regime} the change", claim=part)


def _difference(line: Line) -> str | None:
    claim = line.claim
    if claim is None or claim.parts:
        return ""
    if claim.difference is not None:
        return signed(claim.difference.value)
    return f"{signed(claim.running)} so far" if claim.running is not None else None


def _interval(line: Line) -> str:
    return interval_text(line.claim.difference, sign=True) if line.claim and line.claim.difference else ""


def _verdict(line: Line) -> Word | None:
    return line.claim.verdict if line.claim else None


def criterion_table(result: StudyResult) -> Table[Criterion]:
    """The criteria of each comparison; the report has their intervals."""
    return Table(
        "",
        result.criteria,
        [
            Column("criterion", lambda row: row.what),
            number("baseline", lambda row: f"{row.baseline}: {criterion_value(row, row.baseline)}"),
            number("arm", lambda row: f"{row.arm}: {criterion_value(row, row.arm)}"),
            Column("winner", lambda row: row.winner, verdict=lambda row: row.verdict),
        ],
        lambda row: row.primary,
    )


def fleet_table(where: WhereItRan, most: int) -> Table[MachinePart]:
    """The first machines that made the load, and how far each is from the servers; the report has the rest."""
    ways = {(way.machine, way.arm): way.round_trip_us for way in where.ways}

    def way_to(arm: str) -> Callable[[MachinePart], float | None]:
        return lambda part: ways.get((part.machine, arm))

    return Table(
        "",
        where.machines[:most],
        [
            Column("load from", lambda part: f"{part.machine} (slow)" if part.slower_by is not None else part.machine),
            number("share", lambda part: part.share, ".1%"),
            *(number(f"us to {arm}", way_to(arm), ",.0f") for arm in dict.fromkeys(way.arm for way in where.ways)),
        ],
    )
