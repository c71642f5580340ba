"""The console of rich on which commands draw, and tables on it: texts are no markup, control characters are signs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import IO, Any

from rich import box
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table as RichTable
from rich.text import Text

from pgtrial.model.printable import printable
from pgtrial.model.records.claims import Word
from pgtrial.report.table import Table

VERDICT_STYLES: dict[Word | None, str] = {
    "better": "green",
    "worse": "red",
    "equivalent": "cyan",
    "undecided": "yellow",
    "withheld": "yellow",
}
"""Colours of the terminal."""

_NOT_WRAPPED = 16
"""Characters of a column's widest cell up to which the terminal never wraps it."""


class Terminal(Console):
    """A console whose strings are plain text. Styles are given by `Text`, never within a string."""

    def __init__(
        self, file: IO[str] | None = None, *, force_terminal: bool | None = None, width: int | None = None
    ) -> None:
        """Draws on stdout unless given another file; the others are as rich has them."""
        super().__init__(
            file=file, force_terminal=force_terminal, width=width, markup=False, emoji=False, highlight=False
        )

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yields the pieces of everything that is drawn. What rich itself sends to the terminal comes as control
        segments, or later."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(printable(segment.text), segment.style)

    def on_broken_pipe(self) -> None:
        """Raises BrokenPipeError when the reader of the output, such as `head`, is gone: rich would exit with status 1,
        which means a regression.
        """
        raise BrokenPipeError

    def print_line(self, text: str) -> None:
        """Prints a line of any length, which the terminal wraps."""
        self.print(text, soft_wrap=True)


def for_terminal(table: Table[Any]) -> RichTable:
    """Returns the table for a terminal, without its caption. Rows that stand out are bold."""
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
