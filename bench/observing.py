"""Measures the throughput that the lab's sampler costs the load that it watches."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

from bench.measures import Bench, Figure, at_least, at_most
from bench.programs import OURS, Ran, pgbench_options
from pgtrial.evidence.observe.sampler import Sampler
from pgtrial.machines.machine import LOCAL

CLIENTS = 8
MORE_ROUNDS = 3
"""The factor by which this measure has more rounds than the others: its effect is below the noise of a single pair."""


def observing(bench: Bench) -> Iterator[Figure]:
    """Transactions per second with and without it, and its CPU."""
    base = pgbench_options("select-only", CLIENTS)
    args = [*base, "-T", str(bench.seconds)]
    shares: list[float] = []

    def without() -> Ran:
        return bench.programs[OURS].run(bench.target, args)

    contestants: dict[str, Callable[[], Ran]] = {"with": lambda: _watched(bench, without, shares), "without": without}
    runs = bench.interleave("the sampler on and off", contestants, MORE_ROUNDS * bench.rounds)
    command = f"pgtrial-engine pgbench {' '.join(base)} -T SECONDS, and pgtrial.evidence.observe.sampler beside it"
    for name, ran in runs.items():
        yield Figure(f"tps {name} the sampler", "", {OURS: [run.tps for run in ran]}, command)
    ratios = [on.tps / off.tps for on, off in zip(runs["with"], runs["without"], strict=True)]
    yield Figure("tps with the sampler / without", "", {OURS: ratios}, command, places=3, goal=at_least(0.99))
    yield Figure("CPU of the sampler", "% of one CPU", {OURS: shares}, command, places=2, goal=at_most(1))


def _watched(bench: Bench, load: Callable[[], Ran], shares: list[float]) -> Ran:
    with Sampler(bench.target.connect, LOCAL, bench.data_directory) as sampler:
        sampler.load_begins(os.getpid())
        sampler.measure_begins()
        ran = load()
    cost = sampler.seen(ran.elapsed_s).cost
    shares.append(100 * (cost["lab_cpu_s"] + cost.get("server_cpu_s", 0.0)) / ran.elapsed_s)
    return ran
