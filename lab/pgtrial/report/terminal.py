"""The verdict for the terminal; every word of it is readable without colour."""

from __future__ import annotations

from rich import box
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from pgtrial.analyse.records import Claim, StudyResult
from pgtrial.analyse.words import interval_text, percent

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
    """tps of every arm by load point, and what each arm's difference is."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    table.add_column("load point")
    for arm in result.arms:
        table.add_column(f"{arm} tps", justify="right")
    others = [arm for arm in result.arms if arm != result.baseline]
    for arm in others:
        table.add_column(f"{arm} / {result.baseline}", justify="right")
    for number, point in enumerate(result.load_points):
        tps = {level.arm: level.tps for level in result.levels if level.load_point == number}
        cells = [f"{spread.median:,.0f}" if (spread := tps.get(arm)) else "-" for arm in result.arms]
        claims = {claim.arm: claim for claim in result.by_load_point if claim.load_point == number}
        table.add_row(Text(point.label), *cells, *(_cell(claims[arm]) for arm in others))
    if len(result.load_points) > 1:
        blank = ["" for _ in result.arms]
        table.add_row(Text("mean (primary)", style="bold"), *blank, *(_cell(claim) for claim in result.primary))
    return table


def _cell(claim: Claim) -> Text:
    if claim.difference is None:
        running = f"{percent(claim.running, sign=True)} so far" if claim.running is not None else "-"
        return Text(f"{running}, {claim.verdict}")
    value = percent(claim.difference.value, sign=True)
    interval = interval_text(claim.difference, sign=True)
    return Text(f"{value} ({interval}) {claim.verdict}", style=_STYLES[claim.verdict])
