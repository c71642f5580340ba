"""Synthetic studies on tasks: what became of each trial's tasks is given, without a server."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from pgtrial.model.records.facts import Audit
from pgtrial.model.records.load_point import LoadPoint
from pgtrial.model.records.plan import Plan, PlannedTrial
from pgtrial.model.records.results import StudyResult
from pgtrial.model.records.tasks import TaskLoad
from pgtrial.model.records.trial import TaskSummary, TaskTimes, Trial
from tests.verdict.studies import make_plan, make_trial, verdict_of

PLANNED = 900
POINT = LoadPoint(
    workload="app-tasks",
    scale=1,
    clients=60,
    protocol="extended",
    tasks=TaskLoad(apps=3, tasks=300, arrival="at-once", pool=20, pool_timeout_s=15, threads_in_table=10, rows=1000),
)
BLOCKS = 18


@dataclass(frozen=True)
class Tasks:
    """The outcome of the tasks of a trial: the median response time, the number of failed tasks and how long those
    waited, and the number of completed tasks that took longer than 5 s.
    """

    median_s: float = 1.0
    failed: int = 0
    waited_s: float = 15.0
    slow: int = 0


Draw = Callable[[np.random.Generator], Tasks | None]


def summary(tasks: Tasks) -> TaskSummary:
    """Returns the summary that the engine would print of these tasks."""
    done = PLANNED - tasks.failed
    us = 1e6 * tasks.median_s
    times = TaskTimes(mean=1.1 * us, min=0.2 * us, max=5 * us, median=us, p95=3 * us)
    return TaskSummary(
        planned=PLANNED,
        completed=done,
        failed=tasks.failed,
        failures={"pool-timeout": tasks.failed} if tasks.failed else {},
        unfinished=0,
        response_us=times if done else None,
        queue_us=times if done else None,
        service_us=times if done else None,
        timeout_waited_us=None,
        failed_after_us=1e6 * tasks.waited_s if tasks.failed else None,
        under_5_s=max(0, done - tasks.slow),
        classes={"up_to_0.1_s": 0, "up_to_1_s": done // 2, "up_to_10_s": done - done // 2, "longer": 0},
    )


def run_tasks(blocks: int = BLOCKS, *, seed: int = 5, **arms: Draw) -> tuple[Plan, list[Trial]]:
    """Returns the plan and the trials of a study of these arms, of which the first is the baseline. `Draw` functions
    give each trial's tasks; a trial without tasks has failed.
    """
    plan = make_plan(tuple(arms), blocks=blocks, points=[POINT], margin=0.05, duration_s=0.0, seed=seed)
    return plan, trials_of(plan, arms, seed)


def trials_of(plan: Plan, arms: Mapping[str, Draw], seed: int = 5) -> list[Trial]:
    """Returns a trial for each planned one, with the tasks that the arm's function draws."""
    rng = np.random.default_rng(seed)

    def trial(planned: PlannedTrial) -> Trial:
        tasks = arms[planned.arm](rng)
        made = make_trial(plan, planned, None if tasks is None else 100.0)
        if tasks is None or made.measured is None:
            return made
        told = summary(tasks)
        phase = made.measured.model_copy(
            update={"duration_s": 9.0, "transactions": told.completed, "failures": told.failures}
        )
        return made.model_copy(update={"tasks": told, "measured": phase})

    return [trial(planned) for planned in plan.trials]


def analysed(blocks: int = BLOCKS, *, audit: Audit | None = None, seed: int = 5, **arms: Draw) -> StudyResult:
    """Returns the result of a study with these arms."""
    plan, trials = run_tasks(blocks, seed=seed, **arms)
    return verdict_of(plan, trials, audit)


def noisy(median_s: float, **more: int) -> Draw:
    """Trials whose median is near this one."""
    return lambda rng: Tasks(median_s=median_s * float(np.exp(0.01 * rng.standard_normal())), **more)
