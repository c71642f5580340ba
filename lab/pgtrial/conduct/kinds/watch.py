"""The lab's part of a load while it runs: which process makes it, and what the lab does beside it."""

from __future__ import annotations

from contextlib import AbstractContextManager, ExitStack

from pgtrial.conduct.course import Course
from pgtrial.conduct.start_load import start_engine
from pgtrial.loads.engine import EngineRun
from pgtrial.loads.load_run import Event, LoadRun
from pgtrial.loads.target import Target
from pgtrial.servers.arm import Arm


class LoadWatch:
    """The steps of a load: `prepare`, `begin`, `started`, `hear` for each event, `ended` and `end`, in this order.

    Most loads are made by the engine, and the lab does nothing beside them.
    """

    restarts = 0
    """How often the server was restarted."""

    def prepare(self) -> None:
        """Reads what the idle server shows of the load's data. Raises psycopg.Error."""

    def started(self, course: Course, arm: Arm, target: Target) -> AbstractContextManager[LoadRun]:
        """Starts the process that makes the load. Raises StudyError and TrialError."""
        return start_engine(course, target)

    def begin(self, load: ExitStack, target: Target) -> None:
        """Reads what the load will change; `load` ends what goes on beside it. Raises psycopg.Error and TrialError."""

    def hear(self, event: Event) -> bool:
        """Tells the listener of an event. Returns True if nothing else is to be told of it."""
        return False

    def restart(self, run: EngineRun) -> None:
        """Restarts the server, for which the engine waits. Raises TrialError and ArmError."""

    def check_begun(self, run: LoadRun) -> None:
        """Raises StudyError if the engine did not begin for a reason that a repetition would not correct."""

    def ended(self, status: int, last_words: str) -> None:
        """Takes the status and the last words with which the load ended. Raises TrialError."""

    def end(self) -> None:
        """Reads what the load has changed. Raises psycopg.Error."""
