"""Reads the log of a trial's server, from the moment at which the server has started."""

from __future__ import annotations

from pgtrial.conduct.trial.order import TrialOrder
from pgtrial.evidence.observe.server_log import last_lines


class ServerLog:
    """The log of a trial's server. Messages of the server's start and stop are skipped."""

    def __init__(self, order: TrialOrder) -> None:
        self._arm = order.arm
        self.file = order.log
        """The file on this machine that receives the log."""
        self.tail: list[str] = []
        """The last lines that the server has logged in the trial, as far as they were read."""
        self._read = 0
        """The offset in bytes up to which the log has been read."""

    def skip(self) -> None:
        """Skips all that is in the log now."""
        self._read = self.file.stat().st_size

    def fetch(self) -> None:
        """Copies the log to this machine, if the server does not write to the file itself. Raises TrialError."""
        self._arm.fetch_log(self.file)

    def read(self) -> None:
        """Reads what the server has logged since `skip`."""
        self.tail += last_lines(self.file, self._read)
