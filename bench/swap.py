"""What changes for somebody who swaps the program: the same words to pgbench and ours, and to sysbench and ours.

Everything that is not named has its default, as with somebody who types the shortest command.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from bench.measures import Bench, Figure, Measure, ratio_to
from bench.programs import BEFORE, OURS, PGBENCH, SYSBENCH, SYSBENCH_ROWS, Ran, execute, sysbench_address
from bench.speed import prepare_sysbench
from bench.sysbench import SCRIPT

CLIENTS = (1, 2, 8, 16, 64, 256)
_GOAL = 0.98
Words = Callable[[object], list[str]]
"""The words after the program's name, for so many clients."""


def _as_pgbench(name: str, *script: str) -> Measure:
    """`-n`: nobody vacuums between the runs of two programs."""

    def measure(bench: Bench) -> Iterator[Figure]:
        def words(clients: object) -> list[str]:
            return ["-n", *script, f"-c{clients}", f"-T{bench.seconds}"]

        yield from _figures(bench, name, PGBENCH, words, [])

    return measure


def _as_sysbench(name: str, test: str) -> Measure:
    def measure(bench: Bench) -> Iterator[Figure]:
        if not prepare_sysbench(bench):
            return

        def words(clients: object) -> list[str]:
            return [
                test,
                f"--table-size={SYSBENCH_ROWS}",
                f"--threads={clients}",
                f"--time={bench.seconds}",
                "run",
            ]

        yield from _figures(bench, name, SYSBENCH, words, sysbench_address(bench.target))

    return measure


def _figures(bench: Bench, load: str, peer: str, words: Words, address: Sequence[str]) -> Iterator[Figure]:
    def runner(name: str, given: list[str]) -> Callable[[], Ran]:
        engine = bench.programs[name].command[0]
        command = [engine] if name == peer else [engine, peer]
        test, *options = given
        return lambda: execute(name, [*command, test, *address, *options], bench.target)

    typed = [*(["--db-driver=pgsql"] if address else []), *words("N")]
    command = f"pgtrial-engine {peer} {' '.join(typed)}".replace(str(SCRIPT), f"bench/{SCRIPT.name}")
    rate, cpu = [], []
    for clients in CLIENTS:
        what = f"{load}, {clients} client{'s' if clients > 1 else ''}"
        contestants = {name: runner(name, words(clients)) for name in (OURS, BEFORE, peer) if name in bench.programs}
        runs = bench.interleave(what, contestants)
        tps = {name: [run.tps for run in ran] for name, ran in runs.items()}
        spent = {name: [run.cpu_us for run in ran] for name, ran in runs.items()}
        rate.append(Figure(f"tps, {what}", "", tps, command, goal=ratio_to(peer, _GOAL)))
        cpu.append(Figure(f"client CPU per transaction, {what}", "us", spent, command, places=1))
    yield from (*rate, *cpu)


MEASURES: dict[str, Measure] = {
    "swap-select-only": _as_pgbench("select-only", "-S"),
    "swap-tpcb-like": _as_pgbench("tpcb-like"),
    "swap-native": _as_sysbench("oltp_point_select", "oltp_point_select"),
    "swap-read-write": _as_sysbench("oltp_read_write", "oltp_read_write"),
    "swap-lua": _as_sysbench("a Lua script", str(SCRIPT)),
}
