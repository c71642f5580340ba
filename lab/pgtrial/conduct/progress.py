"""The events of a running study, which the command line shows."""

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
    """A message for the user: a step outside of trials has begun, such as loading a template, or something was
    noticed. Its text may name keys by marks (`pgtrial.model.marks`)."""

    text: str
    stays: bool = False
    """True if the message must stay readable after the step: the live display prints it above itself and does not
    replace it by the next one."""


@dataclass(frozen=True)
class StudyBegins:
    """The arms are ready. `stored`: trials from before, if the study was interrupted."""

    directory: Path
    planned: int
    stored: int
    blocks: int
    left_s: float


@dataclass(frozen=True)
class TrialBegins:
    """Trial `number` (from 1) of `planned` starts with its restore; `others` are the arms that alternate with it."""

    trial: PlannedTrial
    load_point: LoadPoint
    number: int
    planned: int
    blocks: int
    left_s: float
    others: tuple[str, ...] = ()


@dataclass(frozen=True)
class Second:
    """One second of load has passed, or one slice of trials that alternate. The tps are provisional.

    Seconds of a preliminary block come before the first TrialBegins.
    """

    arm: str
    phase: str
    second: int
    tps: float
    probe: int | None = None
    """The number of the probe in a search for the capacity, from 1; None in its warm-up, and in other trials."""
    rate: float | None = None
    """The rate of the probe, transactions per second."""


@dataclass(frozen=True)
class JobProgress:
    """One second of a job has passed. The fields have what PostgreSQL reports about it, or None."""

    arm: str
    second: int
    command: str | None
    """The command that runs, such as `create index`."""
    phase: str | None
    share: float | None
    """The share of the phase that is done."""
    left_s: float | None
    """The time to the end of the phase, seconds, if it goes on as until now."""


@dataclass(frozen=True)
class QueryEnds:
    """A query of a suite has ended."""

    arm: str
    query: str
    number: int
    """The number of runs of queries that have ended so far, this one included."""
    of: int
    counted: bool
    """True if this run of the query is measured."""


@dataclass(frozen=True)
class TrialEnds:
    """The trial is stored."""

    trial: Trial


@dataclass(frozen=True)
class BlockEnds:
    """A block is complete. `decided` is true if a look has decided all comparisons.

    `running` is the difference of each arm so far, as a share. `intervals` has the interval of each arm at the last
    look, if it is bounded. It is the verdict's own and stays valid while blocks are added, so it misleads nobody who
    reads it early. `precision` is the precision that the plan will reach by its end; it is known from the fourth block
    on.
    """

    block: int
    look: bool
    decided: bool
    running: dict[str, float]
    intervals: dict[str, tuple[float, float]] = field(default_factory=dict)
    precision: Precision | None = None
    metric: str | None = None
    """The declared metric of the primary claims; None for the measure of the load."""


@dataclass(frozen=True)
class StudyEnds:
    """No trial is left to run; `reason` says why."""

    reason: str
    blocks: int


ProgressEvent = (
    Preparing | StudyBegins | TrialBegins | Second | JobProgress | QueryEnds | TrialEnds | BlockEnds | StudyEnds
)
Listener = Callable[[ProgressEvent], None]


def reworded(listener: Listener, reword: Callable[[str], str]) -> Listener:
    """Returns a listener that hears the texts of steps as `reword` returns them."""

    def hear(event: ProgressEvent) -> None:
        listener(replace(event, text=reword(event.text)) if isinstance(event, Preparing) else event)

    return hear
