"""Many connections: the memory that each takes, and how long their start takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from statistics import median

from bench.measures import Bench, Figure, at_most
from bench.programs import LIKE_PGBENCH, OURS, SYSBENCH, Program, null_server
from pgtrial.loads.target import Target

MANY = 1_000
MOST = 10_000


def memory(bench: Bench) -> Iterator[Figure]:
    """Yields the resident memory of the client process per client beyond the first."""
    values: dict[str, list[float]] = {}
    with null_server(bench.scratch) as target:
        peaks: dict[int, dict[str, list[int]]] = {}
        for clients in (1, MANY):
            contestants = {
                name: _peak(program, target, clients, bench.seconds)
                for name, program in bench.programs.items()
                if name != SYSBENCH
            }
            peaks[clients] = bench.interleave(f"memory, {clients} clients", contestants, min(bench.rounds, 3))
    for name, with_many in peaks[MANY].items():
        alone = median(peaks[1][name])
        values[name] = [(peak - alone) / (MANY - 1) for peak in with_many]
    command = f"VmHWM of pgtrial-engine pgbench -n -S -M prepared -c {MANY}, less that of -c 1, on the null server"
    yield Figure("memory per client beyond the first", "KiB", values, command, places=2, goal=at_most(6))


def _peak(program: Program, target: Target, clients: int, seconds: int) -> Callable[[], int]:
    args = program.select_only(clients, "-T", str(seconds))
    return lambda: program.run(target, args).peak_kib


def connecting(bench: Bench) -> Iterator[Figure]:
    """Yields figures of the time that programs take to open many connections."""
    yield _start(bench, bench.target, MANY, "a server", LIKE_PGBENCH)
    with null_server(bench.scratch) as target:
        yield _start(bench, target, MANY, "the null server", LIKE_PGBENCH)
        yield _start(bench, target, MOST, "the null server", (OURS,))


def _start(bench: Bench, target: Target, clients: int, where: str, names: tuple[str, ...]) -> Figure:
    args = ["-n", "-S", "-c", str(clients), "-j", "1", "-t", "1"]
    present = [name for name in names if name in bench.programs]
    contestants = {name: _connection_time(bench.programs[name], target, args) for name in present}
    what = f"start of {clients:,} connections to {where}"
    values = bench.interleave(what, contestants)
    return Figure(what, "ms", values, f"pgtrial-engine pgbench {' '.join(args)}", places=1)


def _connection_time(program: Program, target: Target, args: list[str]) -> Callable[[], float]:
    return lambda: program.run(target, args).number(r"initial connection time = ([\d.]+) ms")
