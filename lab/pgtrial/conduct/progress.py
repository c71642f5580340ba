"""The events that a running study reports to a listener, such as the command line, which shows them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from pgtrial.model.records.load_point import LoadPoint
from pgtrial.model.records.machine import Precision
from pgtrial.model.records.plan import PlannedTrial
from pgtrial.model.records.trial import Trial


@dataclass(frozen=True)
class Preparing:
    """A message for the user: a step outside of trials has begun, such as loading a template, or pgtrial has noticed
    something that the user should know. Its text may contain marks, which are placeholders for keys of the study file
    (`pgtrial.model.marks`)."""

    text: str
    stays: bool = False
    """True if the message must stay readable after the step: the live display prints it above itself and does not
    replace it by the next one."""


@dataclass(frozen=True)
class StudyBegins:
    """An event: the arms are ready for the first trial. `planned` and `stored` are numbers of trials; `stored` is not 0
    if the study was interrupted before."""

    directory: Path
    planned: int
    stored: int
    blocks: int
    left_s: float


@dataclass(frozen=True)
class TrialBegins:
    """An event: a trial begins by restoring its data. It is the trial `number` (counted from 1) of `planned`; `others`
    are the arms whose trials alternate with it."""

    trial: PlannedTrial
    load_point: LoadPoint
    number: int
    planned: int
    blocks: int
    left_s: float
    others: tuple[str, ...] = ()


@dataclass(frozen=True)
class Second:
    """An event: one second of a load has passed or, for trials that alternate, one slice. `tps` is a provisional value
    for the display; the results come from the engine's last event.

    Seconds of a preliminary block are reported before the first TrialBegins.
    """

    arm: str
    phase: str
    second: int
    tps: float
    probe: int | None = None
    """The number of the probe in a search for the capacity, counted from 1; None in the warm-up of a search, and in
    other trials."""
    rate: float | None = None
    """The rate of the probe, in transactions per second."""


@dataclass(frozen=True)
class JobProgress:
    """An event: one second of a job has passed. The fields have what PostgreSQL reports about the progress of the job;
    a field is None if PostgreSQL does not report it."""

    arm: str
    second: int
    command: str | None
    """The command that runs, such as `create index`."""
    phase: str | None
    share: float | None
    """The share of the phase that is complete."""
    left_s: float | None
    """The estimated time to the end of the phase, in seconds, if it continues at the same speed."""


@dataclass(frozen=True)
class QueryEnds:
    """An event: a query of a suite has ended."""

    arm: str
    query: str
    number: int
    """The number of query runs that have ended so far, including this one."""
    of: int
    counted: bool
    """True if this run of the query is measured."""


@dataclass(frozen=True)
class TrialEnds:
    """An event: a trial has ended and is stored."""

    trial: Trial


@dataclass(frozen=True)
class BlockEnds:
    """An event: a block is complete. `decided` is true if a look (an interim analysis) has decided all comparisons.

    `running` has the difference of each arm to the baseline so far, as a share. `intervals` has the interval of each
    arm at the last look, if it is bounded. It is the interval of the verdict, which is valid at every look, so that
    reading it before the end does not mislead. `precision` is the precision that the plan will reach by its end; it is
    known from the fourth block on.
    """

    block: int
    look: bool
    decided: bool
    running: dict[str, float]
    intervals: dict[str, tuple[float, float]] = field(default_factory=dict)
    precision: Precision | None = None
    metric: str | None = None
    """The declared metric by which the arms are compared first (in the primary claims); None if they are compared by
    the usual measure of the load, such as its throughput."""


@dataclass(frozen=True)
class StudyEnds:
    """An event: the study has ended, and no trial is left to run. `reason` says why."""

    reason: str
    blocks: int


ProgressEvent = (
    Preparing | StudyBegins | TrialBegins | Second | JobProgress | QueryEnds | TrialEnds | BlockEnds | StudyEnds
)
Listener = Callable[[ProgressEvent], None]


def reworded(listener: Listener, reword: Callable[[str], str]) -> Listener:
    """Returns a listener that gets the same events, but with the texts of its Preparing events changed by `reword`."""

    def on_event(event: ProgressEvent) -> None:
        listener(replace(event, text=reword(event.text)) if isinstance(event, Preparing) else event)

    return on_event
