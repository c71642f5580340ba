"""How a running study is shown: a live display in a terminal, a line per trial elsewhere, JSON Lines on request."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

from pydantic_core import to_jsonable_python
from rich.live import Live

from pgtrial.cli.by_options import Reword
from pgtrial.cli.faults import described, how_to_report, show_traceback
from pgtrial.cli.live_display import LiveDisplay
from pgtrial.cli.output import json_line, warn
from pgtrial.cli.progress_words import beginning, by_the_end, describe, running_estimate, state
from pgtrial.cli.terminal import Terminal
from pgtrial.conduct.progress import (
    BlockEnds,
    Listener,
    Preparing,
    ProgressEvent,
    StudyBegins,
    StudyEnds,
    TrialBegins,
    TrialEnds,
    reworded,
)
from pgtrial.model.marks import in_toml


@contextmanager
def shown(console: Terminal, *, as_json: bool, reword: Reword = in_toml) -> Iterator[Listener]:
    """Yields a listener that shows the study while it runs, in the way that fits where the output goes.

    Steps are told as `reword` returns them. The listener raises nothing but BrokenPipeError: a fault of the display
    does not end a study. The rest of the study is then shown line by line, and the fault is reported at the end.
    """
    lines = _Lines(console.print_line)
    guard = _Guard(reworded(_print_json if as_json else lines.say, reword))
    if console.is_terminal and not as_json:
        display = LiveDisplay(lambda text: _print_above(live, text), guard.note)
        live = Live(display, console=console, refresh_per_second=8, transient=True)
        guard.try_first(live, reworded(display.hear, reword), lines.line_of)
    try:
        yield guard.hear
    finally:
        guard.close()


def _print_above(live: Live, line: str) -> None:
    """Prints a line above a live display.

    rich's thread must not draw meanwhile: if the display has fewer rows than before, each of the two would go up by the
    rows of before, and the second would erase lines that should stay. Live guards its drawing alone, by this lock.
    """
    with live._lock:
        live.console.print(line, soft_wrap=True)


class _Guard:
    """Passes events to a display, and keeps the first fault of the display until the study has ended."""

    def __init__(self, simple: Listener) -> None:
        self._simple = simple
        """Shows the events after the live display has failed, or where there is none."""
        self._live: Live | None = None
        self._to_live: Sequence[Callable[[ProgressEvent], object]] = ()
        self._fault: Exception | None = None

    def try_first(self, live: Live, *listeners: Callable[[ProgressEvent], object]) -> None:
        """Passes events to a live display and to the other listeners for as long as none of them fails."""
        self._live, self._to_live = live, listeners
        try:
            live.start()
        except Exception as error:  # noqa: BLE001 - the study matters more than its display
            self.note(error)

    def note(self, fault: Exception) -> None:
        """Keeps a fault of the display. Any thread may call this; the display is stopped at the next event."""
        self._fault = self._fault or fault

    def hear(self, event: ProgressEvent) -> None:
        """Shows an event; if the display fails at it, shows it line by line."""
        if self._live is not None and self._fault is None and self._is_heard(event, self._to_live):
            return
        self._stop()
        self._is_heard(event, [self._simple])

    def _is_heard(self, event: ProgressEvent, listeners: Sequence[Callable[[ProgressEvent], object]]) -> bool:
        try:
            for hear in listeners:
                hear(event)
        except BrokenPipeError:
            raise  # whoever reads the output, such as `head`, has seen enough
        except Exception as error:  # noqa: BLE001
            self.note(error)
            return False
        return True

    def _stop(self) -> None:
        live, self._live = self._live, None
        if live is not None:
            try:
                live.stop()
            except Exception as error:  # noqa: BLE001
                self.note(error)

    def close(self) -> None:
        """Removes the live display, and reports the fault if there was one."""
        self._stop()
        if self._fault is not None:
            with suppress(OSError):  # stderr may be the same broken terminal
                show_traceback(self._fault)
                warn(
                    f"the display of this study failed, and the study was not affected: {described(self._fault)}; "
                    f"{how_to_report('such a study')}"
                )


def _print_json(event: ProgressEvent) -> None:
    name = re.sub(r"(?<!^)(?=[A-Z])", "_", type(event).__name__).lower()
    json_line({"event": name, **vars(event)}, default=to_jsonable_python)


class _Lines:
    """Shows the progress as plain text, with a line for each trial and each block."""

    def __init__(self, print_line: Callable[[str], None]) -> None:
        self._print_line = print_line
        self._begun: TrialBegins | None = None
        self._number = 0
        """The number of the trial that ends next. If several trials run at the same time, it is that of the first."""
        self._blocks = 0

    def say(self, event: ProgressEvent) -> None:
        """Prints the line of an event, if it has one."""
        if (line := self.line_of(event)) is not None:
            self._print_line(line)

    def line_of(self, event: ProgressEvent) -> str | None:
        """Returns the line of an event. The lines of later events count trials and blocks from it."""
        match event:
            case Preparing(text):
                return text
            case StudyBegins():
                self._blocks = event.blocks
                return beginning(event)
            case TrialBegins():
                self._begun, self._number = event, event.number
            case TrialEnds(trial):
                number = f"{self._number}/{self._begun.planned}" if self._begun else str(trial.index + 1)
                self._number += 1
                ended = f"trial {number}, block {trial.block + 1}, {trial.arm}"
                return f"{ended}: {trial.load_point.label}: {describe(trial)}"
            case BlockEnds():
                look = "a planned look at the verdict, " if event.look else ""
                estimate = f"estimate so far: {running}" if (running := running_estimate(event)) else "no estimate yet"
                return (
                    f"block {event.block + 1}/{self._blocks} complete; {estimate} "
                    f"({look}{state(event)}){f'; by the end it {reach}' if (reach := by_the_end(event)) else ''}"
                )
            case StudyEnds(reason):
                return f"end: {reason}"
        return None
