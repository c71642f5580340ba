"""The load of a study that is app-tasks: all tasks run to their end, on connection pools of limited size."""

from __future__ import annotations

from collections.abc import Iterator

from pgtrial.model import marks
from pgtrial.model.records.load_point import LoadPoint
from pgtrial.model.records.tasks import TaskLoad
from pgtrial.model.study.kinds.kind import Asked, LoadKind, misplaced
from pgtrial.model.study.load_keys import LoadKeys
from pgtrial.model.study.tasks import APP_TASKS, NOT_FOR_TASKS, TasksSection


class Tasks(LoadKind):
    """One run of all tasks in each trial. The study has a single load point."""

    stored = TaskLoad
    why_no_turns = "tasks run to their end"
    why_no_metrics = f"are not for the workload {APP_TASKS}, which has criteria of its own; remove it"
    has_price = False
    has_planned_time = False

    def is_meant(self, load: LoadKeys) -> bool:
        return APP_TASKS in load.workload

    def own_end(self, load: LoadKeys) -> TasksSection:
        return load.tasks

    def objections(self, load: LoadKeys) -> Iterator[str]:
        if self.is_meant(load):
            if len(load.workload) > 1:
                yield (
                    f"{APP_TASKS} is judged by the times of its tasks, and other workloads are not; give it a study of "
                    "its own"
                )
            yield from misplaced(load, NOT_FOR_TASKS, APP_TASKS)
        elif load.tasks != TasksSection():
            tasks = marks.short_key("load", "tasks")
            yield f"{tasks} is for the workload {APP_TASKS}; set this workload, or remove {tasks}"

    def points(self, study: Asked) -> list[LoadPoint]:
        asked = study.load.tasks
        tasks = TaskLoad(
            pool_timeout_s=asked.pool_timeout, **asked.model_dump(exclude={"pool_timeout", "pool_lifetime"})
        )
        point = LoadPoint(
            workload=APP_TASKS, scale=1, clients=asked.connections, protocol=study.load.protocol, tasks=tasks
        )
        return [point]

    def has_family(self, load: LoadKeys) -> bool:
        return True
