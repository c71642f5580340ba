"""Tables as data. Each table is defined once, and rendered for the HTML page, for Markdown and for the terminal."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from typing import Any, Generic, TypeVar

from pgtrial.model.records.claims import Word

Row = TypeVar("Row")

NONE = "–"
"""The sign for an unknown value."""

_TOPIC_ENDS = re.compile(r"[:;] |\. ")

Form = str | Callable[[Any], str]
"""The way in which a value is written: a format specification such as `,.1f`, or a function from the value to text."""


def written(value: Any, form: Form) -> str:
    """Returns the value as text in the given form."""
    return format(value, form) if isinstance(form, str) else form(value)


def range_text(low: float | None, high: float | None, form: Form = ",.0f") -> str | None:
    """Returns a range of two numbers as text, such as `1,070 to 1,250`; None if one of the two is unknown."""
    return f"{written(low, form)} to {written(high, form)}" if low is not None and high is not None else None


@dataclass(frozen=True)
class Column(Generic[Row]):
    """A column: its heading, the function that computes its value from a row, and how the value is written."""

    head: str
    value: Callable[[Row], Any]
    """Returns the value of a row. None stands for an unknown value, which is written as a dash."""
    form: Form = ""
    right: bool = False
    """True if the column is aligned to the right, as numbers are."""
    verdict: Callable[[Row], Word | None] | None = None
    """Returns the verdict of a row, which decides the colour of its cell in the terminal."""
    whole: bool = False
    """True if the terminal never wraps the column, so that its text can be copied."""

    def text(self, row: Row) -> str:
        """Returns the cell of a row as text."""
        value = self.value(row)
        return NONE if value is None else written(value, self.form)


def number(
    head: str,
    value: Callable[[Row], Any],
    form: Form = "",
    *,
    verdict: Callable[[Row], Word | None] | None = None,
) -> Column[Row]:
    """Returns a column of numbers, aligned to the right."""
    return Column(head, value, form, right=True, verdict=verdict)


def by_position(*heads: str, right: Sequence[int] = (), whole: Sequence[int] = ()) -> list[Column[Sequence[Any]]]:
    """Returns columns for rows that are sequences of cells, in the order of `heads`."""
    return [
        Column(head, itemgetter(index), right=index in right, whole=index in whole) for index, head in enumerate(heads)
    ]


@dataclass(frozen=True)
class Table(Generic[Row]):
    """A caption, typed rows, and the columns that are computed from the rows."""

    caption: str
    of: Sequence[Row]
    columns: Sequence[Column[Row]]
    stands_out: Callable[[Row], bool] | None = None
    """True for the rows that are marked. If it is None, no row is marked."""
    folded: bool | None = None
    """True if the page shows the table folded. If it is None, the setting of the section applies."""
    is_list: bool = False
    """True if the rows are names with values, which Markdown writes as one paragraph."""
    is_text: bool = False
    """True if the cells are lines of text whose indentation matters. Markdown writes each column as a block of code."""
    page_of: Callable[[Row], str | None] | None = None
    """Returns the address of a page about a row, to which the first cell of the row is linked. If it is None, rows have
    no pages."""

    @property
    def topic(self) -> str:
        """The topic of the table, which is the beginning of its caption."""
        return _TOPIC_ENDS.split(self.caption, maxsplit=1)[0].rstrip(".")

    @property
    def heads(self) -> list[str]:
        """The headings of the columns."""
        return [column.head for column in self.columns]

    @cached_property
    def rows(self) -> list[list[str]]:
        """The cells of each row as text."""
        return [[column.text(row) for column in self.columns] for row in self.of]

    @cached_property
    def addresses(self) -> list[str | None]:
        """The address of the page about each row; None for a row without a page."""
        return [self.page_of(row) if self.page_of is not None else None for row in self.of]

    @cached_property
    def marked(self) -> set[int]:
        """The indexes of the rows that are marked."""
        return {index for index, row in enumerate(self.of) if self.stands_out is not None and self.stands_out(row)}
