"""The course of one trial: what it is to do, what is gathered while it runs, and the sampler around its load."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

import psycopg

from pgtrial.conduct.load_statements import FindStatements, known_statements
from pgtrial.conduct.outcome import Outcome
from pgtrial.conduct.progress import Listener
from pgtrial.evidence.observe.sampler import Observation, OwnTime, Sampler
from pgtrial.evidence.observe.views import Counters
from pgtrial.loads.data.data import Data
from pgtrial.loads.load_makers import LoadMaker
from pgtrial.loads.load_run import Inbox
from pgtrial.loads.programs.rounds import Rounds
from pgtrial.loads.sql_files import SqlFiles
from pgtrial.loads.target import Target
from pgtrial.loads.turns import ALONE, Turn
from pgtrial.model.errors import TrialError, one_line
from pgtrial.model.records.interruptions import InterruptedTrial
from pgtrial.model.records.load_point import LoadPoint
from pgtrial.model.records.plan import PlannedTrial
from pgtrial.model.records.trial import JobSummary, LoadStatement, Probe
from pgtrial.model.records.where_it_ran import MachineShare
from pgtrial.model.study.load_section import LoadSection
from pgtrial.model.study.servers import Given
from pgtrial.servers.arm import Arm


@dataclass
class Course:
    """What a trial is to do, and what is gathered while it runs."""

    load: LoadSection
    """With the lengths of this trial."""
    planned: PlannedTrial
    point: LoadPoint
    data: Data
    script: Path | None
    """The file of a workload of the study's own, or the folder of a pack."""
    directory: Path
    listener: Listener
    maker: LoadMaker
    started: str
    """UTC, ISO 8601."""
    began: float = field(default_factory=time.monotonic)
    """The same instant by time.monotonic()."""
    turn: Turn = ALONE
    shared_server: bool = False
    """Whether all arms are sessions of one server, whose counters then belong to all together."""
    beside_script: Path | None = None
    """The file of a script of the study's own that runs beside a job."""
    pack: SqlFiles | None = None
    """The files of the workload, if it is a pack."""
    values: Mapping[str, Path] = field(default_factory=dict)
    """By variable the file of which each transaction draws a value."""
    statements: FindStatements | None = None
    """Finds the statements of the load; None: they are known already, or not asked for."""
    with_drawn_statistics: bool = False
    """Whether ANALYZE drew the planner's statistics for this trial, so that its plans may be others than before."""
    loads_begin: float | None = None
    """When all loads that alternate begin, by time.monotonic(); None: it runs by itself, or has not got there."""
    inbox: Inbox | None = None
    """Where the events of all loads that alternate arrive."""
    rounds: Rounds | None = None
    """Where client programs get their turns, if they are the load."""
    timings: dict[str, float] = field(default_factory=dict)
    outcome: Outcome = field(default_factory=Outcome)
    start_failures: list[str] = field(default_factory=list)
    """What was said at each attempt at which the server did not start."""
    reason: str | None = None
    notes: list[str] = field(default_factory=list)
    deltas: Counters = field(default_factory=dict)
    plans: dict[str, LoadStatement] = field(default_factory=dict)
    plan_nodes: dict[str, list[str]] = field(default_factory=dict)
    unplanned: bool = False
    """True if the load sends, or may send, further statements that have no plan here."""
    relations_before: Counters = field(default_factory=dict)
    relations: Counters = field(default_factory=dict)
    checkpoint_s: float | None = None
    observation: Observation | None = None
    round_trip_us: float | None = None
    not_permitted: list[str] = field(default_factory=list)
    server_said: list[str] = field(default_factory=list)
    log_read: int = 0
    """Up to which byte the server's log has been read, or is the lab's own start."""
    lost: str | None = None
    table_created_s: float | None = None
    quality: float | None = None
    job: JobSummary | None = None
    start_rate: float | None = None
    """Where a search for the capacity begins, 1/s; None: no capacity is known yet."""
    capacity: float | None = None
    probes: list[Probe] = field(default_factory=list)
    machines: list[MachineShare] = field(default_factory=list)

    def lose(self, error: psycopg.Error) -> None:
        """Note that the lab's own session broke during the load; the engine still reports what it measured."""
        self.lost = self.lost or sentence(error)

    def fail(self, reason: str) -> None:
        """Note why the trial failed; the first reason counts."""
        self.reason = self.reason or reason

    @contextmanager
    def failing(self) -> Iterator[None]:
        """Within it, what goes wrong with the trial alone fails it, and is not raised."""
        try:
            yield
        except (TrialError, psycopg.Error) as error:
            self.fail(sentence(error))

    def fail_with(self, reason: str) -> None:
        """Note a failure of the server's host, which explains the reason that was noted before."""
        before = (self.reason or "").removesuffix(".")
        self.reason = reason if before in reason else f"{before}; {reason}"

    @property
    def ended(self) -> str:
        """Now, UTC, by the clock as it was when the trial started: it may have been set since, and the machine may have
        slept, and neither is time that a trial took."""
        ended = datetime.fromisoformat(self.started) + timedelta(seconds=self._under_way_s)
        return ended.isoformat(timespec="milliseconds")

    @property
    def _under_way_s(self) -> float:
        return time.monotonic() - self.began

    def interrupted(self) -> InterruptedTrial:
        """The trial as it was when a person ended it."""
        tps = measured.tps if (measured := self.outcome.measured) else None
        trial = InterruptedTrial.model_validate(self.planned, from_attributes=True)
        return trial.model_copy(update={"under_way_s": round(self._under_way_s, 3), "tps": tps})

    def note(self, text: str | None) -> None:
        """Keep a sentence for the reader of the trial, once."""
        if text is not None and text not in self.notes:
            self.notes.append(text)


def sentence(error: Exception) -> str:
    """An error as one line; an error of the session names the server."""
    return f"the server did not answer: {one_line(error)}" if isinstance(error, psycopg.Error) else one_line(error)


class NotWatching:
    """In place of a sampler, of a study that is not observed."""

    def load_begins(self, engine: int | None) -> None:
        """Do nothing."""

    def measure_begins(self) -> None:
        """Do nothing."""


Watching = Sampler | NotWatching


@contextmanager
def observed(course: Course, arm: Arm, target: Target) -> Iterator[Watching]:
    """Sample server and host during the load; the observation is kept in the course, also after an error."""
    load = course.load
    if not load.observe or course.shared_server or load.kind.restarts_server(load):
        yield NotWatching()
        return
    known = known_statements(course.point, course.script) if isinstance(arm.setup, Given) else None
    sampler = Sampler(target.connect, arm.machine, arm.data_directory, alone=course.turn.of == 1, known=known)
    try:
        with sampler:
            yield sampler
    finally:
        observation = sampler.seen(_measured_s(course), _own_time(course))
        course.observation = observation
        if observation.cost:
            course.deltas["sampler"] = observation.cost
        for note in observation.notes:
            course.note(note)


def _own_time(course: Course) -> OwnTime | None:
    """When the load was active, if it alternated with others."""
    begin = course.loads_begin
    if begin is None:
        return None
    slices = [tick["slice"] for tick in course.outcome.ticks]
    return OwnTime(
        begin + course.turn.wall_s(course.load.phases_s[0]),
        [(begin + one["planned_begin_s"], begin + one["planned_end_s"]) for one in slices],
    )


def _measured_s(course: Course) -> float:
    """Length of the measured part: as planned, or of a load with an end of its own as measured."""
    if not course.load.ends_itself:
        return course.turn.wall_s(course.load.phases_s[1])
    measured = course.outcome.measured
    return measured.duration_s if measured else course.load.longest_s
