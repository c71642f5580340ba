"""The load points of a study: the crossing of what its [load] section lists. Pure functions."""

from __future__ import annotations

import itertools
from pathlib import PurePosixPath
from typing import Any

from pgtrial.model.records.study import LoadPoint
from pgtrial.model.records.tasks import TaskLoad
from pgtrial.model.study.load_section import LoadSection
from pgtrial.model.study.spec import StudySpec
from pgtrial.model.study.sysbench import is_sysbench
from pgtrial.model.study.tasks import APP_TASKS


def load_points(spec: StudySpec) -> list[LoadPoint]:
    """The crossing of workloads, scales, clients and rates, in the order of the study file.

    Tests of sysbench are crossed with clients and rates only: their tables have one size in a study. Tasks are one
    load point.
    """
    load = spec.load
    if load.runs_tasks:
        return [_tasks(load)]
    rates: list[float | None] = [*load.rate] or [None]
    return [
        LoadPoint(**data, clients=clients, protocol=load.protocol, rate=rate)
        for workload in load.workload
        for data in _data(load, workload)
        for clients, rate in itertools.product(load.clients, rates)
    ]


def _tasks(load: LoadSection) -> LoadPoint:
    asked = load.tasks
    return LoadPoint(
        workload=APP_TASKS,
        scale=1,
        clients=asked.connections,
        protocol=load.protocol,
        tasks=TaskLoad(
            apps=asked.apps,
            tasks=asked.tasks,
            arrival=asked.arrival,
            pool=asked.pool,
            pool_timeout_s=asked.pool_timeout,
            threads_in_table=asked.threads_in_table,
            rows=asked.rows,
        ),
    )


def _data(load: LoadSection, workload: str) -> list[dict[str, Any]]:
    """What load points of a workload say of their data, one after the other."""
    name = PurePosixPath(workload).name
    if not is_sysbench(name):
        return [{"workload": name, "scale": scale} for scale in load.scale]
    tables, size = load.sysbench.sizes(name)
    return [{"workload": name, "scale": 1, "sysbench": True, "tables": tables, "table_size": size}]
