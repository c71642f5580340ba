"""Measures if a client's reports are true: latencies of known delays, and starts that keep to their schedule."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from statistics import median

from bench.measures import Bench, Figure, Goal, Values, ratio_to
from bench.programs import OURS, PGBENCH, Program, null_server
from pgtrial.loads.target import Target

# Five delays, of which each is a percentile's: the percentile lies well inside the delay's share of all transactions,
# so that it does not depend on the tail of the delay before, however the machine disturbs it.
SHARES = {"p50": 0.8, "p90": 0.13, "p95": 0.04, "p99": 0.028, "p99.9": 0.002}
# delays in microseconds and as they are written, clients, transactions of each
SHORT = ({"1us": 1, "10us": 10, "100us": 100, "1ms": 1_000, "10ms": 10_000}, 1, 20_000)
LONG = ({"10ms": 10_000, "30ms": 30_000, "100ms": 100_000, "1s": 1_000_000, "10s": 10_000_000}, 400, 50)
# Stays on one processor and runs only when nobody else wants it.
IDLER = """\
import os, sys
os.sched_setaffinity(0, {int(sys.argv[1])})
os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
while True: pass
"""
PREPARED = ["-n", "-S", "-M", "prepared"]
# columns of pgbench's log, microseconds both; the second one is there with a rate only
LATENCY, LAG = 2, 6
ASLEEP_ROUNDS = 3
CLIENTS, RATE, DELAY = 100, 20_000, "500us"


def latencies(bench: Bench) -> Iterator[Figure]:
    """Yields the errors of reported percentiles.

    The server delays its answers by known times, but a client also sees the round trip. So the median of a run with one
    client and a delay of one nanosecond is subtracted. A processor that has slept takes time to wake up, which would
    count as an error of the client: the processors are kept awake, and the figures of sleeping processors are shown
    apart. pgbench reports no percentiles; those of its log show the error that any client has.
    """
    yield from _errors(bench, SHORT, bench.rounds, awake=True)
    yield from _errors(bench, LONG, 1, awake=True)
    yield from _errors(bench, SHORT, min(bench.rounds, ASLEEP_ROUNDS), awake=False)


def _errors(bench: Bench, mix_of: tuple[dict[str, int], int, int], rounds: int, *, awake: bool) -> Iterator[Figure]:
    delays, clients, transactions = mix_of
    mix = ",".join(f"{share}*{delay}" for share, delay in zip(SHARES.values(), delays, strict=True))
    args = [*PREPARED, "-c", str(clients), "-t", str(transactions)]
    command = f"pgtrial-engine null-server --delay mix:{mix}; pgtrial-engine pgbench {' '.join(args)} --percentiles"
    values: dict[str, Values] = {name: {OURS: [], PGBENCH: []} for name in SHARES}
    with keep_awake() if awake else nullcontext():
        for number in range(rounds):
            for program, percentiles in ((OURS, _reported), (PGBENCH, _logged)):
                way = percentiles(bench, [*PREPARED, "-c", "1", "-t", "20000"], "--delay", "1ns")["p50"]
                found = percentiles(bench, args, "--delay", f"mix:{mix}", "--seed", str(number))
                for name, delay in zip(SHARES, delays.values(), strict=True):
                    values[name][program].append(found[name] - way - delay)
            bench.report(f"  {mix}: round {number + 1} of {rounds}")
    for name, (written, delay) in zip(SHARES, delays.items(), strict=True):
        goal = _within(max(5.0, 0.01 * delay)) if awake else None
        where = "" if awake else ", processors asleep"
        yield Figure(f"error of {name} ({written}){where}", "us", values[name], command, goal=goal)


@contextmanager
def keep_awake() -> Iterator[None]:
    """Gives each processor work of the lowest priority for as long as the context lasts."""
    idlers = [subprocess.Popen([sys.executable, "-c", IDLER, str(cpu)]) for cpu in os.sched_getaffinity(0)]
    try:
        yield
    finally:
        for idler in idlers:
            idler.kill()
            idler.wait()


def _within(most: float) -> Goal:
    return Goal(f"within {most:g} us", lambda values: abs(median(values[OURS])) <= most)


def _reported(bench: Bench, args: list[str], *server: str) -> dict[str, float]:
    """Returns the percentiles that ours reports, microseconds."""
    with null_server(bench.scratch, *server) as target:
        ran = bench.programs[OURS].run(target, [*args, "--percentiles"])
    return {name: 1000 * ran.number(rf"[ (:]{re.escape(name)} = ([\d.]+)") for name in SHARES}


def _logged(bench: Bench, args: list[str], *server: str) -> dict[str, float]:
    """Returns the percentiles of pgbench's log, microseconds."""
    with null_server(bench.scratch, *server) as target:
        latencies = _log_column(bench.programs[PGBENCH], target, args, bench.scratch / "latencies", LATENCY)
    return {name: _quantile(latencies, float(name.removeprefix("p"))) for name in SHARES}


def schedule(bench: Bench) -> Iterator[Figure]:
    """Yields the delays of starts at a rate that the client and the server can keep, from each client's own log."""
    args = [*PREPARED, "-c", str(CLIENTS), "-j", "1", "-T", str(bench.seconds), "-R", str(RATE)]
    with null_server(bench.scratch, "--delay", DELAY) as target:
        contestants = {
            name: _lags(bench.programs[name], target, args, bench.scratch / f"lag-{name}") for name in (OURS, PGBENCH)
        }
        runs = bench.interleave("schedule", contestants)
    command = f"pgtrial-engine null-server --delay {DELAY}; pgtrial-engine pgbench {' '.join(args)} -l"
    goals = {50: None, 99: ratio_to(PGBENCH, high=1.0)}
    for percent, goal in goals.items():
        values = {name: [_quantile(lags, percent) for lags in ran] for name, ran in runs.items()}
        yield Figure(f"p{percent} of the schedule lag", "us", values, command, goal=goal)


def _lags(program: Program, target: Target, args: list[str], prefix: Path) -> Callable[[], list[int]]:
    return lambda: _log_column(program, target, args, prefix, LAG)


def _log_column(program: Program, target: Target, args: list[str], prefix: Path, column: int) -> list[int]:
    """Returns one column of the log of a run, in ascending order."""
    program.run(target, [*args, "-l", "--log-prefix", str(prefix)])
    found: list[int] = []
    for log in prefix.parent.glob(f"{prefix.name}.*"):
        found.extend(int(line.split()[column]) for line in log.read_text().splitlines())
        log.unlink()
    return sorted(found)


def _quantile(ordered: list[int], percent: float) -> float:
    return float(ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))])
