"""Measures the cost of each option that asks for more output."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from bench.measures import Bench, Figure
from bench.programs import OURS, PGBENCH, Failed, Program, Ran, pgbench_options
from bench.speed import count_instructions

CLIENTS = 8
NONE = "none"
OPTIONS: dict[str, list[str]] = {
    NONE: [],
    "-l": ["-l", "--log-prefix", "LOG"],
    "-l --aggregate-interval=1": ["-l", "--log-prefix", "LOG", "--aggregate-interval=1"],
    "-r": ["-r"],
    "-P 1": ["-P", "1"],
    "-R 1000000": ["-R", "1000000"],
    "--percentiles": ["--percentiles"],
    "--histogram": ["--histogram=/dev/null"],
}
OURS_ONLY = ("--percentiles", "--histogram")


def options(bench: Bench) -> Iterator[Figure]:
    """Transactions per second with each, all in each round, and instructions per transaction."""
    base = pgbench_options("select-only", CLIENTS)
    log = bench.scratch / "log"
    contestants = {}
    for name in (OURS, PGBENCH):
        for option, words in OPTIONS.items():
            if name == OURS or option not in OURS_ONLY:
                args = [*base, "-T", str(bench.seconds), *_with_log(words, log)]
                contestants[f"{name} {option}"] = _run(bench.programs[name], bench, args, log)
    runs = bench.interleave("options", contestants)
    for option, words in OPTIONS.items():
        keys = {name: f"{name} {option}" for name in (OURS, PGBENCH)}
        values = {name: [run.tps for run in runs[key]] for name, key in keys.items() if key in runs}
        command = f"pgtrial-engine pgbench {' '.join(base)} {' '.join(words)} -T SECONDS"
        if OURS in values:
            yield Figure(f"tps with {option}", "", values, command)
    if shutil.which("valgrind") is not None:
        yield from _instructions(bench, log)


def _instructions(bench: Bench, log: Path) -> Iterator[Figure]:
    base = pgbench_options("select-only", 1)
    for option, words in OPTIONS.items():
        values = {}
        for name in (OURS, PGBENCH):
            if name == PGBENCH and option in OURS_ONLY:
                continue
            try:
                values[name] = [count_instructions(bench, bench.programs[name], [*base, *_with_log(words, log)])]
            except Failed as failure:
                bench.skip(f"instructions with {option}, {name}", failure)
            _remove(log)
        if OURS in values:
            command = f"valgrind --tool=callgrind pgtrial-engine pgbench {' '.join(base)} {' '.join(words)} -t N"
            yield Figure(f"instructions with {option}", "", values, command)


def _run(program: Program, bench: Bench, args: list[str], log: Path) -> Callable[[], Ran]:
    def run() -> Ran:
        ran = program.run(bench.target, args)
        _remove(log)
        return ran

    return run


def _with_log(words: list[str], log: Path) -> list[str]:
    return [str(log) if word == "LOG" else word for word in words]


def _remove(log: Path) -> None:
    for path in log.parent.glob(f"{log.name}.*"):
        path.unlink()
