"""Reads, in a trial of tasks, how long it took to create the tasks' table."""

from __future__ import annotations

from pgtrial.conduct.trial.kinds.watch import LoadWatch
from pgtrial.conduct.trial.running_trial import RunningTrial
from pgtrial.loads.data.task_table import creation_s
from pgtrial.loads.target import Session


class TasksWatch(LoadWatch):
    """The lab's work in a trial of tasks: it records how long it took to create the table of the tasks."""

    def __init__(self, trial: RunningTrial, session: Session) -> None:
        self._trial, self._session = trial, session

    def prepare(self) -> None:
        self._trial.table_created_s = creation_s(self._session)
