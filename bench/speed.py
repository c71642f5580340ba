"""Instructions, transactions per second and CPU: of the client at work."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator, Sequence

from bench.measures import Bench, Figure, Goal, at_most, both, ratio_to
from bench.programs import (
    FLOOR,
    LIKE_PGBENCH,
    OURS,
    PGBENCH,
    SYSBENCH,
    SYSBENCH_ROWS,
    Failed,
    Program,
    Ran,
    null_server,
    pgbench_options,
)
from pgtrial.loads.target import Target

EVERY_DISTRIBUTION = """\
\\set a random(1, 100000)
\\set b random_gaussian(1, 100000, 3.0)
\\set c random_exponential(1, 100000, 3.0)
\\set d random_zipfian(1, 100000, 1.1)
\\set e permute(:a, 100000, 7)
\\set f hash(:b) % 100000 + :c / 2
SELECT count(abalance) FROM pgbench_accounts WHERE aid IN (:a, :b, :c, :d, :e, :f);
"""
FEW, MANY = 500, 3000
LOADS = (("select-only", 1), ("select-only", 8), ("select-only", 64), ("tpcb-like", 8))
SPEED_GOALS = {
    ("select-only", 8): both(ratio_to(PGBENCH, 1.15), ratio_to(FLOOR, 0.97)),
    ("select-only", 64): both(ratio_to(PGBENCH, 1.15), ratio_to(FLOOR, 0.97)),
}


def instructions(bench: Bench) -> Iterator[Figure]:
    """Yields the user-space instructions per transaction, with one client."""
    if shutil.which("valgrind") is None:
        bench.skip("instructions", "valgrind is not here")
        return
    prepare_sysbench(bench)
    script = bench.scratch / "distributions.sql"
    script.write_text(EVERY_DISTRIBUTION)
    custom = ["-n", "-f", str(script), "-M", "prepared", "-c", "1", "-j", "1"]
    loads: tuple[tuple[str, list[str] | None, Goal | None], ...] = (
        ("select-only", None, at_most(850)),
        ("tpcb-like", pgbench_options("tpcb-like", 1), at_most(4500)),
        ("a script with every distribution", custom, None),
    )
    for load, options, goal in loads:
        values = {}
        for name, program in bench.programs.items():
            if options is not None and name in (FLOOR, SYSBENCH):
                continue
            try:
                values[name] = [count_instructions(bench, program, options)]
            except Failed as failure:
                bench.skip(f"instructions of {load}, {name}", failure)
            bench.report(f"  {load}, {name}")
        if OURS in values:
            arguments = " ".join(options or pgbench_options("select-only", 1)).replace(f"{bench.scratch}/", "")
            command = f"valgrind --tool=callgrind pgtrial-engine pgbench {arguments} -t {MANY}, less that of -t {FEW}"
            yield Figure(f"instructions per transaction, {load}", "", values, command, goal=goal)


def count_instructions(bench: Bench, program: Program, options: Sequence[str] | None) -> float:
    """Returns the instructions of a transaction: the difference of two counts, so that start and end cancel out. The
    load is select-only without options.
    """
    counts = []
    for number in (FEW, MANY):
        limit = ("-t", str(number))
        args = program.select_only(1, *limit) if options is None else [*options, *limit]
        output = f"--callgrind-out-file={bench.scratch / 'callgrind.out'}"
        ran = program.run(bench.target, args, "valgrind", "--tool=callgrind", output)
        counts.append(ran.number(r"Collected : (\d+)"))
    return (counts[1] - counts[0]) / (MANY - FEW)


def throughput(bench: Bench) -> Iterator[Figure]:
    """Transactions per second and the client's CPU on a real server; one job."""
    prepare_sysbench(bench)
    for load, clients in LOADS:
        limit = ("-T", str(bench.seconds))
        contestants = {}
        for name, program in bench.programs.items():
            if load == "select-only":
                contestants[name] = _runner(program, bench.target, program.select_only(clients, *limit))
            elif name in LIKE_PGBENCH:
                contestants[name] = _runner(program, bench.target, [*pgbench_options(load, clients), *limit])
        what = f"{load}, {clients} client{'s' if clients > 1 else ''}"
        yield from _tps_and_cpu(what, bench.interleave(what, contestants), load, clients)


def _tps_and_cpu(what: str, runs: dict[str, list[Ran]], load: str, clients: int) -> Iterator[Figure]:
    command = f"pgtrial-engine pgbench {' '.join(pgbench_options(load, clients))} -T SECONDS"
    tps = {name: [run.tps for run in ran] for name, ran in runs.items()}
    cpu = {name: [run.cpu_us for run in ran] for name, ran in runs.items()}
    yield Figure(f"tps, {what}", "", tps, command, goal=SPEED_GOALS.get((load, clients)))
    yield Figure(f"client CPU per transaction, {what}", "us", cpu, command, places=2)


def ceiling(bench: Bench) -> Iterator[Figure]:
    """Yields the throughput that one client thread reaches against a server that costs nothing."""
    limit = ("-T", str(bench.seconds))
    with null_server(bench.scratch) as target:
        for clients in (8, 64):
            contestants = {
                name: _runner(program, target, program.select_only(clients, *limit))
                for name, program in bench.programs.items()
                if name != SYSBENCH
            }
            what = f"null server, {clients} clients"
            runs = bench.interleave(what, contestants)
            command = f"pgtrial-engine pgbench {' '.join(pgbench_options('select-only', clients))} -T SECONDS"
            tps = {name: [run.tps for run in ran] for name, ran in runs.items()}
            per_cpu = {name: [1e6 / run.cpu_us for run in ran] for name, ran in runs.items()}
            yield Figure(f"tps, {what}", "", tps, command, goal=ratio_to(PGBENCH, 2.5) if clients == 8 else None)
            yield Figure(f"transactions per second of the client's CPU, {what}", "", per_cpu, command)


def _runner(program: Program, target: Target, args: list[str]) -> Callable[[], Ran]:
    return lambda: program.run(target, args)


def prepare_sysbench(bench: Bench) -> bool:
    """Makes sysbench's own table, once; without sysbench it says so. Returns True if there is a table."""
    program = bench.programs.get(SYSBENCH)
    if program is None:
        bench.skip("sysbench", "it is not installed")
        return False
    with bench.target.connect_as_user() as connection:
        if connection.execute("SELECT to_regclass('sbtest1')").fetchone() != (None,):
            return True
    bench.report(f"  sysbench: making a table of {SYSBENCH_ROWS} rows")
    ran = program.run(bench.target, ["prepare"])
    if re.search("FATAL", ran.stdout + ran.stderr):
        raise Failed(ran.stderr)
    with bench.target.connect_as_user() as connection:
        connection.execute("VACUUM ANALYZE sbtest1")
    return True
