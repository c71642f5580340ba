"""Measures the time to make pgbench's tables."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace

from bench.measures import Bench, Figure, ratio_to
from bench.programs import LIKE_PGBENCH, PGBENCH, Program, Ran
from pgtrial.loads.target import Target

SCALE = 100
ROUNDS = 3
DATABASE = "bench_loading"
_DONE = re.compile(r"done in [\d.]+ s \((.*)\)\.")
_PHASE = re.compile(r"([a-z -]+?) ([\d.]+) s")


def loading(bench: Bench) -> Iterator[Figure]:
    """Yields the total time to load, and the phases that both programs report."""
    with bench.target.connect_as_user() as connection:
        connection.execute(f"CREATE DATABASE {DATABASE}")
    target = replace(bench.target, dbname=DATABASE)
    try:
        contestants = {name: _load(bench.programs[name], target) for name in LIKE_PGBENCH if name in bench.programs}
        runs = bench.interleave(f"-i -s {SCALE}", contestants, min(bench.rounds, ROUNDS))
    finally:
        with bench.target.connect_as_user() as connection:
            connection.execute(f"DROP DATABASE {DATABASE} WITH (FORCE)")
    command = f"pgtrial-engine pgbench -i -q -s {SCALE}"
    total = {name: [run.number(r"done in ([\d.]+) s") for run in ran] for name, ran in runs.items()}
    yield Figure(f"-i -s {SCALE}, in all", "s", total, command, places=2, goal=ratio_to(PGBENCH, high=0.40))
    phases = {name: [_phases(run) for run in ran] for name, ran in runs.items()}
    for phase in dict.fromkeys(phase for ran in phases.values() for run in ran for phase in run):
        values = {name: [run.get(phase, 0.0) for run in ran] for name, ran in phases.items()}
        yield Figure(f"-i -s {SCALE}, {phase}", "s", values, command, places=2)


def _load(program: Program, target: Target) -> Callable[[], Ran]:
    return lambda: program.run(target, ["-i", "-q", "-s", str(SCALE)])


def _phases(run: Ran) -> dict[str, float]:
    """Returns the time of each phase, seconds, from the line `done in 9.07 s (drop tables 0.00 s, create tables 0.01 s,
    ...).`
    """
    found = _DONE.search(run.stderr)
    parts = found[1].split(", ") if found else []
    return {match[1]: float(match[2]) for part in parts if (match := _PHASE.fullmatch(part))}
