"""The pages of figures, such as docs/benchmarks.md: the goals first, then every figure with its spread and the command
for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

from bench.measures import Figure
from bench.programs import BEFORE, FLOOR, GO_TPC, OURS, PGBENCH, SYSBENCH, SYSBENCH_TPCC
from bench.sysbench import MANY

PROGRAMS = (PGBENCH, SYSBENCH, FLOOR, SYSBENCH_TPCC, GO_TPC, BEFORE, OURS)
TITLES = {
    "instructions": "Instructions",
    "throughput": "A real server",
    "ceiling": "The client's ceiling: the null server",
    "memory": "Memory",
    "connecting": "Connecting",
    "loading": "Loading",
    "latencies": "Are the latencies true?",
    "schedule": "Does it keep to the schedule?",
    "options": "What output costs",
    "observing": "What observing costs",
    "merging": "Merging a fleet's events",
    "replaying": "Replaying a capture",
    "fleet": "What several engines cost",
    "sysbench": "As sysbench: a real server",
    "sysbench-prepare": "As sysbench: making the tables",
    "sysbench-memory": "As sysbench: memory",
    "swap-select-only": "pgbench -S",
    "swap-tpcb-like": "pgbench",
    "swap-native": "sysbench oltp_point_select",
    "swap-read-write": "sysbench oltp_read_write",
    "swap-lua": "sysbench with a Lua script",
    "order-entry": "Order entry",
}
NOTES = {
    "instructions": "User-space instructions of the client, counted by valgrind: exact, so one run each.",
    "throughput": "Prepared statements, one job (sysbench: a thread for each client, oltp_point_select on its own "
    "table).",
    "ceiling": "One thread of the client, one thread of the null server. Where the client waits for the server, the "
    "transactions per second of its CPU time tell what it could do.",
    "memory": "Peak of the client's resident memory.",
    "connecting": "The time that the programs report as initial connection time.",
    "loading": "",
    "latencies": "The null server answers after one of five known delays, each a percentile's own. What it takes to "
    "get there and back, the median of one client at a delay of 1 ns, is subtracted. The long delays: one round. "
    "pgbench has no percentiles; those of its log show what no client can help. A loop of idle priority keeps each "
    "processor awake, as `idle=poll` would: one that has slept takes longer to wake up, whoever is to run on it. What "
    "that adds, and the client rightly reports, is the difference to the figures with processors asleep.",
    "schedule": "100 clients at 20,000 transactions per second on the null server with a delay of 500 us, so that a "
    "tenth of them is busy; from each program's own log.",
    "options": "Select-only, prepared: tps with 8 clients on the real server, instructions with one.",
    "observing": "The lab's sampler beside the load, and the same load without it, in random order; the ratio is that "
    "of the two runs of a round. Its CPU is that of the lab's thread and of its session on the server.",
    "merging": "Events of 100 machines for 600 seconds, as files: 60,000 histograms of some 300 to 3,000 different "
    "latencies each, read, added up, and written as one run; the CPU time of the one thread that does it, and the peak "
    "of its memory.",
    "replaying": "Select-only statements as text, on the null server with one thread. Speed: as fast as possible, with "
    "one thread. Instructions: of the client in user space, with one session. Memory: the peak of the client's "
    "resident memory with 10,000 sessions at the same time, each with a full chunk of statements.",
    "fleet": "Select-only, prepared, 8 clients on the real server: one engine of two threads, and two engines of one "
    "thread each on two places of a Ray cluster on this machine, read as one; the ratio is that of the two runs of a "
    "round. The start is the instant at which the last of an engine's threads begins.",
    "sysbench": "sysbench with a thread for each client, ours with one job, otherwise the same words; the CPU of a run "
    "from start to end. The script is `bench/point_select.lua`, a query as text for each event.",
    "sysbench-prepare": "The time from start to end, each time in a new database after a checkpoint, both with "
    "`--threads=4`. Three rounds, since they take long.",
    "sysbench-memory": f"Peak of the client's resident memory with {MANY:,} clients, less that with one, for each of "
    "the others.",
    "swap-select-only": "",
    "swap-tpcb-like": "",
    "swap-native": "A Lua script of sysbench's own; a test in native code of ours.",
    "swap-read-write": "A Lua script of sysbench's own; a test in native code of ours.",
    "order-entry": "Each program has a database of its own, loaded once without foreign keys, with as many connections "
    "as there are processors (at most 4). VACUUM ANALYZE, a checkpoint and an unmeasured run of 5 s follow. The 30 s "
    "that sysbench-tpcc sleeps while it loads are not counted; its transactions are READ COMMITTED as the others'. "
    "tps are those of all five transactions, as each program reports them; ours has one thread. The CPU is that of the "
    "client's process from start to end.",
    "swap-lua": "The script is `bench/point_select.lua`, a query as text for each event.",
}


@dataclass(frozen=True)
class Page:
    """A page of figures; `about` is what its first paragraph says beside the conditions."""

    file: str
    title: str
    about: str


BENCHMARKS = Page(
    "benchmarks.md",
    "Benchmarks of the load engine",
    "The floor is `bench/floor.c`, the least that a client can do: an epoll loop without measurement.",
)
SWAP = Page(
    "swap.md",
    "If you swap the program",
    "Each pair of programs gets the same words, and nothing is named that has a default. So pgbench has one "
    "thread, and ours as pgbench; sysbench has one for each client, and ours as sysbench too, up to 12. The CPU is "
    "that of the client's process from start to end. In a round the programs take turns of 250 ms at the server, "
    "each at its own copy of the database, for so many seconds in all: what disturbs the machine disturbs both.",
)


ORDER_ENTRY = Page(
    "order-entry-speed.md",
    "Order entry beside sysbench-tpcc and go-tpc",
    "Loading is one round. `bench/order_entry.py` says how sysbench-tpcc and go-tpc are found.",
)


@dataclass(frozen=True)
class Machine:
    """Where it was measured, as facts; the server's version, its scale and settings."""

    facts: Mapping[str, Mapping[str, Any]]
    version: str
    scale: int
    settings: Mapping[str, str]

    def describe(self) -> str:
        """One paragraph."""
        cpu, memory, system = (self.facts.get(name, {}) for name in ("cpu", "memory", "os"))
        settings = ", ".join(f"{name} {value}" for name, value in self.settings.items())
        return (
            f"Machine: {cpu.get('model')}, {cpu.get('logical')} CPUs, "
            f"{memory.get('total_mb', 0) / 1024:.0f} GiB, kernel {system.get('kernel')}; clients and "
            f"servers share it. PostgreSQL and pgbench {self.version}, scale {self.scale}, {settings}, Unix sockets."
        )


@dataclass(frozen=True)
class Conditions:
    """How it was measured."""

    machine: Machine
    rounds: int
    seconds: int


def write(
    file: Path, page: Page, conditions: Conditions, measures: Mapping[str, list[Figure]], skipped: list[str]
) -> None:
    """Write the page into a file."""
    file.write_text("\n".join(_lines(page, conditions, measures, skipped)) + "\n")


def _lines(
    page: Page, conditions: Conditions, measures: Mapping[str, list[Figure]], skipped: list[str]
) -> Iterator[str]:
    yield f"# {page.title}"
    yield ""
    yield (
        f"Written by `make bench` on {datetime.now(UTC):%Y-%m-%d}: {conditions.rounds} rounds of "
        f"{conditions.seconds} s, all programs once in each round in random order. Figures are medians with the lowest "
        "and highest in brackets; goals that compare are judged by the median of the ratios within the rounds. "
        f"{page.about}"
    )
    yield ""
    yield conditions.machine.describe()
    judged = [figure for figures in measures.values() for figure in figures if figure.goal and OURS in figure.values]
    if judged:
        yield from ("", "## Goals", "", *_goals(judged))
    for name, figures in measures.items():
        if figures:
            yield from ("", f"## {TITLES[name]}", "")
            if NOTES[name]:
                yield from (NOTES[name], "")
            yield from _table(figures)
            yield from ("", "Ours by:", "")
            for command in dict.fromkeys(figure.command for figure in figures):
                yield f"- `{command}`"
    if skipped:
        yield from ("", "## Not measured", "")
        for line in skipped:
            yield f"- {line}"


def _goals(figures: list[Figure]) -> Iterator[str]:
    programs = [name for name in PROGRAMS if any(name in figure.values for figure in figures)]
    yield f"| figure | {' | '.join(programs)} | target | met |"
    yield "|---" * (len(programs) + 3) + "|"
    for figure in figures:
        if figure.goal is not None:
            cells = [_spread(figure, name) for name in programs]
            met = "yes" if figure.goal.met(figure.values) else "**no**"
            yield f"| {_what(figure)} | {' | '.join(cells)} | {figure.goal.text} | {met} |"


def _table(figures: list[Figure]) -> Iterator[str]:
    programs = [name for name in PROGRAMS if any(name in figure.values for figure in figures)]
    peer = next((name for name in (PGBENCH, SYSBENCH) if name in programs), None)
    others = [name for name in (peer, SYSBENCH_TPCC, GO_TPC, BEFORE) if name in programs]
    titles = [*programs, *(f"ours / {other}" for other in others)]
    yield f"| figure | {' | '.join(titles)} |"
    yield "|---" * (len(titles) + 1) + "|"
    for figure in figures:
        cells = [_spread(figure, name) for name in programs]
        cells += [_ratio(figure, other) for other in others]
        yield f"| {_what(figure)} | {' | '.join(cells)} |"


def _what(figure: Figure) -> str:
    return f"{figure.what}, {figure.unit}" if figure.unit else figure.what


def _spread(figure: Figure, name: str) -> str:
    values = figure.values.get(name)
    if not values:
        return ""
    low, middle, high = (f"{value:,.{figure.places}f}" for value in (min(values), median(values), max(values)))
    return middle if len(values) == 1 else f"{middle} ({low}..{high})"


def _ratio(figure: Figure, other: str) -> str:
    ours, theirs = figure.values.get(OURS, []), figure.values.get(other, [])
    ratios = [mine / its for mine, its in zip(ours, theirs, strict=False) if its]
    return f"{median(ratios):.2f}" if ratios else ""
