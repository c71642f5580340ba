"""A load that is a job: SQL statements or a program that run once in each trial and end by themselves."""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any, TypeVar

from pgtrial.model import marks
from pgtrial.model.metrics import METRICS, TIME
from pgtrial.model.records.job import BesideLoad, JobLoad
from pgtrial.model.records.load_point import LoadPoint
from pgtrial.model.study.jobs import (
    JOB,
    NOT_FOR_JOBS,
    OF_THE_LOAD_BESIDE,
    JobSection,
    is_job,
    objections_to_job,
)
from pgtrial.model.study.kinds.kind import Asked, LoadKind, misplaced, sizes
from pgtrial.model.study.kinds.transactions import scripts_of_arms
from pgtrial.model.study.load_keys import LoadKeys
from pgtrial.model.study.servers import Given

_WITH_BESIDE = "p99"
"""The metric of a load that runs at the same time as a job. The study compares it if it declares no metrics."""

_NOT_FOR_JOBS = f"not for a job; write {', '.join(name for name, metric in METRICS.items() if metric.is_for_jobs)}"


OWN_JOBS = "of each arm"
"""The name that load points have in place of the job's name if each arm runs a job of its own."""


_Load = TypeVar("_Load", bound=LoadKeys)


class Job(LoadKind):
    """One run of a job in each trial. The study has a load point for each scale of the data, combined with each number
    of clients and each rate of a load that runs at the same time as the job."""

    stored = JobLoad
    why_no_turns = "a job has the machine to itself"
    why_no_fleet = "one session runs a job, so several machines cannot share it"
    why_no_instructions = "a job runs once and has no transactions"
    has_plans = False
    is_of_the_user = True
    has_planned_time = False
    has_own_limit = True

    def is_meant(self, load: LoadKeys) -> bool:
        return any(map(is_job, load.workload))

    def own_end(self, load: LoadKeys) -> JobSection:
        return load.job

    def objections(self, load: LoadKeys) -> Iterator[str]:
        yield from objections_to_job(load.workload, load.job)
        if not self.is_meant(load):
            return
        allowed = OF_THE_LOAD_BESIDE if load.job.beside is not None else ()
        yield from misplaced(load, {key: why for key, why in NOT_FOR_JOBS.items() if key not in allowed}, "a job")
        if load.job.beside is not None and not load.rate:
            beside = marks.short_key("load", "job.beside")
            yield f"{beside} is a load at a rate; {marks.set_key('load', 'rate')}, in transactions per second"

    def objection_to_servers(self, study: Asked) -> str | None:
        undo = study.load.job.undo
        for arm in study.arms:
            server = study.resolved(arm)
            if isinstance(server, Given):
                if undo is None:
                    return (
                        f"{marks.at_arm(arm)}a job changes the data, and a given server has no fresh copy of them for "
                        f'each trial; {marks.set_key("load.job", "undo")} to the SQL that undoes the job, or to "none" '
                        "if it leaves nothing behind"
                    )
            elif server.reset != "copy":
                return (
                    f'{marks.at_arm(arm)}reset = "{server.reset}" keeps what a job has done, and each trial must begin '
                    "without it; leave reset out"
                )
        if undo is not None and not study.has_given:
            undo_key = marks.key("load.job", "undo")
            return f"{undo_key} is for given servers, and here each trial has a fresh copy of the data; remove the key"
        return None

    def misfit(self, load: LoadKeys, metric: str) -> str | None:
        named = METRICS[metric]
        if named.kind == "capacity":
            return super().misfit(load, metric)
        is_of_beside = named.kind == "percentile" and load.job.beside is not None
        return None if named.is_for_jobs or is_of_beside else f"is {_NOT_FOR_JOBS}"

    def metrics(self, load: LoadKeys, declared: list[str]) -> list[str]:
        if declared:
            return list(declared)
        of_beside = [_WITH_BESIDE] if load.job.beside is not None else []
        if load.job.reads:
            return [*load.job.reads, *of_beside]
        return [TIME, *of_beside] if of_beside else []

    def usual_metric(self, load: LoadKeys) -> str:
        return TIME

    def is_paced(self, load: LoadKeys) -> bool:
        return True

    def points(self, study: Asked) -> list[LoadPoint]:
        load = study.load
        commands = {arm: keys.command for arm, keys in study.arms.items() if keys.command is not None}
        points = [_point(load, size, beside, commands) for size in sizes(load) for beside in _loads_beside(load)]
        if not (of_arms := scripts_of_arms(study.arms)):
            return points
        return [point.model_copy(update={"workload": OWN_JOBS, "of_arms": of_arms}) for point in points]

    def limited(self, load: _Load, limit_s: float) -> _Load:
        shorter = load.job.model_copy(update={"limit": min(load.job.limit, limit_s)})
        return load.model_copy(update={"job": shorter})

    def scripts_run_once(self, study: Asked) -> list[str]:
        return sorted({name for point in self.points(study) for name in point.script_names} & study.scripts.keys())

    def starts_programs(self, load: LoadKeys) -> bool:
        return load.job.command is not None


def _loads_beside(load: LoadKeys) -> list[BesideLoad | None]:
    """Returns the loads that run at the same time as the job, one for each load point; a list with None if the job runs
    alone."""
    if load.job.beside is None:
        return [None]
    script = PurePosixPath(load.job.beside).name
    return [
        BesideLoad(script=script, clients=clients, rate=rate, protocol=load.protocol)
        for clients, rate in itertools.product(load.clients, load.rate)
    ]


def _point(
    load: LoadKeys, size: Mapping[str, Any], beside: BesideLoad | None, commands: Mapping[str, str]
) -> LoadPoint:
    asked, file = load.job, load.workload[0].removeprefix(JOB)
    all_commands = [*commands.values()] or [asked.command] if asked.command is not None else []
    names = {PurePosixPath(shlex.split(command)[0]).name for command in all_commands} or {PurePosixPath(file).name}
    return LoadPoint(
        workload=names.pop() if len(names) == 1 else OWN_JOBS,
        **size,
        clients=1 + (beside.clients if beside is not None else 0),
        protocol="simple",
        job=JobLoad(limit_s=asked.limit, command=asked.command, commands=dict(commands), beside=beside),
    )
