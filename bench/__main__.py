"""`make bench`: our client, pgbench, sysbench and the floor on one machine in one run; writes docs/benchmarks.md,
docs/swap.md and docs/order-entry-speed.md, and all figures into bench/figures.

Not part of the tests: it takes some forty minutes and wants a quiet machine.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

from bench import (
    connections,
    fleet,
    loading,
    merging,
    observing,
    options,
    order_entry,
    page,
    record,
    replaying,
    speed,
    swap,
    sysbench,
    truth,
)
from bench.measures import Bench, Figure, Measure
from bench.page import BENCHMARKS, ORDER_ENTRY, SWAP
from bench.programs import Failed, build_floor, find_programs
from bench.record import Conditions, Machine
from pgtrial.evidence.collect.collect import collect
from pgtrial.loads.data.pgbench_tables import PgbenchTables
from pgtrial.model.study.design import Design
from pgtrial.model.study.spec import StudySpec
from pgtrial.servers.arm import Needs
from pgtrial.servers.arms import make_arms
from pgtrial.servers.installations import resolve
from pgtrial.servers.workspace import Workspace

MEASURES: dict[str, Measure] = {
    "instructions": speed.instructions,
    "throughput": speed.throughput,
    "ceiling": speed.ceiling,
    "memory": connections.memory,
    "connecting": connections.connecting,
    "loading": loading.loading,
    "latencies": truth.latencies,
    "schedule": truth.schedule,
    "options": options.options,
    "observing": observing.observing,
    "merging": merging.merging,
    "replaying": replaying.replaying,
    "fleet": fleet.fleet,
    "sysbench": sysbench.tests,
    "sysbench-prepare": sysbench.prepare,
    "sysbench-memory": sysbench.memory,
}
PAGES = ((BENCHMARKS, MEASURES), (SWAP, swap.MEASURES), (ORDER_ENTRY, order_entry.MEASURES))
SCALE = 20
SETTINGS = {"shared_buffers": "1GB", "max_wal_size": "8GB", "max_connections": "1100"}
DOCS = Path(__file__).parents[1] / "docs"
FIGURES = Path(__file__).parent / "figures"


def main() -> None:
    """Measure and write the page."""
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    known = [name for _, measures in PAGES for name in measures]
    parser.add_argument("--only", help=f"measures to take, by commas: {', '.join(known)}")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=int, default=2, help="length of a run")
    parser.add_argument("--directory", type=Path, help="where to write all (default: pages to docs, figures to bench)")
    parser.add_argument("--before", type=Path, help="an earlier build of the engine, measured in the same rounds")
    given = parser.parse_args()
    wanted = given.only.split(",") if given.only else known
    if unknown := set(wanted) - set(known):
        parser.error(f"there is no measure {', '.join(sorted(unknown))}")
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-", dir="/tmp")))
        workspace = stack.enter_context(Workspace())
        server = resolve("18")
        spec = StudySpec.model_validate(
            {"arms": {"server": {"settings": SETTINGS}, "unused": {}}, "load": {"scale": SCALE}}
        )
        arm = make_arms(Design(spec), workspace)["server"]
        stack.callback(arm.close)
        arm.check(Needs.of(Design(spec)))
        arm.prepare(PgbenchTables(SCALE), report)
        target = stack.enter_context(arm.serve(PgbenchTables(SCALE), scratch / "server.log", {}))
        machine = Machine(collect("server", target, arm.data_directory).facts, server.version, SCALE, SETTINGS)
        programs = find_programs(server, build_floor(scratch), SCALE, given.before)
        conditions = Conditions(machine, given.rounds, given.seconds)
        for described, measures in PAGES:
            bench = Bench(programs, target, scratch, given.rounds, given.seconds, report, arm.data_directory)
            taken = {name: measure for name, measure in measures.items() if name in wanted}
            if figures := dict(_figures(bench, taken)):
                written = (given.directory or DOCS) / f"{described.name}.md"
                page.write(written, described, conditions, figures, bench.skipped)
                record.write(
                    (given.directory or FIGURES) / f"{described.name}.json", conditions, figures, bench.skipped
                )
                report(f"wrote {written}")


def _figures(bench: Bench, measures: Mapping[str, Measure]) -> Iterator[tuple[str, list[Figure]]]:
    for name, measure in measures.items():
        report(f"{name}:")
        try:
            yield name, list(measure(bench))
        except Failed as failure:
            report(f"  not measured: {failure}")


def report(line: str) -> None:
    """Prints a line about the progress to the standard error, so that the figures can be redirected."""
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
