"""The engine's command line for one trial, in the options of the front end that has the workload."""

from __future__ import annotations

import math
import os
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from pgtrial.data.sbtest import lua_environment
from pgtrial.engine import FrontEnd, refusal_by_sysbench
from pgtrial.errors import StudyError
from pgtrial.store.records import LoadPoint
from pgtrial.study.load_section import LoadSection
from pgtrial.study.server_loss import patience_s
from pgtrial.study.spec import StudySpec
from pgtrial.study.sysbench import is_sysbench


def engine_options(load: LoadSection, point: LoadPoint, seed: int, script: Path | None) -> list[str]:
    """The options; `script` is the file of a workload of the study's own, None for a built-in one."""
    if point.tasks is not None:
        return _tasks(load, point, seed)
    return _sysbench(load, point, seed, script) if point.sysbench else _pgbench(load, point, seed, script)


def front_end(point: LoadPoint) -> FrontEnd:
    """Which of the engine's front ends has the workload."""
    return "tasks" if point.tasks is not None else "sysbench" if point.sysbench else "pgbench"


def check_sysbench(spec: StudySpec) -> None:
    """Ask the engine whether it takes the study's tests of sysbench and their options. Raises StudyError."""
    for path in filter(is_sysbench, spec.load.workload):
        test = PurePosixPath(path).name
        with TemporaryDirectory(prefix="pgtrial-") as folder:
            for name, text in spec.scripts.items():
                (Path(folder) / name).write_bytes(text.encode())
            named = str(Path(folder) / test) if test in spec.scripts else test
            options = spec.load.sysbench.arguments(test)
            complaint = refusal_by_sysbench(named, options, lua_environment(Path(folder)))
        if complaint is not None:
            said = complaint.replace(f"{folder}/", "")
            raise StudyError(f"[load] {test}: the engine refuses it: {said}; correct the script, or [load.sysbench]")


def _pgbench(load: LoadSection, point: LoadPoint, seed: int, script: Path | None) -> list[str]:
    options = ["-n", *_workload(point, script), "-M", point.protocol]
    options += ["-c", str(point.clients), "-j", str(_jobs(load, point.clients))]
    options += ["-T", str(int(load.duration)), "--warmup", f"{load.warmup:g}", "--random-seed", str(seed)]
    if point.rate is not None:
        options += ["-R", f"{point.rate:.10g}"]
    if load.max_tries is not None:
        options += ["--max-tries", str(load.max_tries)]
    if load.latency_limit is not None:
        options += ["-L", f"{load.latency_limit * 1000:.12g}"]
    if (patience := patience_s(load.on_server_loss)) is not None:
        options += ["--continue-on-error", "--wait-for-server", f"{patience:g}"]
    return options


def _sysbench(load: LoadSection, point: LoadPoint, seed: int, script: Path | None) -> list[str]:
    options = [str(script or point.workload), *load.sysbench.arguments(point.workload)]
    options += [f"--threads={point.clients}", f"--jobs={_jobs(load, point.clients)}"]
    options += [f"--time={load.duration:.0f}", f"--warmup-time={load.warmup:.0f}"]
    options += [f"--db-ps-mode={'disable' if point.protocol == 'simple' else 'auto'}"]
    # 0 would stand for the time
    options += [f"--rand-seed={seed or 1}"]
    return options if point.rate is None else [*options, f"--rate={point.rate:.0f}"]


def _tasks(load: LoadSection, point: LoadPoint, seed: int) -> list[str]:
    jobs = min(_jobs(load, point.clients), load.tasks.apps)
    return [*load.tasks.arguments(), "-M", point.protocol, "-j", str(jobs), "--random-seed", str(seed)]


def _workload(point: LoadPoint, script: Path | None) -> list[str]:
    if script is None:
        return ["-b", point.workload]
    # the weight keeps an @ in the path from being taken for one; only of built-in scripts pgbench finds out the scale
    return ["-f", f"{script}@1", "-s", str(point.scale)]


def _jobs(load: LoadSection, clients: int) -> int:
    """Engine threads: as the study says, else one per 16 clients and at most half the CPUs, which the server needs."""
    return min(clients, load.jobs or max(1, min(math.ceil(clients / 16), (os.cpu_count() or 2) // 2)))
