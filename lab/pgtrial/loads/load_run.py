"""A load that runs, of whichever kind: what its readers need of it, and the copy of its events."""

from __future__ import annotations

import queue
from abc import ABC, abstractmethod
from pathlib import Path

from pgtrial.loads.events import Done
from pgtrial.model.errors import StoreError
from pgtrial.model.records.where_it_ran import MachineShare

Inbox = queue.SimpleQueue[tuple["LoadRun", str | None]]
"""Lines of events as they arrive, each with its load; None stands for the end of a load's events."""


class LoadRun(ABC):
    """A load from its start to its end. Its events arrive in its inbox."""

    def __init__(self, events_file: Path, inbox: Inbox | None) -> None:
        """Sets up the load.

        `events_file` receives a copy of every event. Loads whose events are read together share an `inbox`.
        """
        self._events_file = events_file
        self.inbox: Inbox = inbox or queue.SimpleQueue()
        self.trouble: str | None = None
        """The cause that broke the load, one sentence, if its events do not have it; None if nothing did."""
        self.notes: list[str] = []
        """Notes for the reader of its trial, a sentence each."""
        self.copy_error: StoreError | None = None
        """The error with which the copy of the events could not be written; None if there was none."""

    @property
    def maker(self) -> str:
        """The name of the program that makes the load, for sentences about its end."""
        return "the engine"

    @property
    @abstractmethod
    def pid(self) -> int | None:
        """The process id of the program that makes the load; None if there are several."""

    @property
    def notice_s(self) -> float:
        """How long before its start the load must get the instant of the start, seconds."""
        return 0.0

    @abstractmethod
    def begin_at(self, at: float) -> None:
        """Gives a load that waits for it the instant of its start, a time of time.monotonic()."""

    @abstractmethod
    def interrupt(self) -> None:
        """Asks the load to stop; it still reports what it measured."""

    @abstractmethod
    def kill(self) -> None:
        """Ends the load by force."""

    @abstractmethod
    def finish(self) -> int:
        """Waits for the end of the program that makes the load. Returns its exit status, negative for a signal."""

    def last_words(self) -> str:
        """Returns why the load ended, in one sentence."""
        return ""

    def message_about(self, name: str) -> str | None:
        """Returns the first of its last messages that contains `name`; None if there is none."""
        return None

    def machines(self, done: Done | None) -> list[MachineShare]:
        """Returns what each machine of a fleet did; [] if the load was made here alone. `done` is the last event."""
        return []
