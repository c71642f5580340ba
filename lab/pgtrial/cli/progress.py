"""How a running study is shown: a live display in a terminal, a line per trial elsewhere, JSON Lines on request."""

from __future__ import annotations

import re
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from pydantic_core import to_jsonable_python
from rich.console import Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Column, Table
from rich.text import Text

from pgtrial.cli.output import json_line
from pgtrial.cli.terminal import Terminal
from pgtrial.conduct.outlook import in_words
from pgtrial.conduct.progress import (
    BlockEnds,
    JobProgress,
    Listener,
    Preparing,
    ProgressEvent,
    QueryEnds,
    Second,
    StudyBegins,
    StudyEnds,
    TrialBegins,
    TrialEnds,
)
from pgtrial.model.records.claims import Estimate
from pgtrial.model.records.trial import Trial
from pgtrial.model.units import format_duration, plural
from pgtrial.report.tables.results import digits
from pgtrial.report.words import bounds_text, change_text

_BARS = "▁▂▃▄▅▆▇█"
_SPARKS = 40
"""Seconds, or slices, that the live display draws of each arm."""


@contextmanager
def shown(console: Terminal, *, as_json: bool) -> Iterator[Listener]:
    """A listener that shows the study while it runs, in the way that fits where the output goes."""
    if as_json:
        yield _print_json
    elif console.is_terminal:
        display = _Display(console.print_line)
        with Live(display, console=console, refresh_per_second=8, transient=True):
            yield display.hear
    else:
        yield _Lines(console.print_line).hear


def describe(trial: Trial) -> str:
    """The outcome of a trial in a few words: tps and latency, or why it failed."""
    if trial.status == "failed":
        return f"failed: {trial.reason}"
    measured = trial.measured
    if measured is None:
        return "completed"
    if trial.load_point.job is not None and measured.latency_us is not None:
        return f"{digits(measured.latency_us.mean / 1e6)} s{_written(trial)}"
    failed = sum(measured.failures.values())
    if trial.suite is not None:
        mean = trial.suite.mean_us
        shown = f"geometric mean {digits(mean / 1000)} ms" if mean is not None else "no query has a time"
        return f"{shown}{f', {failed:,} failed' if failed else ''}"
    latency = f", latency {measured.latency_us.mean / 1000:.2f} ms" if measured.latency_us else ""
    warned = "".join(f", {warning.kind}" for warning in trial.client.warnings) if trial.client else ""
    if trial.capacity is not None:
        return f"capacity {trial.capacity:,.4g}/s by {plural(len(trial.probes), 'probe')}{warned}"
    return f"{measured.tps:,.0f} tps{latency}{f', {failed:,} failed' if failed else ''}{warned}"


def _written(trial: Trial) -> str:
    wal = trial.job.wal_bytes if trial.job is not None else None
    return f", {wal / 1e6:,.1f} MB of WAL" if wal is not None else ""


def how_far(event: JobProgress) -> str:
    """`second 12, create index: building index: loading tuples in tree, 45%, about 8s left of it`."""
    parts = [f"second {event.second}"]
    if event.command is not None:
        parts.append(f"{event.command}: {event.phase}" if event.phase else event.command)
    if event.share is not None:
        parts.append(f"{event.share:.0%}")
    if event.left_s is not None:
        parts.append(f"about {format_duration(round(event.left_s) or 1)} left of it")
    return ", ".join(parts)


def running_estimate(event: BlockEnds) -> str:
    """The estimates from all blocks so far: `off is 153% faster (+120 to +190%)`."""
    return ", ".join(
        f"{change_text(event.metric, arm, difference)}{_interval(event, arm)}"
        for arm, difference in event.running.items()
    )


def _interval(event: BlockEnds, arm: str) -> str:
    if arm not in event.intervals:
        return ""
    low, high = event.intervals[arm]
    return f" ({bounds_text(Estimate(low=low, value=event.running[arm], high=high))})"


def sparkline(values: Sequence[float]) -> str:
    """The values as bars of eight heights, the highest of them full."""
    highest = max(values, default=0.0)
    return "".join(_BARS[round(value / highest * (len(_BARS) - 1))] if highest else _BARS[0] for value in values)


def _by_the_end(event: BlockEnds) -> str:
    """What the study can still tell, from the fourth block on, while a look is to come and not all is decided."""
    reach = event.precision
    return in_words(reach) if reach is not None and event.block + 1 < reach.blocks and not event.decided else ""


def _state(event: BlockEnds) -> str:
    return "decided" if event.decided else "not yet decided"


def _beginning(event: StudyBegins) -> str:
    return (
        f"{event.directory}: {event.planned - event.stored} of {event.planned} trials to run, "
        f"{plural(event.blocks, 'block')}, at most about {format_duration(event.left_s)}"
    )


def _print_json(event: ProgressEvent) -> None:
    name = re.sub(r"(?<!^)(?=[A-Z])", "_", type(event).__name__).lower()
    json_line({"event": name, **vars(event)}, default=to_jsonable_python)


class _Lines:
    """One line for each trial and each block."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._begun: TrialBegins | None = None
        self._number = 0
        """The number of the trial that ends next; of those that run at the same time the first one's is known."""
        self._blocks = 0

    def hear(self, event: ProgressEvent) -> None:
        match event:
            case Preparing(text):
                self._say(text)
            case StudyBegins():
                self._blocks = event.blocks
                self._say(_beginning(event))
            case TrialBegins():
                self._begun, self._number = event, event.number
            case TrialEnds(trial):
                number = f"{self._number}/{self._begun.planned}" if self._begun else str(trial.index + 1)
                self._number += 1
                self._say(
                    f"trial {number}, block {trial.block + 1}, {trial.arm}: {trial.load_point.label}: {describe(trial)}"
                )
            case BlockEnds():
                look = "a planned look at the verdict, " if event.look else ""
                estimate = f"estimate so far: {running}" if (running := running_estimate(event)) else "no estimate yet"
                self._say(
                    f"block {event.block + 1}/{self._blocks} complete; {estimate} "
                    f"({look}{_state(event)}){f'; by the end it {reach}' if (reach := _by_the_end(event)) else ''}"
                )
            case StudyEnds():
                self._say(f"end: {event.reason}")


class _Display:
    """The live display: trial, block, time left, tps of the running trial, the running estimate."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        """Prints a line above the display that stays when it is gone."""
        self._preparing = "preparing"
        self._begun: TrialBegins | None = None
        self._second: Second | JobProgress | QueryEnds | None = None
        self._tps: dict[str, deque[float]] = {}
        """The last seconds or slices of the trial under way, by arm."""
        self._last: Trial | None = None
        self._block: BlockEnds | None = None
        self._since = time.monotonic()

    def hear(self, event: ProgressEvent) -> None:
        match event:
            case Preparing(text, stays=True):
                self._say(text)
            case Preparing(text):
                self._preparing = text
            case StudyBegins():
                self._say(_beginning(event))
            case TrialBegins():
                self._begun, self._second, self._since = event, None, time.monotonic()
                self._tps = defaultdict(lambda: deque(maxlen=_SPARKS))
            case Second(arm=arm, tps=tps):
                self._second = event
                self._tps[arm].append(tps)
            case JobProgress() | QueryEnds():
                self._second = event
            case TrialEnds(trial):
                self._last = trial
                if trial.status == "failed":
                    self._say(f"trial {trial.index + 1}, {trial.arm}: {describe(trial)}")
            case BlockEnds():
                self._block = event

    def __rich__(self) -> Group:
        begun = self._begun
        if begun is None:
            return Group(Text(self._preparing, style="dim"))
        rows = Table.grid(Column(style="dim"), Column(), padding=(0, 2))
        rows.add_row("trial", f"{begun.number} of {begun.planned}, block {begun.trial.block + 1} of {begun.blocks}")
        rows.add_row("arm", Text(" and ".join([begun.trial.arm, *begun.others]), style="bold cyan"))
        rows.add_row("load", begun.load_point.label)
        rows.add_row("now", self._now())
        for arm, values in self._tps.items():
            rows.add_row("tps", Text(f"{sparkline(values)} {arm}"))
        if self._last is not None:
            style = "red" if self._last.status == "failed" else ""
            rows.add_row("last", Text(f"{self._last.arm}: {describe(self._last)}", style=style))
        if self._block is not None:
            rows.add_row("so far", f"{running_estimate(self._block) or 'no estimate yet'} ({_state(self._block)})")
            if reach := _by_the_end(self._block):
                rows.add_row("by the end", reach)
        left = max(0.0, begun.left_s - (time.monotonic() - self._since))
        rows.add_row("left", f"at most about {format_duration(round(left) or 1)}")
        return Group(ProgressBar(total=begun.planned, completed=begun.number - 1, width=60), rows)

    def _now(self) -> str:
        if self._second is None:
            return "fresh data, starting the server"
        if isinstance(self._second, JobProgress):
            return how_far(self._second)
        if isinstance(self._second, QueryEnds):
            note = "" if self._second.counted else ", not counted"
            return f"query {self._second.number} of {self._second.of} has ended: {self._second.query}{note}"
        phase = "measuring" if self._second.phase == "measure" else "warm-up"
        if self._second.probe is not None:
            phase = f"probe {self._second.probe} at {self._second.rate:,.4g}/s, {phase}"
        if self._begun is not None and self._begun.others:
            return f"{phase}, slice {self._second.second + 1} of {self._second.arm}: {self._second.tps:,.0f} tps"
        return f"{phase}, second {self._second.second + 1}: {self._second.tps:,.0f} tps"
