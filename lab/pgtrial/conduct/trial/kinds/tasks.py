"""Reads, in a trial of tasks, how long it took to create the tasks' table."""

from __future__ import annotations

from pgtrial.conduct.trial.kinds.watch import LoadWatch
from pgtrial.conduct.trial.order import TrialOrder
from pgtrial.loads.data.task_table import creation_s
from pgtrial.loads.target import Session


class TasksWatch(LoadWatch):
    """The lab's work in a trial of tasks: it reads how long it took to create the table of the tasks."""

    def __init__(self, order: TrialOrder, session: Session) -> None:
        super().__init__(order)
        self._session = session

    def prepare(self) -> float | None:
        return creation_s(self._session)
