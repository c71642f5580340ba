"""Tables as data: each is defined once, and the page, the Markdown and the terminal render it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from typing import Any, Generic, TypeVar

from rich import box
from rich.table import Table as RichTable
from rich.text import Text

from pgtrial.model.records.results import Word

Row = TypeVar("Row")

NONE = "–"
"""Stands for an unknown value."""

VERDICT_STYLES: dict[Word | None, str] = {
    "better": "green",
    "worse": "red",
    "equivalent": "cyan",
    "undecided": "yellow",
    "withheld": "yellow",
}
"""Colours of the terminal."""

_TOPIC_ENDS = re.compile(r"[:;] |\. ")

_NOT_WRAPPED = 16
"""Characters of a column's widest cell up to which the terminal never wraps it."""


Form = str | Callable[[Any], str]
"""How a value is written: a format specification such as `,.1f`, or a function from the value to text."""


def written(value: Any, form: Form) -> str:
    """The value as text."""
    return format(value, form) if isinstance(form, str) else form(value)


def range_text(low: float | None, high: float | None, form: Form = ",.0f") -> str | None:
    """`1,070 to 1,250`; None where an end is unknown."""
    return f"{written(low, form)} to {written(high, form)}" if low is not None and high is not None else None


@dataclass(frozen=True)
class Column(Generic[Row]):
    """A column: its head, the value that it takes from a row, and how the value is written."""

    head: str
    value: Callable[[Row], Any]
    """None: unknown, written as a dash."""
    form: Form = ""
    right: bool = False
    """Whether the column is aligned to the right, as numbers are."""
    verdict: Callable[[Row], Word | None] | None = None
    """The verdict of which a cell speaks, for its colour in the terminal."""
    whole: bool = False
    """Whether the terminal never wraps it, so that a name can be copied."""

    def text(self, row: Row) -> str:
        """The cell of a row."""
        value = self.value(row)
        return NONE if value is None else written(value, self.form)


def number(
    head: str,
    value: Callable[[Row], Any],
    form: Form = "",
    *,
    verdict: Callable[[Row], Word | None] | None = None,
) -> Column[Row]:
    """A column of numbers, aligned to the right."""
    return Column(head, value, form, right=True, verdict=verdict)


def by_place(*heads: str, right: Sequence[int] = (), whole: Sequence[int] = ()) -> list[Column[Sequence[Any]]]:
    """Columns for rows that are sequences of cells in this order."""
    return [
        Column(head, itemgetter(place), right=place in right, whole=place in whole) for place, head in enumerate(heads)
    ]


@dataclass(frozen=True)
class Table(Generic[Row]):
    """A caption, typed rows and the columns that are made of them."""

    caption: str
    of: Sequence[Row]
    columns: Sequence[Column[Row]]
    stands_out: Callable[[Row], bool] | None = None
    """Which rows stand out; None: no row."""
    folded: bool | None = None
    """Whether the page folds it away; None: as its section."""

    @property
    def topic(self) -> str:
        """What the table is about: the beginning of its caption."""
        return _TOPIC_ENDS.split(self.caption, maxsplit=1)[0].rstrip(".")

    @property
    def heads(self) -> list[str]:
        """The head of each column."""
        return [column.head for column in self.columns]

    @cached_property
    def rows(self) -> list[list[str]]:
        """The cells of each row as text."""
        return [[column.text(row) for column in self.columns] for row in self.of]

    @cached_property
    def marked(self) -> set[int]:
        """The places of the rows that stand out."""
        return {place for place, row in enumerate(self.of) if self.stands_out is not None and self.stands_out(row)}


def for_terminal(table: Table[Any]) -> RichTable:
    """The table for a terminal, without its caption; rows that stand out are bold."""
    shown = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for place, column in enumerate(table.columns):
        widest = max(map(len, (column.head, *(row[place] for row in table.rows))))
        shown.add_column(
            Text(column.head),
            justify="right" if column.right else "left",
            no_wrap=column.whole or widest <= _NOT_WRAPPED,
            overflow="fold",
        )
    for place, row in enumerate(table.of):
        cells = [
            Text(column.text(row), VERDICT_STYLES.get(column.verdict and column.verdict(row), ""))
            for column in table.columns
        ]
        shown.add_row(*cells, style="bold" if place in table.marked else None)
    return shown
