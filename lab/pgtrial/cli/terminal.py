"""The console of rich on which commands draw: texts are no markup, and control characters are signs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import IO

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from pgtrial.model.printable import printable


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
        """All that is drawn passes here; what rich itself tells the terminal comes as control segments, or later."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(printable(segment.text), segment.style)

    def print_line(self, text: str) -> None:
        """Print a line, of any length; a terminal wraps it."""
        self.print(text, soft_wrap=True)
