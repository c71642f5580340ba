"""The verdict for the terminal; every word of it is readable without colour."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from pgtrial.model.records.results import StudyResult, Word
from pgtrial.report.brief import Brief, Line
from pgtrial.report.table import VERDICT_STYLES, for_terminal
from pgtrial.report.tables.summary import comparison_table, criterion_table, fleet_table

_MOST_MACHINES = 12
_LABEL = 9
"""Characters of the widest label."""

_WATCHED = 2
"""Things to watch out for in the short form."""

_SEVERITIES = {"withhold": "bold red", "warning": "yellow"}


def in_short(brief: Brief) -> RenderableType:
    """A headline for each comparison, and short lines with labels."""
    parts: list[RenderableType] = []
    for headline in brief.headlines:
        text = headline.text.removeprefix("Undecided ")
        parts += [_headline(headline.verdict, text), _grid(headline.lines)]
    return Group(*parts, _grid(brief.lines(_WATCHED)))


def _headline(verdict: Word, text: str) -> Text:
    return Text.assemble((f"{verdict.upper()}  ", f"bold {VERDICT_STYLES[verdict]}"), (text, "bold"))


def _grid(lines: Sequence[Line]) -> Padding:
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(width=_LABEL, no_wrap=True, style="dim")
    grid.add_column()
    for line in lines:
        grid.add_row(line.label, Text(line.text))
    return Padding(grid, (0, 0, 0, 2))


def in_full(result: StudyResult) -> RenderableType:
    """Everything: findings, verdict sentences, notes and one line per comparison and load point."""
    parts: list[RenderableType] = [
        Text.assemble((f"{finding.severity}: ", _SEVERITIES[finding.severity]), f"{finding.message} {finding.cure}")
        for finding in result.findings
        if finding.severity != "info"
    ]
    for claim, sentence in zip(result.primary, result.sentences, strict=True):
        parts.append(_headline(claim.verdict, sentence))
    parts += [Text(sentence) for sentence in result.moved]
    parts += [Text(f"note: {note}") for note in result.notes]
    parts += ["", for_terminal(comparison_table(result))]
    if result.criteria:
        parts += ["", for_terminal(criterion_table(result))]
    if result.where is not None and result.where.machines:
        parts += ["", for_terminal(fleet_table(result.where, _MOST_MACHINES))]
        if (more := len(result.where.machines) - _MOST_MACHINES) > 0:
            parts.append(f"and {more} more machines, see the report")
    return Group(*parts)
