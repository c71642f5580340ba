"""Describes the tasks of an application (the workload app-tasks) in plans and reports. A task is a transaction that
first waits for a connection of the application's pool."""

from __future__ import annotations

from pgtrial.model.records.plan import Plan
from pgtrial.model.study.spec import StudySpec
from pgtrial.model.units import format_duration
from pgtrial.report.kinds.kind import KindWords


class TasksWords(KindWords):
    """Describes trials that run all tasks of an application."""

    def trial(self, spec: StudySpec, plan: Plan) -> str:
        tasks = spec.load.tasks
        lifetime = f", connections replaced after {format_duration(tasks.pool_lifetime)}" if tasks.pool_lifetime else ""
        return (
            f"one run of all tasks to their end, no warm-up; arrival {tasks.arrival}, a task fails that has no "
            f"connection after {format_duration(tasks.pool_timeout)}{lifetime}"
        )

    def planned_trial(self, spec: StudySpec, plan: Plan) -> str:
        return "of all tasks to their end"
