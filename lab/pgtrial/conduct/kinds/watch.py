"""The actions of the lab around a load: it starts the process that makes the load, and reads counters and reports
progress before, during and after it."""

from __future__ import annotations

from contextlib import AbstractContextManager, ExitStack

from pgtrial.conduct.course import Course
from pgtrial.conduct.start_load import start_engine
from pgtrial.loads.engine import EngineRun
from pgtrial.loads.events import Event
from pgtrial.loads.load_run import LoadRun
from pgtrial.loads.target import Target
from pgtrial.model.errors import NameTaken, TrialError
from pgtrial.servers.arm import Arm


class LoadWatch:
    """The actions of the lab before, during and after the load of a trial. The methods are called in this order:
    `prepare`, `begin`, `started`, `hear` for each event, `ended` and `end`.

    This base class is for loads that the engine makes while the lab does nothing else. Subclasses are for other loads.
    """

    restarts = 0
    """How often the server was restarted."""

    def prepare(self) -> None:
        """Reads what is needed about the data of the load while the server is still idle. Raises psycopg.Error."""

    def started(self, course: Course, arm: Arm, target: Target) -> AbstractContextManager[LoadRun]:
        """Starts the process that makes the load. Raises StudyError and TrialError."""
        return start_engine(course, target)

    def begin(self, load: ExitStack, target: Target) -> None:
        """Reads the counters that the load will change, and starts what runs beside the load, which ends when `load` is
        closed. Raises psycopg.Error and TrialError."""

    def hear(self, event: Event) -> bool:
        """Takes an event of the load, and reports it to the listener of the study if this kind of load has a report of
        its own. Returns true if the caller must not report the event as well."""
        return False

    def restart(self, run: EngineRun) -> None:
        """Restarts the server while the engine waits for it. Raises TrialError and ArmError."""

    def check_begun(self, run: LoadRun) -> None:
        """Raises StudyError if the engine did not begin for a reason that a repetition would not correct."""

    def ended(self, status: int, last_words: str) -> None:
        """Takes the exit status of the process that made the load, and the last line that it printed. Raises
        TrialError."""

    def reported(self, error: TrialError) -> TrialError:
        """Returns the error with which the trial fails when this error has ended its load. A kind of load may word it
        better."""
        return error

    def name_taken(self) -> NameTaken | None:
        """Returns an error if the load failed because the server has an object with a name that the load creates:
        undoing the load could drop that object. Returns None if the load did not fail for this reason."""
        return None

    def end(self) -> None:
        """Reads the counters that the load has changed. Raises psycopg.Error."""
