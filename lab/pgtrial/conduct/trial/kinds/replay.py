"""Finds out, in a trial that replays a capture (recorded sessions of clients), why the engine refused the capture."""

from __future__ import annotations

from pgtrial.conduct.trial.kinds.watch import LoadWatch
from pgtrial.loads.load_run import LoadRun
from pgtrial.model.errors import StudyError
from pgtrial.store.replay_files import capture_of

_TOO_MANY = "more than the server allows"
"""A part of the message with which the engine refuses a capture that has more sessions than the server permits
connections."""


class ReplayWatch(LoadWatch):
    """The lab's work in a trial that replays a capture: if the engine refused the capture, it reports why."""

    def check_begun(self, run: LoadRun) -> None:
        """Raises StudyError if the engine refused the capture, or its number of sessions. Repeating the trial would not
        help, since both stay the same."""
        for words in (str(capture_of(self._order.load.workload[0])), _TOO_MANY):
            if (complaint := run.message_about(words)) is not None:
                raise StudyError(f"the engine refuses the replay: {complaint}")
