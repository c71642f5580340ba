"""Ours as sysbench, beside sysbench: its tests, a Lua script, its tables, its memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from statistics import median

from bench.measures import Bench, Figure, Goal, at_most, ratio_to
from bench.programs import BEFORE, OURS, SYSBENCH, SYSBENCH_ROWS, Ran, execute, null_server, sysbench_address
from bench.speed import prepare_sysbench
from pgtrial.loads.target import Target

SCRIPT = Path(__file__).with_name("point_select.lua")
TABLE = ["--tables=1", f"--table-size={SYSBENCH_ROWS}"]
ROWS = [f"--table-size={SYSBENCH_ROWS}"]
# what, test, options, threads, goal of the rate, goal of the CPU
LOADS: tuple[tuple[str, str, list[str], int, Goal | None, Goal | None], ...] = (
    ("oltp_point_select", "oltp_point_select", TABLE, 8, None, ratio_to(SYSBENCH, high=0.5)),
    ("oltp_point_select", "oltp_point_select", TABLE, 64, ratio_to(SYSBENCH, 1.1), ratio_to(SYSBENCH, high=0.5)),
    ("oltp_read_write", "oltp_read_write", TABLE, 8, None, ratio_to(SYSBENCH, high=0.5)),
    ("a Lua script", str(SCRIPT), ROWS, 8, None, ratio_to(SYSBENCH, high=0.8)),
    ("a Lua script", str(SCRIPT), ROWS, 64, None, ratio_to(SYSBENCH, high=0.8)),
)
MANY = 1_000
MEMORY: tuple[tuple[str, str, list[str], float], ...] = (
    ("a native test", "oltp_point_select", TABLE, 10),
    ("a Lua script", str(SCRIPT), ROWS, 400),
)
MEMORY_ROUNDS = 3
PREPARED = ["--tables=4", "--table-size=1000000", "--threads=4"]
PREPARE_ROUNDS = 3
DATABASE = "bench_prepare"


def tests(bench: Bench) -> Iterator[Figure]:
    """Transactions per second and the client's CPU; ours with one job, sysbench with a thread for each client."""
    if not prepare_sysbench(bench):
        return
    for load, test, options, threads, of_rate, of_cpu in LOADS:
        args = [*options, f"--threads={threads}", f"--time={bench.seconds}", "--events=0", "run"]
        what = f"{load}, {threads} threads"
        runs = bench.interleave(what, _contestants(bench, bench.target, test, args))
        tps = {name: [run.tps for run in ran] for name, ran in runs.items()}
        cpu = {name: [run.cpu_us for run in ran] for name, ran in runs.items()}
        command = _shown(test, args)
        yield Figure(f"tps, {what}", "", tps, command, goal=of_rate)
        yield Figure(f"client CPU per transaction, {what}", "us", cpu, command, places=2, goal=of_cpu)


def prepare(bench: Bench) -> Iterator[Figure]:
    """Measures the time to make four tables of a million rows, each time in a new database."""
    if SYSBENCH not in bench.programs:
        bench.skip("sysbench's tables", "sysbench is not installed")
        return
    target = replace(bench.target, dbname=DATABASE)
    args = [*PREPARED, "prepare"]
    contestants = {
        name: _in_a_new_database(bench.target, run)
        for name, run in _contestants(bench, target, "oltp_read_write", args).items()
    }
    runs = bench.interleave("prepare", contestants, min(bench.rounds, PREPARE_ROUNDS))
    values = {name: [run.elapsed_s for run in ran] for name, ran in runs.items()}
    command = _shown("oltp_read_write", args)
    goal = ratio_to(SYSBENCH, high=0.35)
    yield Figure("prepare of 4 x 1,000,000 rows", "s", values, command, places=1, goal=goal)


def memory(bench: Bench) -> Iterator[Figure]:
    """Yields the resident memory of the client process per client beyond the first, on the null server."""
    if SYSBENCH not in bench.programs:
        bench.skip("sysbench's memory", "sysbench is not installed")
        return
    for load, test, options, limit in MEMORY:
        peaks: dict[int, dict[str, list[Ran]]] = {}
        for threads in (1, MANY):
            args = [*options, f"--threads={threads}", "--time=1", "--events=0", "run"]
            with null_server(bench.scratch) as target:
                what = f"memory, {load}, {threads} threads"
                peaks[threads] = bench.interleave(
                    what, _contestants(bench, target, test, args), min(bench.rounds, MEMORY_ROUNDS)
                )
        values = {
            name: [
                (run.peak_kib - median(alone.peak_kib for alone in peaks[1][name])) / (MANY - 1)
                for run in peaks[MANY][name]
            ]
            for name in peaks[MANY]
            if name in peaks[1]
        }
        command = f"VmHWM of {_shown(test, args)}, less that of --threads=1, on the null server"
        yield Figure(f"memory per client, {load}", "KiB", values, command, places=1, goal=at_most(limit))


def _contestants(bench: Bench, target: Target, test: str, args: list[str]) -> dict[str, Callable[[], Ran]]:
    """Returns functions that run our program, its earlier build and sysbench with the same arguments, by name."""
    same = [*sysbench_address(target), *args]

    def ours(name: str) -> Callable[[], Ran]:
        engine = bench.programs[name].command[0]
        return lambda: execute(name, [engine, "sysbench", test, "--jobs=1", *same], target)

    builds = {name: ours(name) for name in (OURS, BEFORE) if name in bench.programs}
    return {**builds, SYSBENCH: lambda: execute(SYSBENCH, [SYSBENCH, test, *same], target)}


def _in_a_new_database(server: Target, run: Callable[[], Ran]) -> Callable[[], Ran]:
    """Returns a function that runs in a new database, so that the server has no work left from the run before."""

    def fresh() -> Ran:
        with server.connect_as_user() as connection:
            connection.execute(f"CREATE DATABASE {DATABASE}")
            connection.execute("CHECKPOINT")
        try:
            return run()
        finally:
            with server.connect_as_user() as connection:
                connection.execute(f"DROP DATABASE {DATABASE} WITH (FORCE)")

    return fresh


def _shown(test: str, args: list[str]) -> str:
    """Returns the command line that the page of figures shows, as a reader types it in the top folder of the
    repository."""
    name = f"bench/{SCRIPT.name}" if test == str(SCRIPT) else test
    return f"pgtrial-engine sysbench {name} --jobs=1 --db-driver=pgsql --pgsql-host=DIRECTORY {' '.join(args)}"
