"""The pages of figures, such as docs/benchmarks.md: the goals, the latest figures, and whether they meet the goals."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

from bench.measures import Figure, ratios
from bench.programs import BEFORE, FLOOR, GO_TPC, OURS, PGBENCH, SYSBENCH, SYSBENCH_TPCC
from bench.record import Conditions

OTHERS = (PGBENCH, SYSBENCH, FLOOR, SYSBENCH_TPCC, GO_TPC, BEFORE)


@dataclass(frozen=True)
class Page:
    """A page of figures. `reader` is its first paragraph, `about` says how the figures were taken; `by_clients`: the
    figures are ratios to the original program, with a column for each number of clients."""

    name: str
    title: str
    reader: str
    command: str
    about: str
    by_clients: bool = False


BENCHMARKS = Page(
    "benchmarks",
    "Benchmarks of the load engine",
    "For readers who ask whether the engine is fast and exact enough for a measurement. This page has the goals and "
    "the latest figures.",
    "python -m bench --only instructions,ceiling --directory /tmp    # `make bench` takes all, in forty minutes",
    "The floor is `bench/floor.c`: an event loop that sends, receives and measures nothing. Instructions are those of "
    "the client in user space, counted by valgrind. Errors of percentiles are measured against known delays of the "
    "null server, while a loop of idle priority keeps the processors awake.",
)
SWAP = Page(
    "swap",
    "If you swap the program",
    "For users of pgbench or sysbench who ask what changes if `pgtrial-engine pgbench` or `pgtrial-engine sysbench` "
    "gets the same words.",
    "python -m bench --only swap-select-only,swap-lua --directory /tmp    # `make bench` takes all",
    "Both programs have their defaults: pgbench has one thread, sysbench one for each client, ours up to 12. They take "
    "turns of 250 ms at one server, each on its own copy of the database. CPU is that of the client's process from "
    "start to end.",
    by_clients=True,
)
ORDER_ENTRY = Page(
    "order-entry-speed",
    "Order entry beside sysbench-tpcc and go-tpc",
    "For readers who choose a program for a load like TPC-C.",
    "python -m bench --only order-entry --seconds 15 --directory /tmp    # bench/order_entry.py finds the others",
    "Each program has a database of its own, loaded once without foreign keys by as many connections as there are "
    "processors (at most 4). tps are those of all five transactions. CPU is that of the client's process from start to "
    "end.",
)


def write(
    file: Path, page: Page, conditions: Conditions, measures: Mapping[str, Sequence[Figure]], skipped: Sequence[str]
) -> None:
    """Write the page into a file."""
    file.write_text("\n".join(_lines(page, conditions, measures, skipped)) + "\n")


def _lines(
    page: Page, conditions: Conditions, measures: Mapping[str, Sequence[Figure]], skipped: Sequence[str]
) -> Iterator[str]:
    figures = [figure for measured in measures.values() for figure in measured if OURS in figure.values]
    yield from (f"# {page.title}", "", page.reader, "", "```sh", page.command, "```", "")
    yield (
        f"Measured on {datetime.now(UTC):%Y-%m-%d} in {conditions.rounds} rounds of {conditions.seconds} s, all "
        f"programs once in each round in random order. Ratios are taken within a round. {page.about}"
    )
    yield from ("", conditions.machine.describe(), "", *(_by_clients(figures) if page.by_clients else _goals(figures)))
    if skipped:
        yield from ("", "## Not measured", "", *(f"- {line}" for line in skipped))


def _goals(figures: Sequence[Figure]) -> Iterator[str]:
    """Yields a row for each figure with a goal: medians, ours with the lowest and highest value."""
    yield from ("| figure | others | ours | goal |", "|---|---|---|---|")
    for figure in figures:
        if figure.goal is not None:
            others = ", ".join(
                f"{name} {median(figure.values[name]):,.{figure.places}f}" for name in OTHERS if figure.values.get(name)
            )
            what = f"{figure.what}, {figure.unit}" if figure.unit else figure.what
            goal = figure.goal.text if figure.goal.met(figure.values) else f"**missed:** {figure.goal.text}"
            yield f"| {what} | {others} | {_spread(figure)} | {goal} |"


def _by_clients(figures: Sequence[Figure]) -> Iterator[str]:
    """Yields a row for each load, a column for each number of clients: ours divided by the original's."""
    rows: dict[str, dict[str, Figure]] = {}
    for figure in figures:
        if named := re.fullmatch(r"(.+), (\d+) clients?", figure.what):
            rows.setdefault(named[1], {})[named[2]] = figure
    counts = list(dict.fromkeys(clients for row in rows.values() for clients in row))
    yield from ("## Ours divided by the original", "")
    yield from (f"| clients | {' | '.join(counts)} |", "|---" * (len(counts) + 1) + "|")
    for what, row in rows.items():
        yield f"| {what} | {' | '.join(_ratio(row[clients]) if clients in row else '' for clients in counts)} |"
    goals = list(dict.fromkeys(figure.goal.text for figure in figures if figure.goal))
    yield from ("", f"Goals for tps: {', '.join(goals)}. Ratios in bold miss theirs.")


def _spread(figure: Figure) -> str:
    values = figure.values[OURS]
    low, middle, high = (f"{value:,.{figure.places}f}" for value in (min(values), median(values), max(values)))
    return middle if len(values) == 1 else f"{middle} ({low}..{high})"


def _ratio(figure: Figure) -> str:
    peer = next((name for name in (PGBENCH, SYSBENCH) if figure.values.get(name)), None)
    if peer is None:
        return ""
    text = f"{median(ratios(figure.values, peer)):.2f}"
    return text if figure.goal is None or figure.goal.met(figure.values) else f"**{text}**"
