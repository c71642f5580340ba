"""The results of a trial's steps. Each step fills a result of its own and returns it. A step that fails returns what it
has found up to then, and why it failed. After that nothing changes the result; the record of the trial is made from the
results of all steps."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import psycopg

from pgtrial.conduct.trial.outcome import Outcome
from pgtrial.conduct.trial.own_metrics import OwnValue
from pgtrial.evidence.observe.sampler import Observation
from pgtrial.evidence.observe.views import Counters
from pgtrial.loads.target import Target
from pgtrial.machines.machine import HostTrouble
from pgtrial.model.errors import ArmError, TrialError, one_line
from pgtrial.model.marks import in_toml
from pgtrial.model.records.trial import JobSummary, LoadStatement, Probe
from pgtrial.model.records.where_it_ran import MachineShare


def sentence(error: Exception) -> str:
    """Returns an error as one line of text. For a database error the line says that the server did not answer."""
    return f"the server did not answer: {one_line(error)}" if isinstance(error, psycopg.Error) else one_line(error)


@dataclass
class StepResult:
    """What every step of a trial finds."""

    failed: str | None = None
    """The reason why the trial has failed in this step, as a sentence; None if it has not failed."""
    seconds: dict[str, float] = field(default_factory=dict)
    """The wall time in seconds of each phase of the step, by the names of Trial.phases_s."""
    notes: list[str] = field(default_factory=list)
    """Sentences for readers of the trial."""

    def fail(self, reason: str) -> None:
        """Records why the trial has failed. If this is called several times, the first reason counts."""
        self.failed = self.failed or reason

    @contextmanager
    def failing(self) -> Iterator[None]:
        """Returns a context manager. A TrialError or psycopg.Error within the context makes the trial fail, and is not
        raised."""
        try:
            yield
        except (TrialError, psycopg.Error) as error:
            self.fail(sentence(error))

    def note(self, text: str | None) -> None:
        """Adds a note, unless the step has it already. Keys in it are stored as the study file writes them."""
        if text is not None and (stored := in_toml(text)) not in self.notes:
            self.notes.append(stored)


@dataclass
class Started(StepResult):
    """What the start of the server finds."""

    target: Target | None = None
    """The address of the server; None if it did not start."""
    start_failures: list[str] = field(default_factory=list)
    """The error messages of the attempts at which the server did not start."""


@dataclass
class Ready(StepResult):
    """What is found while the server is prepared for the load."""

    not_permitted: list[str] = field(default_factory=list)
    """Phrases on what the role may not do on a given server."""
    relations_before: Counters = field(default_factory=dict)
    """The sizes of the relations before the load."""
    table_created_s: float | None = None
    """The time in seconds that it took to create the table of the tasks; None for other loads."""
    round_trip_us: float | None = None
    other_clients: int = 0
    """The number of clients of the database that do not belong to the load."""


@dataclass
class ServerResult(StepResult):
    """What steps find that read the server while a load runs or when it has ended."""

    lost: str | None = None
    """The reason why the lab's own database session was lost; None if it was not. The engine still reports its
    measurements."""
    deltas: Counters = field(default_factory=dict)
    """How the server's counters have changed over the measured part, and the cost of observing the server."""
    own_metrics: dict[str, float] = field(default_factory=dict)
    """The values of the study's own metrics, by name."""

    def take(self, metric: OwnValue) -> None:
        """Adds the value of one of the study's own metrics, or the note on why it is not known."""
        self.note(metric.note)
        if metric.value is not None:
            self.own_metrics[metric.name] = metric.value


@dataclass
class Loaded(ServerResult):
    """What is found while the load runs."""

    outcome: Outcome = field(default_factory=Outcome)
    ended: bool = False
    """True if the load has ended by itself, so that the server can be asked for the results."""
    observation: Observation | None = None
    machines: list[MachineShare] = field(default_factory=list)
    capacity: float | None = None
    """The highest rate, in transactions per second, that keeps the promise of a search for the capacity. None if no
    probe has kept it, if the search did not end, and for other loads."""
    probes: list[Probe] = field(default_factory=list)


@dataclass
class Collected(ServerResult):
    """What is read from the server after the load."""

    checkpoint_s: float | None = None
    not_permitted: list[str] = field(default_factory=list)
    """Phrases on what the role may not do on a given server."""
    relations: Counters = field(default_factory=dict)
    """The sizes of the relations after the load."""
    plans: dict[str, LoadStatement] = field(default_factory=dict)
    plan_nodes: dict[str, list[str]] = field(default_factory=dict)
    unplanned: bool = False
    """True if the load sends, or may send, statements whose plans are not in `plans`."""
    job: JobSummary | None = None
    quality: float | None = None


@dataclass
class Stopped(StepResult):
    """What is found while the server is stopped."""

    host_failed: str | None = None
    """A failure of the server's host, or of the undo of a job; None if there was none."""
    log_tail: list[str] = field(default_factory=list)
    """The last lines of the server's log."""
    must_stop: ArmError | HostTrouble | None = None
    """An error that stops the study after this trial is stored; None if the study can continue."""


@dataclass(frozen=True)
class TrialResult:
    """What all steps of a trial have found so far."""

    started: Started
    ready: Ready
    load: Loaded
    collected: Collected
    stopped: Stopped

    @property
    def reason(self) -> str | None:
        """The reason why the trial has failed, as a sentence; None if it has not failed.

        A failure of the server's host is added to the reason, since it explains the failure of the load.
        """
        reason = self.load_failed or self.stopped.failed
        host = self.started.failed or self.stopped.host_failed
        if host is None:
            return reason
        before = (reason or "").removesuffix(".")
        return host if before in host else f"{before}; {host}"

    @property
    def load_failed(self) -> str | None:
        """The first reason why the trial has failed while its server was running; None if there was none."""
        return self.ready.failed or self.load.failed or self.collected.failed

    @property
    def lost(self) -> str | None:
        """The reason why the lab's own database session was lost; None if it was not."""
        return self.load.lost or self.collected.lost

    @property
    def notes(self) -> list[str]:
        """The notes of all steps, in the order of time."""
        return [note for step in self._steps for note in step.notes]

    @property
    def seconds(self) -> dict[str, float]:
        """The wall time in seconds of each phase of the trial, in the order of time."""
        total: dict[str, float] = {}
        for step in self._steps:
            for phase, seconds in step.seconds.items():
                total[phase] = total.get(phase, 0.0) + seconds
        return total

    @property
    def deltas(self) -> dict[str, dict[str, float]]:
        """How the server's counters have changed over the measured part, and the cost of observing the server."""
        return self.load.deltas | self.collected.deltas

    @property
    def own_metrics(self) -> dict[str, float]:
        """The values of the study's own metrics, by name."""
        return self.load.own_metrics | self.collected.own_metrics

    @property
    def _steps(self) -> tuple[StepResult, ...]:
        return (self.started, self.ready, self.load, self.collected, self.stopped)
