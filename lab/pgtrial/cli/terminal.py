"""The console of rich on which commands draw: texts are no markup, and control characters are signs."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from pgtrial.model.printable import printable


class Terminal(Console):
    """A console whose strings are plain text. Styles are given by `Text`, never within a string."""

    def __init__(self) -> None:
        super().__init__(markup=False, emoji=False, highlight=False)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """All that is drawn passes here; what rich itself tells the terminal comes as control segments, or later."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(printable(segment.text), segment.style)

    def print_line(self, text: str) -> None:
        """Print a line, of any length; a terminal wraps it."""
        self.print(text, soft_wrap=True)
