"""A trial that is a replay: what the engine has against the capture."""

from __future__ import annotations

from pgtrial.conduct.course import Course
from pgtrial.conduct.kinds.watch import LoadWatch
from pgtrial.loads.load_run import LoadRun
from pgtrial.model.errors import StudyError
from pgtrial.store.replay_files import capture_of

_TOO_MANY = "more than the server allows"
"""The words of the engine's message that refuses the number of connections."""


class ReplayWatch(LoadWatch):
    """The lab's part of a replay."""

    def __init__(self, course: Course) -> None:
        self._course = course

    def check_begun(self, run: LoadRun) -> None:
        """Raises StudyError if the engine refused the capture or the number of its sessions, which stays as it is."""
        if self._course.outcome.begun:
            return
        for words in (str(capture_of(self._course.load.workload[0])), _TOO_MANY):
            if (complaint := run.message_about(words)) is not None:
                raise StudyError(f"the engine refuses the replay: {complaint}")
