"""Order entry beside sysbench-tpcc under sysbench and go-tpc: loading, the rate of transactions, the client's CPU.

`PGTRIAL_SYSBENCH_TPCC` names a clone of github.com/Percona-Lab/sysbench-tpcc, `PGTRIAL_GO_TPC` the program go-tpc of
github.com/pingcap/go-tpc. Who is not there is left out, and that is said.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from bench.measures import Bench, Figure, Goal, Measure, both, ratio_to
from bench.programs import BEFORE, GO_TPC, OURS, SYSBENCH_TPCC, Failed, Ran, execute, sysbench_address
from pgtrial.loads.target import Target

WAREHOUSES, CLIENTS = 10, 8
CONNECTIONS = min(os.cpu_count() or 1, 4)
_SLEEP_S = 30.0
"""The time that sysbench-tpcc waits until all of its threads have made their tables, seconds."""

_WARMUP_S = 5

Words = Callable[[Target, int], list[str]]
"""A function that returns a command line for a server. Its number is the seconds of a run, or the connections of a load
of the tables."""


@dataclass(frozen=True)
class Contestant:
    """A program that loads and runs order entry. `counts` is a pattern for the numbers of transactions in its output,
    which are added up; `rate` is a pattern for the throughput, in transactions per `rate_unit_s` seconds.
    """

    load: Words
    run: Words
    counts: str
    rate: str
    rate_unit_s: float = 1.0
    idle_s: float = 0.0
    """The time that the loading program sleeps, seconds."""

    def transactions(self, ran: Ran) -> int:
        """Returns the number of transactions. Raises Failed."""
        found = re.findall(self.counts, ran.stdout, re.MULTILINE)
        if not found:
            raise Failed(f"no line like {self.counts!r} in:\n{ran.stdout}{ran.stderr}")
        return sum(map(int, found))

    def tps(self, ran: Ran) -> float:
        """Transactions per second, as the program reports them. Raises Failed."""
        return ran.number(self.rate) / self.rate_unit_s

    def cpu_us(self, ran: Ran) -> float:
        """Returns the client's CPU per transaction, microseconds."""
        return 1e6 * ran.cpu_s / self.transactions(ran)


def measure(bench: Bench) -> Iterator[Figure]:
    """Measures the programs: each loads a database of its own, once; then all of them run in each round."""
    contestants = _contestants(bench)
    loaded: dict[str, list[float]] = {}
    with ExitStack() as stack:
        targets = {name: _database(bench, stack, name) for name in contestants}
        for name, contestant in list(contestants.items()):
            try:
                loaded[name] = [_load(bench, name, contestant, targets[name])]
            except Failed as failure:
                bench.skip(f"order entry, {name}", failure)
                del contestants[name]
        runs = bench.interleave(
            "order entry", {name: _runner(name, each, targets[name], bench) for name, each in contestants.items()}
        )
    peers = [name for name in (SYSBENCH_TPCC, GO_TPC) if name in runs]
    load, run = _shown("load", f"-w {WAREHOUSES} -j {CONNECTIONS}"), _shown("run", f"-c {CLIENTS} -T SECONDS")
    yield Figure(f"loading {WAREHOUSES} warehouses", "s", loaded, load, places=1, goal=_to_all(peers, high=0.5))
    tps = {name: [contestants[name].tps(each) for each in ran] for name, ran in runs.items()}
    cpu = {name: [contestants[name].cpu_us(each) for each in ran] for name, ran in runs.items()}
    what = f"{CLIENTS} clients, {WAREHOUSES} warehouses"
    yield Figure(f"tps, {what}", "", tps, run, goal=_to_all(peers, low=1.0))
    yield Figure(f"client CPU per transaction, {what}", "us", cpu, run, goal=_to_all(peers, high=1 / 3))


MEASURES: Mapping[str, Measure] = {"order-entry": measure}


def _to_all(peers: list[str], low: float | None = None, high: float | None = None) -> Goal | None:
    """Returns the goal that the ratio to each of the other programs is within these bounds; None without other
    programs."""
    goal: Goal | None = None
    for peer in peers:
        one = ratio_to(peer, low, high)
        goal = one if goal is None else both(goal, one)
    return goal


def _contestants(bench: Bench) -> dict[str, Contestant]:
    found = {name: _ours(bench.programs[name].command[0]) for name in (OURS, BEFORE) if name in bench.programs}
    script = Path(os.environ.get("PGTRIAL_SYSBENCH_TPCC", "")) / "tpcc.lua"
    sysbench = shutil.which("sysbench")
    if sysbench is None or not script.is_file():
        bench.skip(SYSBENCH_TPCC, "PGTRIAL_SYSBENCH_TPCC names no clone of it, or sysbench is not installed")
    else:
        found[SYSBENCH_TPCC] = _sysbench_tpcc(sysbench, script)
    go_tpc = shutil.which(os.environ.get("PGTRIAL_GO_TPC", "go-tpc"))
    if go_tpc is None:
        bench.skip(GO_TPC, "PGTRIAL_GO_TPC names no program")
    else:
        found[GO_TPC] = _go_tpc(go_tpc)
    return found


def _ours(engine: str) -> Contestant:
    def load(target: Target, connections: int) -> list[str]:
        return [engine, "order-entry", "load", f"--warehouses={WAREHOUSES}", f"--jobs={connections}"]

    def run(target: Target, seconds: int) -> list[str]:
        return [engine, "order-entry", "run", f"--clients={CLIENTS}", f"--time={seconds}", "--max-tries=0"]

    return Contestant(load, run, r"^all +(\d+) ", r"transactions per second: ([\d.]+)")


def _sysbench_tpcc(sysbench: str, script: Path) -> Contestant:
    """Returns sysbench-tpcc without foreign keys, and at the isolation level of the other programs."""

    def words(target: Target, threads: int) -> list[str]:
        sizes = [f"--scale={WAREHOUSES}", "--tables=1", "--use_fk=0", "--trx_level=RC", f"--threads={threads}"]
        return ["env", f"LUA_PATH={script.parent}/?.lua;;", sysbench, str(script), *sysbench_address(target), *sizes]

    def load(target: Target, connections: int) -> list[str]:
        return [*words(target, connections), "prepare"]

    def run(target: Target, seconds: int) -> list[str]:
        return [*words(target, CLIENTS), f"--time={seconds}", "run"]

    rate = r"transactions: +\d+ +\(([\d.]+) per"
    return Contestant(load, run, r"transactions: +(\d+) ", rate, idle_s=_SLEEP_S)


def _go_tpc(program: str) -> Contestant:
    def words(target: Target, threads: int) -> list[str]:
        server = [f"--targets=:{target.port}", f"--user={target.user}", f"--db={target.dbname}"]
        where = f"--conn-params=sslmode=disable&host={target.host}"
        return [program, "tpcc", "--driver=postgres", *server, where, f"--threads={threads}"]

    def load(target: Target, connections: int) -> list[str]:
        return [*words(target, connections), f"--warehouses={WAREHOUSES}", "prepare", "--no-check"]

    def run(target: Target, seconds: int) -> list[str]:
        return [*words(target, CLIENTS), f"--warehouses={WAREHOUSES}", f"--time={seconds}s", "run"]

    counts = r"^\[Summary\] (?!\w+_ERR)\w+ +- .*Count: (\d+),"
    return Contestant(load, run, counts, r"tpmTotal: ([\d.]+),", rate_unit_s=60)


def _database(bench: Bench, stack: ExitStack, name: str) -> Target:
    """Makes a new database for the context."""
    dbname = f"bench_orders_{name.replace('-', '_')}"
    with bench.target.connect_as_user() as connection:
        connection.execute(f"CREATE DATABASE {dbname}".encode())
    stack.callback(_drop, bench.target, dbname)
    return replace(bench.target, dbname=dbname)


def _drop(server: Target, dbname: str) -> None:
    with server.connect_as_user() as connection:
        connection.execute(f"DROP DATABASE {dbname} WITH (FORCE)".encode())


def _load(bench: Bench, name: str, contestant: Contestant, target: Target) -> float:
    """Loads the tables and returns the seconds that this took. Afterwards the tables are vacuumed, analysed and on
    disk, and the load has run for a short time, as a warm-up."""
    with target.connect_as_user() as connection:
        connection.execute("CHECKPOINT")
    ran = execute(name, contestant.load(target, CONNECTIONS), target)
    seconds = ran.elapsed_s - contestant.idle_s
    bench.report(f"  {name}: {WAREHOUSES} warehouses loaded in {seconds:.1f} s")
    with target.connect_as_user() as connection:
        connection.execute("VACUUM ANALYZE")
        connection.execute("CHECKPOINT")
    execute(name, contestant.run(target, _WARMUP_S), target)
    return seconds


def _runner(name: str, contestant: Contestant, target: Target, bench: Bench) -> Callable[[], Ran]:
    def run() -> Ran:
        ran = execute(name, contestant.run(target, bench.seconds), target)
        contestant.transactions(ran)
        return ran

    return run


def _shown(command: str, options: str) -> str:
    return f"pgtrial-engine order-entry {command} {options}"
