"""The verdict for the terminal; every word of it is readable without colour."""

from __future__ import annotations

from rich import box
from rich.console import Group, JustifyMethod, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from pgtrial.model.records.results import Claim, Level, StudyResult
from pgtrial.model.records.study import measure_of
from pgtrial.model.records.where_it_ran import WhereItRan
from pgtrial.model.units import percent
from pgtrial.report.tables.tasks import criterion_value
from pgtrial.report.words import interval_text

_STYLES = {"better": "green", "worse": "red", "equivalent": "cyan", "undecided": "yellow", "withheld": "yellow"}
_MOST_MACHINES = 12
_SEVERITIES = {"withhold": "bold red", "warning": "yellow", "info": "dim"}


def summary(result: StudyResult) -> RenderableType:
    """Findings, verdict sentences, notes and one line per comparison and load point."""
    parts: list[RenderableType] = []
    for finding in result.findings:
        if finding.severity != "info":
            style = _SEVERITIES[finding.severity]
            parts.append(Text.assemble((f"{finding.severity}: ", style), f"{finding.message} {finding.cure}"))
    for claim, sentence in zip(result.primary, result.sentences, strict=True):
        parts.append(
            Text.assemble((f"{claim.verdict.upper()}  ", f"bold {_STYLES[claim.verdict]}"), (sentence, "bold"))
        )
    parts += [Text(sentence) for sentence in result.moved]
    parts += [Text(f"note: {note}") for note in result.notes]
    parts.append(Padding(_levels(result), (1, 0, 0, 0)))
    if result.criteria:
        parts.append(Padding(_criteria(result), (1, 0, 0, 0)))
    if result.where is not None and result.where.machines:
        parts.append(Padding(_fleet(result.where), (1, 0, 0, 0)))
    return Group(*parts)


def _levels(result: StudyResult) -> Table:
    """One line per load point and arm, so that any number of arms fits the width."""
    by_goodput = measure_of(result.load_points) == "goodput"
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for title, justify, wraps in _COLUMNS:
        name = title.format(baseline=result.baseline, measured="tps" if by_goodput else "mean ms")
        table.add_column(Text(name), justify=justify, no_wrap=not wraps, overflow="fold")
    means = {
        arm: f"{value * 1000:,.3f}"
        for row in result.criteria
        if row.primary
        for arm, value in row.values.items()
        if value is not None
    }
    for number, point in enumerate(result.load_points):
        levels = {level.arm: level for level in result.levels if level.load_point == number}
        claims = {claim.arm: claim for claim in result.by_load_point if claim.load_point == number}
        for place, arm in enumerate(result.arms):
            measured = _measured(levels[arm], by_goodput=by_goodput) if arm in levels else "-"
            # of tasks the failed ones count too
            measured = means.get(arm, measured)
            table.add_row(Text("" if place else point.label), Text(arm), measured, *_cells(claims.get(arm)))
            _add_parts(table, claims.get(arm))
    if len(result.load_points) > 1:
        for place, claim in enumerate(result.primary):
            title = "" if place else "mean (primary)"
            table.add_row(Text(title, style="bold"), Text(claim.arm), "", *_cells(claim))
            _add_parts(table, claim)
    return table


def _criteria(result: StudyResult) -> Table:
    """The criteria of each comparison; the report has their intervals."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    table.add_column("criterion", no_wrap=True)
    for title in ("baseline", "arm"):
        table.add_column(title, justify="right", overflow="fold")
    table.add_column("winner", overflow="fold")
    for row in result.criteria:
        values = [f"{arm}: {criterion_value(row, arm)}" for arm in (row.baseline, row.arm)]
        what = Text(row.what, style="bold" if row.primary else "")
        table.add_row(what, *map(Text, values), Text(row.winner, style=_STYLES[row.verdict]))
    return table


def _fleet(where: WhereItRan) -> Table:
    """The machines that made the load, and how far each is from the servers; the report has the rest."""
    ways: dict[str, dict[str, str]] = {}
    for way in where.ways:
        ways.setdefault(way.machine, {})[way.arm] = f"{way.round_trip_us:,.0f}"
    arms = list(dict.fromkeys(way.arm for way in where.ways))
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    table.add_column("load from", overflow="fold")
    for title in ("share", *(f"us to {arm}" for arm in arms)):
        table.add_column(Text(title), justify="right", overflow="fold")
    for part in where.machines[:_MOST_MACHINES]:
        share = "-" if part.share is None else f"{part.share:.1%}"
        name = f"{part.machine} (slow)" if part.slower_by is not None else part.machine
        table.add_row(Text(name), share, *(ways.get(part.machine, {}).get(arm, "-") for arm in arms))
    if (more := len(where.machines) - _MOST_MACHINES) > 0:
        table.add_row(f"and {more} more, see the report")
    return table


def _add_parts(table: Table, claim: Claim | None) -> None:
    """A line for each regime, where it changes."""
    for part in claim.parts if claim else []:
        table.add_row("", f"- {part.regime} the change", "", *_cells(part))


def _measured(level: Level, *, by_goodput: bool) -> str:
    """The median trial: tps, or the mean response time in milliseconds."""
    if by_goodput:
        spreads = (level.tps,) if level.tps else (level.tps_before, level.tps_after)
        return " then ".join(f"{spread.median:,.0f}" for spread in spreads if spread) or "-"
    mean = level.latency_us["mean"]
    return f"{mean.median / 1000:,.3f}" if mean else "-"


_COLUMNS: tuple[tuple[str, JustifyMethod, bool], ...] = (
    ("load point", "left", True),
    ("arm", "left", True),
    ("{measured}", "right", False),
    ("/ {baseline}", "right", True),
    ("95% interval", "right", False),
    ("verdict", "left", False),
)
"""Title, justification and whether it may wrap: columns that hold names of arms may be of any length."""


def _cells(claim: Claim | None) -> tuple[Text, Text, Text]:
    """Difference, interval and verdict of a claim; the baseline has none."""
    if claim is None:
        return Text(""), Text(""), Text("")
    style = _STYLES[claim.verdict]
    if claim.parts:
        return Text(""), Text(""), Text(claim.verdict, style=style)
    if claim.difference is None:
        running = f"{percent(claim.running, sign=True)} so far" if claim.running is not None else "-"
        return Text(running), Text(""), Text(claim.verdict, style=style)
    value = percent(claim.difference.value, sign=True)
    interval = interval_text(claim.difference, sign=True)
    return Text(value, style=style), Text(interval, style=style), Text(claim.verdict, style=style)
