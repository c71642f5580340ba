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
from pgtrial.model.marks import in_toml
from pgtrial.model.records.interruptions import InterruptedTrial
from pgtrial.model.records.load_point import LoadPoint
from pgtrial.model.records.plan import PlannedTrial
from pgtrial.model.records.trial import JobSummary, LoadStatement, Probe
from pgtrial.model.records.where_it_ran import MachineShare
from pgtrial.model.study.load_section import LoadSection
from pgtrial.model.study.own_metrics import MetricSection
from pgtrial.model.study.servers import Given
from pgtrial.servers.arm import Arm


@dataclass
class Course:
    """A trial in progress: its plan, and what is gathered while it runs."""

    load: LoadSection
    """The load, with the lengths of this trial."""
    planned: PlannedTrial
    point: LoadPoint
    data: Data
    script: Path | None
    """The file of a workload of the study's own, or the folder of a pack."""
    directory: Path
    listener: Listener
    maker: LoadMaker
    started: str
    """The time at which the trial began, in UTC, ISO 8601."""
    began: float = field(default_factory=time.monotonic)
    """The time at which the trial began, by time.monotonic()."""
    turn: Turn = ALONE
    shared_server: bool = False
    """True if all arms are sessions of one server, whose counters then belong to all of them together."""
    beside_script: Path | None = None
    """The file of a script of the study's own that runs beside a job."""
    pack: SqlFiles | None = None
    """The files of the workload, if it is a pack."""
    values: Mapping[str, Path] = field(default_factory=dict)
    """The files from which each transaction draws the values of variables, by variable."""
    statements: FindStatements | None = None
    """A function that finds the statements of the load, to explain them after the load. It is None if the plans of
    earlier trials hold for this one, or if the study takes no plans."""
    with_drawn_statistics: bool = False
    """True if ANALYZE drew the planner's statistics for this trial, so that its plans may differ from earlier ones."""
    loads_begin: float | None = None
    """The time at which all loads that alternate begin, by time.monotonic(); None while unknown, and without others."""
    inbox: Inbox | None = None
    """The queue in which the events of all loads that alternate arrive."""
    rounds: Rounds | None = None
    """The rounds in which client programs take turns; None for any other load."""
    timings: dict[str, float] = field(default_factory=dict)
    outcome: Outcome = field(default_factory=Outcome)
    start_failures: list[str] = field(default_factory=list)
    """The error of each attempt at which the server did not start."""
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
    """The offset in the server's log, in bytes, up to which it has been read; the lab's own start counts as read."""
    lost: str | None = None
    table_created_s: float | None = None
    metrics: Mapping[str, MetricSection] = field(default_factory=dict)
    """The metrics of the study's own that SQL or programs find, by name."""
    own_metrics: dict[str, float] = field(default_factory=dict)
    """The values of the study's own metrics in this trial."""
    quality: float | None = None
    job: JobSummary | None = None
    start_rate: float | None = None
    """The rate at which a search for the capacity begins, 1/s; None if no capacity is known yet."""
    capacity: float | None = None
    probes: list[Probe] = field(default_factory=list)
    machines: list[MachineShare] = field(default_factory=list)

    def lose(self, error: psycopg.Error) -> None:
        """Records that the lab's own session broke during the load. The engine still reports its measurements."""
        self.lost = self.lost or sentence(error)

    def fail(self, reason: str) -> None:
        """Notes why the trial failed; the first reason counts."""
        self.reason = self.reason or reason

    @contextmanager
    def failing(self) -> Iterator[None]:
        """Returns a context manager in which an error that concerns only this trial makes the trial fail, and is not
        raised."""
        try:
            yield
        except (TrialError, psycopg.Error) as error:
            self.fail(sentence(error))

    def fail_with(self, reason: str) -> None:
        """Notes a failure of the server's host, which explains the reason that was noted before."""
        before = (self.reason or "").removesuffix(".")
        self.reason = reason if before in reason else f"{before}; {reason}"

    @property
    def ended(self) -> str:
        """The present time in UTC: the start of the trial plus the time since then by the monotonic clock.

        The wall clock may have been set since, and the machine may have slept: neither is time that a trial took.
        """
        ended = datetime.fromisoformat(self.started) + timedelta(seconds=self._under_way_s)
        return ended.isoformat(timespec="milliseconds")

    @property
    def _under_way_s(self) -> float:
        return time.monotonic() - self.began

    def interrupted(self) -> InterruptedTrial:
        """Returns the record of a trial that a user's signal interrupts now."""
        tps = measured.tps if (measured := self.outcome.measured) else None
        trial = InterruptedTrial.model_validate(self.planned, from_attributes=True)
        return trial.model_copy(update={"under_way_s": round(self._under_way_s, 3), "tps": tps})

    def note(self, text: str | None) -> None:
        """Keeps a sentence for the reader of the trial, unless it is there already. It is stored with the words of the
        study file."""
        if text is not None and (told := in_toml(text)) not in self.notes:
            self.notes.append(told)


def sentence(error: Exception) -> str:
    """Returns an error as one line; for an error of the session the line says that the server did not answer."""
    return f"the server did not answer: {one_line(error)}" if isinstance(error, psycopg.Error) else one_line(error)


class NotWatching:
    """Replaces the sampler in a study that is not observed, and does nothing."""

    def load_begins(self, engine: int | None) -> None:
        """Ignores the start of the load, since nothing is sampled."""

    def measure_begins(self) -> None:
        """Ignores the start of the measured part, since nothing is sampled."""


Watching = Sampler | NotWatching


@contextmanager
def observed(course: Course, arm: Arm, target: Target) -> Iterator[Watching]:
    """Samples server and host during the load; the observation is kept in the course, also after an error."""
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
    """Returns the slices in which the load was active; None if it did not alternate with others."""
    begin = course.loads_begin
    if begin is None:
        return None
    slices = [tick["slice"] for tick in course.outcome.ticks]
    return OwnTime(
        begin + course.turn.wall_s(course.load.phases_s[0]),
        [(begin + one["planned_begin_s"], begin + one["planned_end_s"]) for one in slices],
    )


def _measured_s(course: Course) -> float:
    """Returns the length of the measured part, seconds: as planned, or as measured for a load that ends by itself."""
    if not course.load.ends_itself:
        return course.turn.wall_s(course.load.phases_s[1])
    measured = course.outcome.measured
    return measured.duration_s if measured else course.load.longest_s
