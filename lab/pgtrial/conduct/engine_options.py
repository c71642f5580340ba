"""The engine's command line for one trial, in the options of the front end that has the workload."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from pgtrial.loads.engine import AT_A_WORD, PAUSE, FrontEnd, refusal_by_sysbench
from pgtrial.loads.load_makers import Each
from pgtrial.loads.process import lua_environment
from pgtrial.model.errors import StudyError
from pgtrial.model.records.job import BesideLoad
from pgtrial.model.records.load_point import LoadPoint
from pgtrial.model.records.pack import PackLoad
from pgtrial.model.study.load_section import LoadSection
from pgtrial.model.study.order_entry import ORDER_ENTRY
from pgtrial.model.study.spec import StudySpec
from pgtrial.model.study.suites import QUERY_ENDING
from pgtrial.model.study.sysbench import is_sysbench
from pgtrial.model.units import patience_s
from pgtrial.store.replay_files import capture_of


@dataclass(frozen=True)
class Turn:
    """The place of a load among those that alternate: its number from 1, of how many, in slices of so many seconds."""

    number: int = 1
    of: int = 1
    slice_s: float | None = None
    """None: it runs by itself."""

    def wall_s(self, own_s: float) -> float:
        """How long the load takes to have so many seconds of its own, in whole slices."""
        if self.slice_s is None:
            return own_s
        return math.ceil(own_s / self.slice_s - _ROUNDING) * self.slice_s * self.of

    def options(self, seed: int) -> list[str]:
        """The engine's options; `seed` is that of the order, the same for all."""
        if self.slice_s is None:
            return []
        length = f"--slice={self.slice_s * 1000:.10g}ms"
        return [length, f"--slice-of={self.number}/{self.of}", f"--slice-seed={seed}", AT_A_WORD]


ALONE = Turn()

_ROUNDING = 1e-6


def engine_options(
    load: LoadSection,
    point: LoadPoint,
    seed: int,
    script: Path | None,
    machine: Each | None = None,
    *,
    turn: Turn = ALONE,
    values: Mapping[str, Path] | None = None,
) -> list[str]:
    """The options; `script` is the file of a workload of the study's own or the folder of a pack, else None.

    `values` are the files of which variables have values.

    They say the whole load, all but the threads, which are those of each engine (`machine`): by default of one here.
    """
    jobs = _jobs(load, point, machine or Each())
    tail = ["-j", str(jobs), "--random-seed", str(seed)]
    match front_end(point):
        case "tasks":
            return [*load.tasks.arguments(), "-M", point.protocol, *tail]
        case "replay":
            return [str(capture_of(load.workload[0])), *load.replay.arguments(), *tail]
        case "suite":
            return [*suite_options(point, script), "--random-seed", str(seed)]
        case "sysbench":
            options = [str(script or point.workload), *_sysbench(load, point, seed, jobs, turn)]
        case "order-entry":
            calls = ["--procedures"] if load.procedures else []
            options = ["run", *_closed_loop(load, point, seed, jobs, turn), *calls]
        case "pgbench":
            if not point.kind.repeats:
                return ["-n", *job_options(script, point), "-j", "1", "--random-seed", str(seed)]
            drawn = [f"--values={name}={path}" for name, path in (values or {}).items()]
            options = ["-n", *scripts_of(point, script), *drawn, *_closed_loop(load, point, seed, jobs, turn)]
    return [*options, *turn.options(seed)]


def short_options(load: LoadSection, point: LoadPoint, seed: int, script: Path | None) -> list[str]:
    """Returns the options of a short run of one client, of a load that is no script of pgbench, suite or replay."""
    tail = ["-j", "1", "--random-seed", str(seed)]
    match front_end(point):
        case "tasks":
            few = load.tasks.model_copy(update={"apps": 1, "pool": 1, "tasks": _EXECUTIONS, "arrival": "at-once"})
            return [*few.arguments(), "-M", point.protocol, *tail]
        case "order-entry":
            calls = ["--procedures"] if load.procedures else []
            return ["run", "-M", point.protocol, "-c", "1", "-t", f"{_SHORT_RUN}", *calls, *tail]
        case _:
            limits = ["--threads=1", "--jobs=1", f"--events={_SHORT_RUN}", f"--time={_SHORT_RUN_S}"]
            given = load.sysbench.arguments(point.workload)
            return [str(script or point.workload), *given, *limits, *_protocol_and_seed(point, seed)]


_SHORT_RUN = 100
"""The transactions of a short run: the transactions of order entry that are drawn in 4% of all cases are among them
with a probability of 98%."""
_SHORT_RUN_S = 5
_EXECUTIONS = 6
"""The executions after which PostgreSQL has chosen the kind of plan of a prepared statement."""


def front_end(point: LoadPoint) -> FrontEnd:
    """Which of the engine's front ends has the workload."""
    if point.kind.front_end is not None:
        return point.kind.front_end
    if point.workload == ORDER_ENTRY:
        return "order-entry"
    return "sysbench" if point.sysbench else "pgbench"


def suite_options(point: LoadPoint, folder: Path | None) -> list[str]:
    """The options for the suite of a load point, whose files are in a folder."""
    suite = point.suite
    if suite is None or folder is None:
        return []
    files = [word for query in suite.queries for word in ("-f", str(folder / f"{query}{QUERY_ENDING}"))]
    before = "--warmup" if suite.cache == "warm" else PAUSE
    return [*files, f"--runs={suite.runs}", f"--limit={suite.limit_s:g}", before]


def check_sysbench(spec: StudySpec) -> None:
    """Ask the engine whether it takes the study's tests of sysbench and their options. Raises StudyError."""
    for path in filter(is_sysbench, spec.load.workload):
        test = PurePosixPath(path).name
        with TemporaryDirectory(prefix="pgtrial-") as folder:
            for name, text in spec.scripts.items():
                if "/" not in name:  # others are a pack's
                    (Path(folder) / name).write_bytes(text.encode())
            named = str(Path(folder) / test) if test in spec.scripts else test
            options = spec.load.sysbench.arguments(test)
            complaint = refusal_by_sysbench(named, options, lua_environment(Path(folder)))
        if complaint is not None:
            words = complaint.replace(f"{folder}/", "")
            raise StudyError(f"[load] {test}: the engine refuses it: {words}; correct the script, or [load.sysbench]")


def _closed_loop(load: LoadSection, point: LoadPoint, seed: int, jobs: int, turn: Turn) -> list[str]:
    """Options that pgbench and order-entry share."""
    warmup, duration = map(turn.wall_s, load.phases_s)
    options = ["-M", point.protocol, "-c", str(point.clients), "-j", str(jobs)]
    options += ["-T", f"{duration:.0f}", "--warmup", f"{warmup:g}", "--random-seed", str(seed)]
    if point.rate is not None:
        options += ["-R", f"{point.rate:.10g}"]
    if load.max_tries is not None:
        options += ["--max-tries", str(load.max_tries)]
    if load.latency_limit is not None:
        options += ["-L", f"{load.latency_limit * 1000:.12g}"]
    if (patience := patience_s(load.on_server_loss)) is not None:
        options += ["--continue-on-error", "--wait-for-server", f"{patience:g}"]
    return options


def _sysbench(load: LoadSection, point: LoadPoint, seed: int, jobs: int, turn: Turn) -> list[str]:
    warmup, duration = map(turn.wall_s, load.phases_s)
    options = load.sysbench.arguments(point.workload)
    options += [f"--threads={point.clients}", f"--jobs={jobs}"]
    options += [f"--time={duration:.0f}", f"--warmup-time={warmup:.0f}"]
    options += _protocol_and_seed(point, seed)
    return options if point.rate is None else [*options, f"--rate={point.rate:.0f}"]


def _protocol_and_seed(point: LoadPoint, seed: int) -> list[str]:
    # 0 would stand for the time
    return [f"--db-ps-mode={'disable' if point.protocol == 'simple' else 'auto'}", f"--rand-seed={seed or 1}"]


def scripts_of(point: LoadPoint, script: Path | None) -> list[str]:
    """pgbench's options for the scripts of a load point."""
    if script is None:
        return ["-b", point.workload]
    # only of built-in scripts pgbench finds out the scale
    scale = ["-s", str(point.scale)]
    if point.pack is not None:
        return pack_options(point.pack, script, point.whole_scale)
    if point.mix:
        return [*(word for name, weight in point.mix.items() for word in ("-f", f"{script / name}@{weight}")), *scale]
    # the weight keeps an @ in the path from being taken for one
    return ["-f", f"{script}@1", *scale]


def beside_options(
    load: LoadSection,
    point: LoadPoint,
    beside: BesideLoad,
    seed: int,
    *,
    script: Path | None,
    lengths: tuple[float, float],
) -> list[str]:
    """The engine's options for the load beside a job; `script` is its file, None: one of pgbench's own.

    `lengths` are the warm-up and the longest measured part, seconds.
    """
    warmup_s, longest_s = lengths
    scripts = ["-b", beside.script] if script is None else ["-f", f"{script}@1", "-s", str(point.scale)]
    jobs = min(beside.clients, load.jobs or max(1, min(math.ceil(beside.clients / 16), Each().cpus)))
    options = ["-n", *scripts, "-M", beside.protocol, "-c", str(beside.clients), "-j", str(jobs)]
    options += ["-R", f"{beside.rate:.10g}", "-T", f"{math.ceil(longest_s)}", "--warmup", f"{warmup_s:g}"]
    return [*options, "--random-seed", str(seed)]


def job_options(script: Path | None, point: LoadPoint) -> list[str]:
    """pgbench's options that run the statements of a job once, one after the other."""
    return [*scripts_of(point, script), "-M", point.protocol, "-c", "1", "-t", "1"]


def pack_options(pack: PackLoad, folder: Path, scale: int) -> list[str]:
    """The scripts of a pack whose files are in a folder, with their weights, and its variables."""
    scripts = [word for file, weight in pack.scripts.items() for word in ("-f", f"{folder / file}@{weight}")]
    variables = [word for name, value in pack.variables.items() for word in ("-D", f"{name}={value}")]
    return [*scripts, "-s", str(scale), *variables]


def _jobs(load: LoadSection, point: LoadPoint, machine: Each) -> int:
    """Threads of each engine: as the study says, else one per 16 of its clients and at most its share of the CPUs."""
    clients = load.kind.sessions(load, point) // machine.engines
    most = load.kind.most_threads(load, clients)
    return min(most, load.jobs or max(1, min(math.ceil(clients / 16), machine.cpus)))
