"""Measures what changes if somebody swaps the program: the same options go to pgbench and ours, and to sysbench and
ours.

Everything that is not named has its default, as with somebody who types the shortest command.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

from psycopg.sql import SQL, Identifier

from bench.measures import Bench, Figure, Measure, ratio_to
from bench.programs import BEFORE, OURS, PGBENCH, SYSBENCH, SYSBENCH_ROWS, sysbench_address
from bench.speed import prepare_sysbench
from bench.sysbench import SCRIPT
from bench.turns import Turned, in_turns
from pgtrial.loads.target import Target

CLIENTS = (1, 2, 8, 16, 64, 256)
_GOAL = 0.98
Words = Callable[[object, object], list[str]]
"""A function that returns the words after the program's name, for a number of clients and of seconds."""


@dataclass(frozen=True)
class _Load:
    name: str
    peer: str
    words: Words
    by_sysbench: bool

    def command(self, bench: Bench, name: str, target: Target, clients: object, seconds: object) -> list[str]:
        engine = bench.programs[name].command[0]
        test, *options = self.words(clients, seconds)
        address = sysbench_address(target) if self.by_sysbench else []
        return [engine, *([] if name == self.peer else [self.peer]), test, *address, *options]

    @property
    def typed(self) -> str:
        words = [*(["--db-driver=pgsql"] if self.by_sysbench else []), *self.words("N", "T")]
        return f"pgtrial-engine {self.peer} {' '.join(words)}".replace(str(SCRIPT), f"bench/{SCRIPT.name}")


def _as_pgbench(name: str, *script: str) -> Measure:
    """Returns the measure of a script of pgbench. It has `-n`, so that nobody vacuums between the runs of two
    programs.
    """

    def words(clients: object, seconds: object) -> list[str]:
        return ["-n", *script, f"-c{clients}", f"-T{seconds}"]

    return lambda bench: _figures(bench, _Load(name, PGBENCH, words, by_sysbench=False))


def _as_sysbench(name: str, test: str) -> Measure:
    def words(clients: object, seconds: object) -> list[str]:
        return [test, f"--table-size={SYSBENCH_ROWS}", f"--threads={clients}", f"--time={seconds}", "run"]

    def measure(bench: Bench) -> Iterator[Figure]:
        if prepare_sysbench(bench):
            yield from _figures(bench, _Load(name, SYSBENCH, words, by_sysbench=True))

    return measure


def _figures(bench: Bench, load: _Load) -> Iterator[Figure]:
    rate, cpu = [], []
    with _copies(bench, [name for name in (OURS, BEFORE, load.peer) if name in bench.programs]) as targets:
        for clients in CLIENTS:
            what = f"{load.name}, {clients} client{'s' if clients > 1 else ''}"
            contestants = {"in turns": partial(_round, bench, load, targets, clients)}
            rounds = bench.interleave(what, contestants).get("in turns", [])
            tps = {name: [turned[name].tps for turned in rounds] for name in targets if rounds}
            spent = {name: [turned[name].cpu_us for turned in rounds] for name in targets if rounds}
            rate.append(Figure(f"tps, {what}", "", tps, load.typed, goal=ratio_to(load.peer, _GOAL)))
            cpu.append(Figure(f"client CPU per transaction, {what}", "us", spent, load.typed, places=1))
    yield from (*rate, *cpu)


def _round(bench: Bench, load: _Load, targets: Mapping[str, Target], clients: int) -> dict[str, Turned]:
    def command(name: str, seconds: int) -> list[str]:
        return load.command(bench, name, targets[name], clients, seconds)

    return in_turns(targets, command, clients, bench.seconds)


@contextmanager
def _copies(bench: Bench, names: Sequence[str]) -> Iterator[dict[str, Target]]:
    """Yields a copy of the database for each program, for as long as the context lasts."""
    targets = {name: replace(bench.target, dbname=f"of_{name}") for name in names}
    with replace(bench.target, dbname="template1").connect_as_user() as connection:
        for target in targets.values():
            copied = (Identifier(target.dbname), Identifier(bench.target.dbname))
            connection.execute(SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY file_copy").format(*copied))
        try:
            yield targets
        finally:
            for target in targets.values():
                connection.execute(SQL("DROP DATABASE {} WITH (FORCE)").format(Identifier(target.dbname)))


MEASURES: dict[str, Measure] = {
    "swap-select-only": _as_pgbench("select-only", "-S"),
    "swap-tpcb-like": _as_pgbench("tpcb-like"),
    "swap-native": _as_sysbench("oltp_point_select", "oltp_point_select"),
    "swap-read-write": _as_sysbench("oltp_read_write", "oltp_read_write"),
    "swap-lua": _as_sysbench("a Lua script", str(SCRIPT)),
}
