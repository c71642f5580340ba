"""Writes the result of a study as plain text for a mailing list, in lines of at most 78 columns.

A table that is wider than a line is written as psql writes it with `\\x auto`: each row as a block of names and values.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

from pgtrial.model.printable import printable
from pgtrial.report.brief import brief
from pgtrial.report.data import StudyData
from pgtrial.report.design import design
from pgtrial.report.sections import Section
from pgtrial.report.table import Table
from pgtrial.report.tables.where import facts_tables
from pgtrial.report.what_ran import what_ran

WIDTH = 78
"""The most columns of a line. A reply still has 80 with a `> ` before each line."""

_TERMS = ("load", "trial", "not observed", "blocks", "margin", "stopping", "scope", "planned")
"""The terms of the study's design that a reader of a mail needs."""

_GAP = "  "
_INDENT = "    "


def render(data: StudyData, parts: Sequence[Section]) -> str:
    """Returns the result of a study as plain text, with the tables of these sections."""
    return "\n".join(_lines(data, parts)).rstrip() + "\n"


def _lines(data: StudyData, parts: Sequence[Section]) -> Iterator[str]:
    yield from _title(data.spec.study.question, "=")
    for text in what_ran(data):
        yield from _wrapped(text)
    yield ""
    short = brief(data.result, data.plan, trials=data.trials)
    for headline in short.headlines:
        yield from _wrapped(headline.text)
        for line in headline.lines:
            yield from _wrapped(f"{line.label}: {line.text}", _GAP)
        yield ""
    for line in short.lines():
        yield from _wrapped(f"{line.label}: {line.text}")
    yield ""
    differing, *_ = facts_tables(data)
    if differing.rows:
        yield from _title("What differs", "-")
        yield from table_lines(differing)
    for section in parts:
        yield from _title(section.topic.title, "-")
        for table in section.tables:
            yield from table_lines(table)
    yield from _title("How it was measured", "-")
    for term, text in design(data):
        if term in _TERMS:
            yield from _wrapped(f"{term}: {text}")


def table_lines(table: Table[Any]) -> Iterator[str]:
    """Yields the lines of a table with its caption."""
    if table.is_list:
        yield from _wrapped(f"{table.caption}: {'; '.join(' = '.join(row) for row in table.rows)}.")
        yield ""
        return
    if table.caption:
        yield from _wrapped(table.caption)
        yield ""
    if table.is_text:
        for index, head in enumerate(table.heads):
            yield from _wrapped(f"{head}:")
            for row in table.rows:
                yield from _indented(row[index])
            yield ""
        return
    cells = [[_cell(text) for text in row] for row in (table.heads, *table.rows)]
    widths = [max(len(row[index]) for row in cells) for index in range(len(table.heads))]
    if sum(widths) + len(_GAP) * (len(widths) - 1) <= WIDTH:
        yield from _aligned(cells, widths, [column.right for column in table.columns])
    else:
        yield from _blocks(cells)
    yield ""


def _aligned(cells: Sequence[Sequence[str]], widths: Sequence[int], right: Sequence[bool]) -> Iterator[str]:
    for row in cells:
        texts = [
            cell.rjust(width) if is_right else cell.ljust(width)
            for cell, width, is_right in zip(row, widths, right, strict=True)
        ]
        yield _GAP.join(texts).rstrip()


def _blocks(cells: Sequence[Sequence[str]]) -> Iterator[str]:
    heads, *rows = cells
    for row in rows:
        yield from _wrapped(f"{heads[0]}: {row[0]}")
        for head, cell in zip(heads[1:], row[1:], strict=True):
            yield from _wrapped(f"{head}: {cell}", _GAP)


def _title(text: str, underline: str) -> Iterator[str]:
    lines = list(_wrapped(text))
    yield from lines
    yield underline * max(map(len, lines), default=0)
    yield ""


def _wrapped(text: str, indent: str = "") -> Iterator[str]:
    yield from textwrap.wrap(
        _cell(text), WIDTH, initial_indent=indent, subsequent_indent=indent + _GAP, break_on_hyphens=False
    )


def _indented(text: str) -> Iterator[str]:
    """Yields a line of text whose indentation matters, such as a node of a plan, below its heading. Nodes that lie
    deeper than half a line are indented by half a line."""
    plain = printable(text).replace("\N{NO-BREAK SPACE}", " ").rstrip()
    margin = _INDENT + " " * min(len(plain) - len(plain.lstrip()), WIDTH // 2)
    yield from textwrap.wrap(
        plain.lstrip(), WIDTH, initial_indent=margin, subsequent_indent=margin + _GAP, break_on_hyphens=False
    )


def _cell(text: str) -> str:
    return " ".join(printable(text).split())
