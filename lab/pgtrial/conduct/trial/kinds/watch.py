"""Observes the load of a trial before, during and after its run: starts the process that makes the load, reads the
server's counters, and reports progress."""

from __future__ import annotations

from contextlib import AbstractContextManager, ExitStack

from pgtrial.conduct.trial.order import TrialOrder
from pgtrial.conduct.trial.outcome import Outcome
from pgtrial.conduct.trial.results import ServerResult
from pgtrial.conduct.trial.start_load import start_engine
from pgtrial.loads.engine import EngineRun
from pgtrial.loads.events import Error, Event
from pgtrial.loads.load_run import LoadRun
from pgtrial.loads.target import Target
from pgtrial.model.errors import NameTaken, TrialError
from pgtrial.model.records.trial import JobSummary


class LoadWatch:
    """The lab's work before, during and after the load of a trial. The methods are called in this order: `prepare`,
    `begin`, `started`, `on_event` for each event, `ended` and `end`.

    This base class is for loads of transactions that the engine makes, for which the lab has no further work.
    Subclasses are for other kinds of loads.
    """

    restarts = 0
    """The number of times that the server was restarted."""

    def __init__(self, order: TrialOrder) -> None:
        self._order = order

    def prepare(self) -> float | None:
        """Returns how long it took to create the table of the load, in seconds; None for a kind of load that does not
        measure this. The server is still idle. Raises psycopg.Error."""
        return None

    def started(self, target: Target) -> AbstractContextManager[LoadRun]:
        """Starts the process that makes the load. Raises StudyError and TrialError."""
        return start_engine(self._order, target)

    def begin(self, load: ExitStack, target: Target) -> None:
        """Reads the counters that the load will change, and starts everything that runs at the same time as the load,
        such as a second load. Everything that is started here ends when `load` is closed. Raises psycopg.Error and
        TrialError."""

    def on_event(self, event: Event) -> bool:
        """Handles an event of the load. If this kind of load has reports of its own, reports the event to the listener
        of the study. Returns true if the caller must not report the event as well."""
        return False

    def restart(self, run: EngineRun) -> None:
        """Restarts the server while the engine waits for it. Raises TrialError and ArmError."""

    def check_begun(self, run: LoadRun) -> None:
        """Is called if the engine did not begin the load. Raises StudyError if the reason would also make a repetition
        fail."""

    def ended(self, outcome: Outcome, failed: str | None, status: int, last_words: str) -> ServerResult:
        """Returns what is found when the process that made the load has ended: whether the trial has failed, and the
        metrics that the process has printed. The arguments are the outcome of the load, the reason why it failed or
        None, the exit status of the process, and the last line that it printed. Raises TrialError."""
        return ServerResult(failed)

    def reported(self, error: TrialError) -> TrialError:
        """Returns the error with which the trial fails after `error` has ended its load. A kind of load can replace it
        by an error with a better message."""
        return error

    def name_taken(self, reason: str | None, refused: Error | None) -> NameTaken | None:
        """Returns a NameTaken error if the load failed because the server already had an object with a name that the
        load creates. The load must not be undone then, since that could drop somebody else's object. Returns None if
        the load did not fail for this reason.

        `reason` is the reason why the trial has failed, and `refused` the event of the first statement that the server
        has refused.
        """
        return None

    def end(self) -> JobSummary | None:
        """Reads the counters that the load has changed. Returns the effects of a job on its server, and None for other
        kinds of load. Raises psycopg.Error."""
        return None
