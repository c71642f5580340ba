"""Writes report.md, which has the same text and tables as the HTML page, for terminals, reviews and mail."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from pgtrial.model.printable import printable
from pgtrial.report.brief import brief
from pgtrial.report.data import StudyData
from pgtrial.report.design import design
from pgtrial.report.sections import Section
from pgtrial.report.table import Table


def render(data: StudyData, parts: Sequence[Section], *, remarks: bool = True) -> str:
    """Returns the report as Markdown. In place of a chart it has the table with the same values. If `remarks` is true,
    it includes the findings of the audit (the checks whether the comparison is fair) that are only for information."""
    return "\n".join(_lines(data, parts, remarks=remarks)).rstrip() + "\n"


def _lines(data: StudyData, parts: Sequence[Section], *, remarks: bool) -> Iterator[str]:
    result = data.result
    yield f"# {escaped(data.spec.study.question)}\n"
    for finding in result.findings:
        if finding.severity != "info":
            yield f"> **{finding.severity}** {escaped(finding.message)} {escaped(finding.cure)}\n"
    short = brief(result, data.plan, trials=data.trials)
    for headline in short.headlines:
        yield f"**{escaped(headline.text)}**\n"
        yield from (f"- {line.label}: {escaped(line.text)}" for line in headline.lines)
        yield ""
    yield from (f"- {line.label}: {escaped(line.text)}" for line in short.lines())
    yield ""
    for sentence in result.sentences:
        yield f"{escaped(sentence)}\n"
    for note in [*result.moved, *result.notes]:
        yield f"- {escaped(note)}"
    yield ""
    for section in parts:
        yield f"## {section.topic.title}\n"
        if section.topic.key == "method":
            for word, what in design(data):
                yield f"- {word}: {escaped(what)}"
            yield ""
        for table in section.tables:
            yield from table_lines(table)
        if not section.tables and section.figures:
            yield "Drawn in report.html from each trial's timeline.parquet.\n"
    infos = [finding for finding in result.findings if finding.severity == "info"]
    if infos and remarks:
        yield "## Remarks of the audit\n"
        yield from (f"- {escaped(finding.message)} {escaped(finding.cure)}" for finding in infos)


def table_lines(table: Table[Any]) -> Iterator[str]:
    """Yields the lines of a table with its caption. A table with `is_list` becomes one paragraph of names and values,
    and a table with `is_text` becomes a block of code for each column."""
    if table.is_list:
        yield f"{escaped(table.caption)}: {'; '.join(escaped(' = '.join(row)) for row in table.rows)}.\n"
        return
    if table.caption:
        yield f"{escaped(table.caption)}\n"
    if table.is_text:
        for index, head in enumerate(table.heads):
            yield f"{escaped(head)}:\n"
            yield from _block([row[index] for row in table.rows])
        return
    yield f"| {' | '.join(map(_cell, table.heads))} |"
    yield f"|{'|'.join('---:' if column.right else '---' for column in table.columns)}|"
    for row in table.rows:
        yield f"| {' | '.join(map(_cell, row))} |"
    yield ""


def _block(lines: Sequence[str]) -> Iterator[str]:
    """Yields the lines as a block of code. Its fence is longer than any run of backticks in the lines."""
    shown = [printable(line).replace("\N{NO-BREAK SPACE}", " ").rstrip() for line in lines]
    longest = max((len(run) for run in _FENCES.findall("\n".join(shown))), default=0)
    fence = "`" * max(3, longest + 1)
    yield "\n".join([fence, *shown]).rstrip()
    yield f"{fence}\n"


_FENCES = re.compile("`+")
_ENTITIES = re.compile(r"&(?=#?\w+;)")
"""Matches the beginning of a reference to a character, such as `&commat;`, which a forge would read as `@`."""


def escaped(text: str) -> str:
    """Returns a text on one line, with control characters made visible, and with the characters escaped that have a
    meaning in Markdown or HTML."""
    text = printable(text)
    for character in "\\`*_<>[]":
        text = text.replace(character, f"\\{character}")
    return " ".join(_ENTITIES.sub(r"\\&", text).split())


def _cell(text: str) -> str:
    return escaped(text).replace("|", "\\|")
