"""Shows a running study: as a live display in a terminal, as a line for each trial elsewhere, and as JSON Lines if the
user asks for them."""

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
    """Yields a listener that shows the events of a study while it runs, as a live display, as lines or as JSON.

    `reword` changes each sentence before it is shown. The listener raises only BrokenPipeError: if the display fails,
    the study goes on, its further events are shown line by line, and the fault of the display is reported at the end.
    """
    lines = _Lines(console.print_line)
    guard = _Guard(reworded(_print_json if as_json else lines.on_event, reword))
    if console.is_terminal and not as_json:
        display = LiveDisplay(lambda text: _print_above(live, text), guard.note)
        live = Live(display, console=console, refresh_per_second=8, transient=True)
        guard.try_first(live, reworded(display.on_event, reword), lines.line_of)
    try:
        yield guard.on_event
    finally:
        guard.close()


def _print_above(live: Live, line: str) -> None:
    """Prints a line above a live display.

    Meanwhile rich's thread must not draw. If the display has fewer rows than at its last drawing, both this print and
    the thread's drawing would move the cursor up by the earlier number of rows, and the second one would erase lines
    that must stay. rich's own lock guards only its drawing, so this function takes the same lock.
    """
    with live._lock:
        live.console.print(line, soft_wrap=True)


class _Guard:
    """Passes events to a display. If the display fails, keeps its first error until the study has ended."""

    def __init__(self, simple: Listener) -> None:
        self._simple = simple
        """Shows the events line by line if there is no live display, or after it has failed."""
        self._live: Live | None = None
        self._to_live: Sequence[Callable[[ProgressEvent], object]] = ()
        self._fault: Exception | None = None

    def try_first(self, live: Live, *listeners: Callable[[ProgressEvent], object]) -> None:
        """Passes the events of a study to a live display and to the other listeners, until the live display or a
        listener fails. From then on the display is not used any more."""
        self._live, self._to_live = live, listeners
        try:
            live.start()
        except Exception as error:  # noqa: BLE001 - an error of the display must not end the study
            self.note(error)

    def note(self, fault: Exception) -> None:
        """Keeps an error of the display. Any thread may call this method; the display is stopped at the next event."""
        self._fault = self._fault or fault

    def on_event(self, event: ProgressEvent) -> None:
        """Shows an event on the live display, or as a line if there is none or if it fails at this event."""
        if self._live is not None and self._fault is None and self._is_shown(event, self._to_live):
            return
        self._stop()
        self._is_shown(event, [self._simple])

    def _is_shown(self, event: ProgressEvent, listeners: Sequence[Callable[[ProgressEvent], object]]) -> bool:
        try:
            for listener in listeners:
                listener(event)
        except BrokenPipeError:
            raise  # the program that reads the output, such as `head`, has ended
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
        """Removes the live display, and reports its first error if there was one."""
        self._stop()
        if self._fault is not None:
            with suppress(OSError):  # stderr may lead to the same broken terminal
                show_traceback(self._fault)
                warn(
                    "the display of this study failed, but the study itself was not affected: "
                    f"{described(self._fault)}; {how_to_report('such a study')}"
                )


def _print_json(event: ProgressEvent) -> None:
    name = re.sub(r"(?<!^)(?=[A-Z])", "_", type(event).__name__).lower()
    json_line({"event": name, **vars(event)}, default=to_jsonable_python)


class _Lines:
    """Shows the progress of a study as plain text, with a line for each trial and each block."""

    def __init__(self, print_line: Callable[[str], None]) -> None:
        self._print_line = print_line
        self._begun: TrialBegins | None = None
        self._number = 0
        """The number of the next trial that ends. If several trials run at the same time, the number of the first of
        them."""
        self._blocks = 0

    def on_event(self, event: ProgressEvent) -> None:
        """Prints the line for an event. Some events have no line."""
        if (line := self.line_of(event)) is not None:
            self._print_line(line)

    def line_of(self, event: ProgressEvent) -> str | None:
        """Returns the line for an event, or None if the event has no line. The method also counts the trials and blocks
        that have ended, because the lines of later events contain their numbers."""
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
