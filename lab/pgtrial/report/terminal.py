"""The verdict for the terminal; every word of it is readable without colour."""

from __future__ import annotations

from rich import box
from rich.console import Group, JustifyMethod, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from pgtrial.analyse.records import Claim, Level, StudyResult
from pgtrial.analyse.words import interval_text, percent
from pgtrial.store.records import measure_of

_STYLES = {"better": "green", "worse": "red", "equivalent": "cyan", "undecided": "yellow", "withheld": "yellow"}
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
    parts += [Text(f"note: {note}") for note in result.notes]
    parts.append(Padding(_levels(result), (1, 0, 0, 0)))
    return Group(*parts)


def _levels(result: StudyResult) -> Table:
    """One line per load point and arm, so that any number of arms fits the width."""
    by_goodput = measure_of(result.load_points) == "goodput"
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for title, justify, wraps in _COLUMNS:
        name = title.format(baseline=result.baseline, measured="tps" if by_goodput else "mean ms")
        table.add_column(name, justify=justify, no_wrap=not wraps, overflow="fold")
    for number, point in enumerate(result.load_points):
        levels = {level.arm: level for level in result.levels if level.load_point == number}
        claims = {claim.arm: claim for claim in result.by_load_point if claim.load_point == number}
        for place, arm in enumerate(result.arms):
            measured = _measured(levels[arm], by_goodput=by_goodput) if arm in levels else "-"
            table.add_row("" if place else point.label, arm, measured, *_cells(claims.get(arm)))
    if len(result.load_points) > 1:
        for place, claim in enumerate(result.primary):
            title = "" if place else "mean (primary)"
            table.add_row(Text(title, style="bold"), claim.arm, "", *_cells(claim))
    return table


def _measured(level: Level, *, by_goodput: bool) -> str:
    """The median trial: tps, or the mean response time in milliseconds."""
    if by_goodput:
        return f"{level.tps.median:,.0f}" if level.tps else "-"
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
    if claim.difference is None:
        running = f"{percent(claim.running, sign=True)} so far" if claim.running is not None else "-"
        return Text(running), Text(""), Text(claim.verdict, style=style)
    value = percent(claim.difference.value, sign=True)
    interval = interval_text(claim.difference, sign=True)
    return Text(value, style=style), Text(interval, style=style), Text(claim.verdict, style=style)
