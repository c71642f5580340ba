"""The engine's command line for one trial, in pgbench's options."""

from __future__ import annotations

import math
import os
from pathlib import Path

from pgtrial.store.records import LoadPoint
from pgtrial.study.spec import LoadSection


def engine_options(load: LoadSection, point: LoadPoint, seed: int, script: Path | None) -> list[str]:
    """The options; `script` is the file of a workload of the study's own, None for a built-in one."""
    options = ["-n", *_workload(point, script), "-M", point.protocol]
    options += ["-c", str(point.clients), "-j", str(_jobs(load, point.clients))]
    options += ["-T", str(int(load.duration)), "--warmup", f"{load.warmup:g}", "--random-seed", str(seed)]
    if point.rate is not None:
        options += ["-R", f"{point.rate:.10g}"]
    if load.max_tries is not None:
        options += ["--max-tries", str(load.max_tries)]
    if load.latency_limit is not None:
        options += ["-L", f"{load.latency_limit * 1000:.12g}"]
    return options


def _workload(point: LoadPoint, script: Path | None) -> list[str]:
    if script is None:
        return ["-b", point.workload]
    # the weight keeps an @ in the path from being taken for one; only of built-in scripts pgbench finds out the scale
    return ["-f", f"{script}@1", "-s", str(point.scale)]


def _jobs(load: LoadSection, clients: int) -> int:
    """Engine threads: as the study says, else one per 16 clients and at most half the CPUs, which the server needs."""
    return min(clients, load.jobs or max(1, min(math.ceil(clients / 16), (os.cpu_count() or 2) // 2)))
