"""A trial in progress: its plan, and everything that is collected while it runs. Also starts the sampler, which
observes server and host during the load."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

import psycopg

from pgtrial.conduct.progress import Listener
from pgtrial.conduct.trial.load_statements import FindStatements, known_statements
from pgtrial.conduct.trial.outcome import Outcome
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
class RunningTrial:
    """A trial in progress: its plan, and everything that is collected while it runs."""

    load: LoadSection
    """The load, with the lengths of this trial."""
    planned: PlannedTrial
    point: LoadPoint
    data: Data
    script: Path | None
    """The script file of the load if the study has its own, or the folder of a pack."""
    directory: Path
    listener: Listener
    maker: LoadMaker
    started: str
    """The wall-clock time at which the trial began, in UTC, in the format of ISO 8601."""
    began: float = field(default_factory=time.monotonic)
    """The time at which the trial began, by time.monotonic()."""
    turn: Turn = ALONE
    shared_server: bool = False
    """True if all arms are sessions of one server. The server's counters then count the load of all arms together."""
    beside_script: Path | None = None
    """The file of the study's own script that runs at the same time as a job."""
    pack: SqlFiles | None = None
    """The files of the workload, if it is a pack."""
    values: Mapping[str, Path] = field(default_factory=dict)
    """The files from which each transaction draws the values of its variables, by the variable's name."""
    statements: FindStatements | None = None
    """A function that returns the statements of the load, so that they can be explained after the load. It is None if
    the plans of earlier trials are valid for this one too, or if the study records no plans."""
    with_drawn_statistics: bool = False
    """True if ANALYZE drew the planner's statistics for this trial, so that its plans may differ from the plans of
    earlier trials."""
    loads_begin: float | None = None
    """The time at which all loads that alternate with this one begin, by time.monotonic(). It is None as long as it is
    not known, and if no loads alternate."""
    inbox: Inbox | None = None
    """The queue in which the events of all alternating loads arrive."""
    rounds: Rounds | None = None
    """The rounds in which client programs take turns; None for loads of other kinds."""
    timings: dict[str, float] = field(default_factory=dict)
    outcome: Outcome = field(default_factory=Outcome)
    start_failures: list[str] = field(default_factory=list)
    """The error messages of the attempts at which the server did not start."""
    reason: str | None = None
    notes: list[str] = field(default_factory=list)
    deltas: Counters = field(default_factory=dict)
    plans: dict[str, LoadStatement] = field(default_factory=dict)
    plan_nodes: dict[str, list[str]] = field(default_factory=dict)
    unplanned: bool = False
    """True if the load sends, or may send, statements whose plans are not in `plans`."""
    relations_before: Counters = field(default_factory=dict)
    relations: Counters = field(default_factory=dict)
    checkpoint_s: float | None = None
    observation: Observation | None = None
    round_trip_us: float | None = None
    not_permitted: list[str] = field(default_factory=list)
    server_log_tail: list[str] = field(default_factory=list)
    log_read: int = 0
    """The offset in bytes up to which the server's log has been read. The messages of the server's start are
    skipped."""
    lost: str | None = None
    table_created_s: float | None = None
    metrics: Mapping[str, MetricSection] = field(default_factory=dict)
    """The study's own metrics, whose values SQL or programs find out, by name."""
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
        """Records that the lab's own database session was lost during the load. The engine still reports its
        measurements."""
        self.lost = self.lost or sentence(error)

    def fail(self, reason: str) -> None:
        """Records why the trial has failed. If this is called several times, the first reason counts."""
        self.reason = self.reason or reason

    @contextmanager
    def failing(self) -> Iterator[None]:
        """Returns a context manager. A TrialError or psycopg.Error within the context makes the trial fail, and is not
        raised."""
        try:
            yield
        except (TrialError, psycopg.Error) as error:
            self.fail(sentence(error))

    def fail_with(self, reason: str) -> None:
        """Adds a failure of the server's host to the reason why the trial has failed, since the host's failure explains
        it."""
        before = (self.reason or "").removesuffix(".")
        self.reason = reason if before in reason else f"{before}; {reason}"

    @property
    def ended(self) -> str:
        """The present time in UTC, computed as the start of the trial plus the time since then by the monotonic clock.

        The wall clock itself is not used: it may have been set in the meantime, or the machine may have slept, and
        neither is time that the trial took.
        """
        ended = datetime.fromisoformat(self.started) + timedelta(seconds=self._under_way_s)
        return ended.isoformat(timespec="milliseconds")

    @property
    def _under_way_s(self) -> float:
        return time.monotonic() - self.began

    def interrupted(self) -> InterruptedTrial:
        """Returns the record of this trial for the case that the user interrupts it now."""
        tps = measured.tps if (measured := self.outcome.measured) else None
        trial = InterruptedTrial.model_validate(self.planned, from_attributes=True)
        return trial.model_copy(update={"under_way_s": round(self._under_way_s, 3), "tps": tps})

    def note(self, text: str | None) -> None:
        """Adds a note, a sentence for readers of the trial, unless the trial has it already. Keys in it are stored as
        the study file writes them."""
        if text is not None and (stored := in_toml(text)) not in self.notes:
            self.notes.append(stored)


def sentence(error: Exception) -> str:
    """Returns an error as one line of text. For a database error the line says that the server did not answer."""
    return f"the server did not answer: {one_line(error)}" if isinstance(error, psycopg.Error) else one_line(error)


class NotWatching:
    """Replaces the sampler in a study that is not observed, and does nothing."""

    def load_begins(self, engine: int | None) -> None:
        """Ignores the start of the load, since nothing is sampled."""

    def measure_begins(self) -> None:
        """Ignores the start of the measured part, since nothing is sampled."""


Watching = Sampler | NotWatching


@contextmanager
def observed(trial: RunningTrial, arm: Arm, target: Target) -> Iterator[Watching]:
    """Samples server and host during the load, within the context. Afterwards the observation is stored in `trial`,
    also if an error ended the load."""
    load = trial.load
    if not load.observe or trial.shared_server or load.kind.restarts_server(load):
        yield NotWatching()
        return
    known = known_statements(trial.point, trial.script) if isinstance(arm.setup, Given) else None
    sampler = Sampler(target.connect, arm.machine, arm.data_directory, alone=trial.turn.of == 1, known=known)
    try:
        with sampler:
            yield sampler
    finally:
        observation = sampler.seen(_measured_s(trial), _own_time(trial))
        trial.observation = observation
        if observation.cost:
            trial.deltas["sampler"] = observation.cost
        for note in observation.notes:
            trial.note(note)


def _own_time(trial: RunningTrial) -> OwnTime | None:
    """Returns the slices in which this load was active; None if it did not alternate with other loads."""
    begin = trial.loads_begin
    if begin is None:
        return None
    slices = [tick["slice"] for tick in trial.outcome.ticks]
    return OwnTime(
        begin + trial.turn.wall_s(trial.load.phases_s[0]),
        [(begin + one["planned_begin_s"], begin + one["planned_end_s"]) for one in slices],
    )


def _measured_s(trial: RunningTrial) -> float:
    """Returns the length of the measured part in seconds: as planned or, for a load that ends by itself, as
    measured."""
    if not trial.load.ends_itself:
        return trial.turn.wall_s(trial.load.phases_s[1])
    measured = trial.outcome.measured
    return measured.duration_s if measured else trial.load.longest_s
