"""Measures the time to merge the events of a large fleet into the events of one run."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from hdrh.histogram import HdrHistogram

from bench.measures import Bench, Figure, at_most
from bench.programs import OURS, execute
from pgtrial.loads.process import engine_path

MACHINES = 100
SECONDS = 600
LONGEST_NS = 3_600_000_000_000
# Transactions of a second and the spread of their latencies: some 300 to 3,000 different values in a histogram.
LOADS = ((1_000, 0.3), (3_000, 0.5), (10_000, 0.7), (30_000, 0.9))
SECONDS_OF_A_LOAD = 16


def merging(bench: Bench) -> Iterator[Figure]:
    """Files of a fleet whose machines have other latencies from second to second, merged by one process."""
    files = _write(bench.scratch / "merging")
    command = [str(engine_path()), "merge", *map(str, files)]
    runs = bench.interleave("merging", {OURS: lambda: execute(OURS, command, bench.target)})
    size = sum(path.stat().st_size for path in files) / 1e6
    bench.report(f"  {MACHINES} files, {size:,.0f} MB together")
    shown = f"pgtrial-engine merge FILE... ({MACHINES} files)"
    what = f"merging {MACHINES} x {SECONDS} s of histograms"
    yield Figure(what, "s", {OURS: [run.cpu_s for run in runs[OURS]]}, shown, places=2, goal=at_most(2))
    peaks = {OURS: [run.peak_kib / 1024 for run in runs[OURS]]}
    yield Figure(f"{what}, memory", "MiB", peaks, shown, places=1)
    for path in files:
        path.unlink()


def _write(directory: Path) -> list[Path]:
    """Writes the machines' events. Histograms are made once and dealt out in another order to each machine."""
    directory.mkdir(exist_ok=True)
    dice = random.Random(1)
    made = [_second(dice, *load) for load in LOADS for _ in range(SECONDS_OF_A_LOAD)]
    return [_write_machine(directory / f"m{number}.jsonl", dice.choices(made, k=SECONDS)) for number in range(MACHINES)]


def _second(dice: random.Random, transactions: int, spread: float) -> dict[str, Any]:
    latencies = [1 + round(1000 * dice.lognormvariate(0, spread)) for _ in range(transactions)]
    counted = HdrHistogram(1, LONGEST_NS, 3)
    for latency in latencies:
        counted.record_value(latency * 1000)
    mean = sum(latencies) / transactions
    squares = sum(latency * latency for latency in latencies) / transactions
    figures = {"mean": mean, "stddev": (squares - mean**2) ** 0.5, "min": min(latencies), "max": max(latencies)}
    return {
        "transactions": transactions,
        "failures": {},
        "skipped": 0,
        "late": 0,
        "retried": 0,
        "retries": 0,
        "latency_us": figures,
        "histogram": counted.encode().decode(),
    }


def _write_machine(path: Path, seconds: list[dict[str, Any]]) -> Path:
    plan = {"scripts": ["<builtin: select only>"], "clients": 64, "jobs": 2, "duration_s": float(SECONDS)}
    hello = {"protocol": 2, "engine": "0.1.0", "frontend": "pgbench", "pid": 1, "started": "", "server_version": None}
    drain = {"duration_s": 0.0, "transactions": 0, "failures": {}}
    client = {"cpu_user_s": 1.0, "cpu_system_s": 1.0, "busiest_thread_share": 0.5, "warnings": []}
    transactions = sum(second["transactions"] for second in seconds)
    sums = {"duration_s": float(SECONDS), "transactions": transactions, "tps": transactions / SECONDS}
    measure = seconds[-1] | sums
    done = {
        "status": 0,
        "interrupted": False,
        "clients_aborted": 0,
        "connect_s": 0.1,
        "warmup": None,
        "measure": measure,
        "drain": drain,
        "scripts": [],
        "client": client,
    }
    with path.open("w") as file:
        _write_event(file, "hello", 0.0, hello | {"plan": plan})
        _write_event(file, "connected", 0.1, {"clients": 64, "connect_s": 0.1})
        _write_event(file, "phase", 0.1, {"phase": "measure", "at": 1_795_270_323.0})
        for number, second in enumerate(seconds):
            _write_event(file, "tick", 1.1 + number, {"phase": "measure", "second": number, "seconds": 1.0} | second)
        _write_event(file, "done", 0.1 + SECONDS, done)
    return path


def _write_event(file: IO[str], event: str, t: float, body: dict[str, Any]) -> None:
    file.write(json.dumps({"event": event, "t": t} | body, separators=(",", ":")) + "\n")
