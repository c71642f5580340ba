"""Whether what a client reports is true: latencies of known delays, and starts that keep to their schedule."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

from bench.measures import Bench, Figure, Goal, Values, ratio_to
from bench.programs import OURS, PGBENCH, Program, null_server
from pgtrial.arm.connect import Target

# Five delays, of which each is a percentile's: the percentile lies well inside the delay's share of all transactions,
# so that it does not depend on the tail of the delay before, however the machine disturbs it.
SHARES = {"p50": 0.8, "p90": 0.13, "p95": 0.04, "p99": 0.028, "p99.9": 0.002}
# delays in microseconds and as they are written, clients, transactions of each
SHORT = ({"1us": 1, "10us": 10, "100us": 100, "1ms": 1_000, "10ms": 10_000}, 1, 20_000)
LONG = ({"10ms": 10_000, "30ms": 30_000, "100ms": 100_000, "1s": 1_000_000, "10s": 10_000_000}, 400, 50)
PREPARED = ["-n", "-S", "-M", "prepared"]
# columns of pgbench's log, microseconds both; the second one is there with a rate only
LATENCY, LAG = 2, 6
CLIENTS, RATE, DELAY = 100, 20_000, "500us"


def latencies(bench: Bench) -> Iterator[Figure]:
    """How far reported percentiles are from what they have to be.

    A client sees the delay and, on top, the way to the server and back: the median with one client and a delay of one
    nanosecond, which is subtracted. pgbench has no percentiles; those of its log show what no client can help, such as
    the time that a processor takes to wake up.
    """
    for delays, clients, transactions in (SHORT, LONG):
        mix = ",".join(f"{share}*{delay}" for share, delay in zip(SHARES.values(), delays, strict=True))
        args = [*PREPARED, "-c", str(clients), "-t", str(transactions)]
        command = f"pgtrial-engine null-server --delay mix:{mix}; pgtrial-engine pgbench {' '.join(args)} --percentiles"
        values: dict[str, Values] = {name: {OURS: [], PGBENCH: []} for name in SHARES}
        rounds = bench.rounds if clients == 1 else 1
        for number in range(rounds):
            for program, percentiles in ((OURS, _reported), (PGBENCH, _logged)):
                way = percentiles(bench, [*PREPARED, "-c", "1", "-t", "20000"], "--delay", "1ns")["p50"]
                found = percentiles(bench, args, "--delay", f"mix:{mix}", "--seed", str(number))
                for name, delay in zip(SHARES, delays.values(), strict=True):
                    values[name][program].append(found[name] - way - delay)
            bench.say(f"  {mix}: round {number + 1} of {rounds}")
        for name, (written, delay) in zip(SHARES, delays.items(), strict=True):
            goal = _within(max(5.0, 0.01 * delay))
            yield Figure(f"error of {name}, which is {written}", "us", values[name], command, goal=goal)


def _within(most: float) -> Goal:
    return Goal(f"within {most:g} us", lambda values: abs(median(values[OURS])) <= most)


def _reported(bench: Bench, args: list[str], *server: str) -> dict[str, float]:
    """The percentiles that ours reports, microseconds."""
    with null_server(bench.scratch, *server) as target:
        ran = bench.programs[OURS].run(target, [*args, "--percentiles"])
    return {name: 1000 * ran.number(rf"[ (:]{re.escape(name)} = ([\d.]+)") for name in SHARES}


def _logged(bench: Bench, args: list[str], *server: str) -> dict[str, float]:
    """The percentiles of pgbench's log, microseconds."""
    with null_server(bench.scratch, *server) as target:
        latencies = _log_column(bench.programs[PGBENCH], target, args, bench.scratch / "latencies", LATENCY)
    return {name: _quantile(latencies, float(name.removeprefix("p"))) for name in SHARES}


def schedule(bench: Bench) -> Iterator[Figure]:
    """How late transactions start at a rate that the client and the server can keep, from each client's own log."""
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
    """One column of the log of a run, in ascending order."""
    program.run(target, [*args, "-l", "--log-prefix", str(prefix)])
    found: list[int] = []
    for log in prefix.parent.glob(f"{prefix.name}.*"):
        found.extend(int(line.split()[column]) for line in log.read_text().splitlines())
        log.unlink()
    return sorted(found)


def _quantile(ordered: list[int], percent: float) -> float:
    return float(ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))])
