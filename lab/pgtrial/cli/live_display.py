"""The live display of a running study in the terminal. It shows the trial, the block, the remaining time, the
throughput of the running trial, and the estimate so far.

It accepts events in any order, since the seconds of a preliminary block come before the first trial, and steps of
preparation come between trials too.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult  # noqa: TID251 - the type in rich's protocol
from rich.padding import Padding
from rich.progress_bar import ProgressBar
from rich.segment import Segment
from rich.table import Column, Table
from rich.text import Text

from pgtrial.cli.progress_words import beginning, by_the_end, describe, how_far, running_estimate, state
from pgtrial.conduct.progress import (
    BlockEnds,
    JobProgress,
    Preparing,
    ProgressEvent,
    QueryEnds,
    Second,
    StudyBegins,
    StudyEnds,
    TrialBegins,
    TrialEnds,
)
from pgtrial.model.records.load_point import rate_unit
from pgtrial.model.records.trial import Trial
from pgtrial.model.units import format_duration

_BARS = "▁▂▃▄▅▆▇█"
_SPARKS = 40
"""The display draws one bar for each of at most this many values of an arm. A value is the throughput in a second or,
if the arms alternate in slices of time, in a slice."""


def sparkline(values: Sequence[float]) -> str:
    """Returns the values as a line of bars with eight possible heights. The largest value has the full height."""
    highest = max(values, default=0.0)
    return "".join(_BARS[round(value / highest * (len(_BARS) - 1))] if highest else _BARS[0] for value in values)


class LiveDisplay:
    """A display that `rich.live.Live` draws several times a second, in its own thread, while events of the study
    arrive."""

    def __init__(self, print_line: Callable[[str], None], failed: Callable[[Exception], None]) -> None:
        """`print_line` prints a line above the display, which stays there when the display is gone. `failed` is
        called with the error if drawing fails."""
        self._print_line = print_line
        self._failed = failed
        self._lock = threading.Lock()
        """Held while the fields below are changed or drawn. It is not held while `print_line` prints a line, since rich
        draws the display then."""
        self._begun: TrialBegins | None = None
        self._now: Preparing | Second | JobProgress | QueryEnds | None = None
        self._tps: dict[str, deque[float]] = {}
        """For each arm, the throughput in the latest seconds of the running trial. If the arms alternate in short
        slices of time, each value is the throughput of one slice instead."""
        self._last: Trial | None = None
        self._block: BlockEnds | None = None
        self._since = time.monotonic()

    def on_event(self, event: ProgressEvent) -> None:
        """Takes an event of the study. The display shows the event when it is drawn the next time."""
        with self._lock:
            line = self._taken(event)
        if line is not None:
            self._print_line(line)

    def _taken(self, event: ProgressEvent) -> str | None:
        """Updates the fields that are drawn. Returns the line that must stay in the terminal, or None if the event has
        none."""
        match event:
            case Preparing(text, stays=True):
                self._now = None
                return text
            case Preparing() | JobProgress() | QueryEnds():
                self._now = event
            case StudyBegins():
                self._now, self._tps = None, {}
                return beginning(event)
            case TrialBegins():
                self._begun, self._now, self._tps, self._since = event, None, {}, time.monotonic()
            case Second(arm=arm, tps=tps):
                self._now = event
                self._tps.setdefault(arm, deque(maxlen=_SPARKS)).append(tps)
            case TrialEnds(trial):
                self._last = trial
                if trial.status == "failed":
                    return f"trial {trial.index + 1}, {trial.arm}: {describe(trial)}"
            case BlockEnds():
                self._block = event
            case StudyEnds(reason):
                return f"end: {reason}"
        return None

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draws the display. If that fails, calls `failed` with the error and draws nothing."""
        segments: list[Segment] = []
        try:
            with self._lock:
                segments = list(console.render(self._drawn(), options))
        except Exception as error:  # noqa: BLE001 - an error would end rich's thread and print into the terminal
            self._failed(error)
        yield from segments

    def _drawn(self) -> RenderableType:
        rows = Table.grid(Column(style="dim"), Column(), padding=(0, 2))
        if self._begun is None:
            if self._now is None or isinstance(self._now, Preparing):
                return Text(self._now.text if self._now is not None else "preparing", style="dim")
            self._add_now(rows, None)
            return rows
        begun = self._begun
        rows.add_row("trial", f"{begun.number} of {begun.planned}, block {begun.trial.block + 1} of {begun.blocks}")
        left = max(0.0, begun.left_s - (time.monotonic() - self._since))
        # among the first rows, since a low window shows only these
        rows.add_row("left", f"about {format_duration(round(left) or 1)}")
        rows.add_row("arm", Text(" and ".join([begun.trial.arm, *begun.others]), style="bold cyan"))
        rows.add_row("load", begun.load_point.label)
        self._add_now(rows, begun)
        if self._last is not None:
            style = "red" if self._last.status == "failed" else ""
            rows.add_row("last", Text(f"{self._last.arm}: {describe(self._last)}", style=style))
        if self._block is not None:
            rows.add_row("so far", f"{running_estimate(self._block) or 'no estimate yet'} ({state(self._block)})")
            if reach := by_the_end(self._block):
                rows.add_row("by the end", reach)
        bar = ProgressBar(total=begun.planned, completed=begun.number - 1, width=60)
        return Group(Padding(bar, 0), rows)  # in a Padding, because the bar alone does not end its line

    def _add_now(self, rows: Table, begun: TrialBegins | None) -> None:
        unit = rate_unit([begun.load_point]) if begun is not None else "tps"
        rows.add_row("now", _step(self._now, unit, alternates=len(self._tps) > 1 or bool(begun and begun.others)))
        for arm, values in self._tps.items():
            rows.add_row(unit, Text(f"{sparkline(values)} {arm}"))


def _step(now: Preparing | Second | JobProgress | QueryEnds | None, unit: str, *, alternates: bool) -> str:
    """Returns text that says what the running trial does now, with its speed in `unit`.

    `alternates` is true if the arms of a trial take turns in short slices of time. The text then names the arm of the
    latest slice and the number of this slice.
    """
    match now:
        case None:
            return "fresh data, starting the server"
        case Preparing(text):
            return text
        case JobProgress():
            return how_far(now)
        case QueryEnds():
            note = "" if now.counted else ", not counted"
            return f"query {now.number} of {now.of} has ended: {now.query}{note}"
        case Second():
            phase = "measuring" if now.phase == "measure" else "warm-up"
            if now.probe is not None and now.rate is not None:
                phase = f"probe {now.probe} at {now.rate:,.4g}/s, {phase}"
            slice_of = f"slice {now.second + 1} of {now.arm}" if alternates else f"second {now.second + 1}"
            return f"{phase}, {slice_of}: {now.tps:,.0f} {unit}"
