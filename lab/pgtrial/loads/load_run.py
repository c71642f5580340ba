"""A load that is under way, whoever makes it: what its reader needs of it, and the copy of its events."""

from __future__ import annotations

import queue
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

from pgtrial.model.errors import StoreError
from pgtrial.model.records.where_it_ran import MachineShare

Event = dict[str, Any]
Inbox = queue.SimpleQueue[tuple["LoadRun", str | None]]
"""Lines of events as they arrive, each with its load; None: the end of its events."""


class LoadRun(ABC):
    """A load from its start to its end. Its events arrive in its inbox."""

    def __init__(self, events_file: Path, inbox: Inbox | None) -> None:
        """`events_file` receives a copy of every event; loads whose events are read together share an `inbox`."""
        self._events_file = events_file
        self.inbox: Inbox = inbox or queue.SimpleQueue()
        self.trouble: str | None = None
        """What broke the load, one sentence, where that is not in its events; None if nothing did."""
        self.notes: list[str] = []
        """What a reader of its trial should know, a sentence each."""
        self.copy_error: StoreError | None = None
        """Why the copy of the events could not be written."""

    @property
    def maker(self) -> str:
        """What makes the load, for sentences about its end."""
        return "the engine"

    @property
    @abstractmethod
    def pid(self) -> int | None:
        """Process id of what makes the load; None where there are several."""

    @property
    def notice_s(self) -> float:
        """How long before it the load must get the instant at which it begins."""
        return 0.0

    @abstractmethod
    def begin_at(self, at: float) -> None:
        """Give a load that waits for it the instant at which it begins, a time of time.monotonic()."""

    @abstractmethod
    def interrupt(self) -> None:
        """Ask the load to stop; it still reports what it measured."""

    @abstractmethod
    def kill(self) -> None:
        """End it by force."""

    @abstractmethod
    def finish(self) -> int:
        """Wait for the end of what makes the load; its exit status, negative for a signal."""

    def last_words(self) -> str:
        """Why it ended, in one sentence."""
        return ""

    def message_about(self, name: str) -> str | None:
        """The first of its last messages that contains `name`; None if there is none."""
        return None

    def machines(self, done: Event | None) -> list[MachineShare]:
        """What each machine of a fleet did of it; [] where it was made here alone. `done` is the last event."""
        return []
