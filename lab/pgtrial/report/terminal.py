"""The verdict for the terminal; every word of it is readable without colour."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from pgtrial.model.records.results import StudyResult
from pgtrial.report.table import VERDICT_STYLES, for_terminal
from pgtrial.report.tables.summary import comparison_table, criterion_table, fleet_table

_MOST_MACHINES = 12
_SEVERITIES = {"withhold": "bold red", "warning": "yellow"}


def summary(result: StudyResult) -> RenderableType:
    """Findings, verdict sentences, notes and one line per comparison and load point."""
    parts: list[RenderableType] = [
        Text.assemble((f"{finding.severity}: ", _SEVERITIES[finding.severity]), f"{finding.message} {finding.cure}")
        for finding in result.findings
        if finding.severity != "info"
    ]
    for claim, sentence in zip(result.primary, result.sentences, strict=True):
        word = (f"{claim.verdict.upper()}  ", f"bold {VERDICT_STYLES[claim.verdict]}")
        parts.append(Text.assemble(word, (sentence, "bold")))
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
