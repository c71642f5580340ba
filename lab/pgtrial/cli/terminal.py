"""The rich console on which commands print, and the conversion of our tables to rich tables. Text is never interpreted
as markup, and control characters are made visible."""

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
"""The colour of each verdict in the terminal."""

_NOT_WRAPPED = 16
"""A column is not wrapped in the terminal if none of its cells has more characters than this."""


class Terminal(Console):
    """A console that prints strings as plain text. Styles are given by `Text` objects, never by markup in a string."""

    def __init__(
        self, file: IO[str] | None = None, *, force_terminal: bool | None = None, width: int | None = None
    ) -> None:
        """Creates a console that prints on stdout, unless `file` is given. The other parameters have the same meaning
        as in rich."""
        super().__init__(
            file=file, force_terminal=force_terminal, width=width, markup=False, emoji=False, highlight=False
        )

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yields the segments of everything that is printed, with control characters made visible. Control codes that
        rich sends itself are in segments of their own, which stay unchanged."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(printable(segment.text), segment.style)

    def on_broken_pipe(self) -> None:
        """Raises BrokenPipeError if the program that reads the output, such as `head`, has ended. Without this method
        rich would exit with status 1, by which pgtrial reports a regression."""
        raise BrokenPipeError

    def print_line(self, text: str) -> None:
        """Prints a line of any length. The terminal wraps it, and rich does not."""
        self.print(text, soft_wrap=True)


def for_terminal(table: Table[Any]) -> RichTable:
    """Returns the table as a rich table, without its caption. Marked rows are bold."""
    shown = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for index, column in enumerate(table.columns):
        widest = max(map(len, (column.head, *(row[index] for row in table.rows))))
        shown.add_column(
            Text(column.head),
            justify="right" if column.right else "left",
            no_wrap=column.whole or widest <= _NOT_WRAPPED,
            overflow="fold",
        )
    for index, row in enumerate(table.of):
        cells = [
            Text(column.text(row), VERDICT_STYLES.get(column.verdict and column.verdict(row), ""))
            for column in table.columns
        ]
        shown.add_row(*cells, style="bold" if index in table.marked else None)
    return shown
