"""Opens and closes the lab's own sessions on the server of a trial."""

from __future__ import annotations

from contextlib import ExitStack

from pgtrial.conduct.trial.settle import Checkpoint
from pgtrial.loads.target import Session, Target


class LabSessions:
    """The sessions that the lab itself has on the server of a trial: one that reads its counters, and one for the
    checkpoint."""

    def __init__(self, target: Target, stack: ExitStack) -> None:
        """Opens the sessions, which `stack` closes. Raises psycopg.Error."""
        self.target = target
        self._stack = stack
        self.reader: Session = stack.enter_context(target.connect())
        self.checkpoint = stack.enter_context(Checkpoint(target))

    def close(self) -> None:
        """Closes the sessions before the server is restarted: they must not take memory of the server, and would be
        lost."""
        self.checkpoint.close()
        self.reader.close()

    def reopen(self) -> None:
        """Opens the session that reads, after a restart of the server. Raises psycopg.Error."""
        self.reader = self._stack.enter_context(self.target.connect())
