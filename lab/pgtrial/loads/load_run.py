"""The interface of a running load of any kind: its methods and events, and the file to which its events are copied."""

from __future__ import annotations

import queue
from abc import ABC, abstractmethod
from pathlib import Path

from pgtrial.loads.events import Done
from pgtrial.model.errors import StoreError
from pgtrial.model.records.where_it_ran import MachineShare

Inbox = queue.SimpleQueue[tuple["LoadRun", str | None]]
"""A queue of event lines in the order in which they arrive, each with its load. None in place of a line marks the end
of a load's events."""


class LoadRun(ABC):
    """A load, from its start to its end. Its events arrive in its inbox, a queue of event lines."""

    def __init__(self, events_file: Path, inbox: Inbox | None) -> None:
        """Sets up the load.

        `events_file` receives a copy of every event. Loads whose events are read together share an `inbox`.
        """
        self._events_file = events_file
        self.inbox: Inbox = inbox or queue.SimpleQueue()
        self.trouble: str | None = None
        """The reason why the load failed, in one sentence, if its events do not contain the reason; None otherwise."""
        self.notes: list[str] = []
        """Notes for the report that are stored with the trial, one sentence each."""
        self.copy_error: StoreError | None = None
        """The error because of which not all events were copied to `events_file`; None if all were copied."""

    @property
    def maker(self) -> str:
        """The name of the program that makes the load, as the subject of sentences about its end."""
        return "the engine"

    @property
    @abstractmethod
    def pid(self) -> int | None:
        """The process id of the program that makes the load; None if several programs make it."""

    @property
    def notice_s(self) -> float:
        """The lead time in seconds: the lab must call `begin_at` at least this many seconds before the start time."""
        return 0.0

    @abstractmethod
    def begin_at(self, at: float) -> None:
        """Sends the start time, a value of time.monotonic(), to a load that waits for it."""

    @abstractmethod
    def interrupt(self) -> None:
        """Asks the program that makes the load to stop. It still reports what it has measured."""

    @abstractmethod
    def kill(self) -> None:
        """Kills the program that makes the load."""

    @abstractmethod
    def finish(self) -> int:
        """Waits until the program that makes the load has ended. Returns its exit status, or the negative number of the
        signal that killed it."""

    def last_words(self) -> str:
        """Returns why the load ended, in one sentence; "" if nothing is known."""
        return ""

    def message_about(self, name: str) -> str | None:
        """Returns the first of the program's last messages that contains `name`; None if no message contains it."""
        return None

    def machines(self, done: Done | None) -> list[MachineShare]:
        """Returns a record for each machine of a fleet; [] if this machine made the load alone. `done` is the load's
        last event, if it arrived."""
        return []
