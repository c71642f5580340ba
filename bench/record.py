"""Writes all figures of a run of `make bench`, also those without a goal: bench/figures has a file for each page."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.measures import Figure
from bench.sysbench import MANY

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
class Machine:
    """The machine of the measurements, as facts, with the server's version, scale and settings."""

    facts: Mapping[str, Mapping[str, Any]]
    version: str
    scale: int
    settings: Mapping[str, str]

    def describe(self) -> str:
        """Returns a paragraph that describes the machine."""
        cpu, memory, system = (self.facts.get(name, {}) for name in ("cpu", "memory", "os"))
        settings = ", ".join(f"{name} {value}" for name, value in self.settings.items())
        return (
            f"Machine: {cpu.get('model')}, {cpu.get('logical')} CPUs, "
            f"{memory.get('total_mb', 0) / 1024:.0f} GiB, kernel {system.get('kernel')}; clients and "
            f"servers share it. PostgreSQL and pgbench {self.version}, scale {self.scale}, {settings}, Unix sockets."
        )


@dataclass(frozen=True)
class Conditions:
    """The conditions of the measurements."""

    machine: Machine
    rounds: int
    seconds: int


def write(file: Path, conditions: Conditions, measures: Mapping[str, Sequence[Figure]], skipped: Sequence[str]) -> None:
    """Write the values of every round, in the unit of their figure, with the note and the commands of each measure."""
    record = {
        "measured": f"{datetime.now(UTC):%Y-%m-%d}",
        "machine": conditions.machine.describe(),
        "rounds": conditions.rounds,
        "seconds": conditions.seconds,
        "measures": [
            {
                "name": name,
                "title": TITLES[name],
                "note": NOTES[name],
                "figures": [
                    {
                        "what": figure.what,
                        "unit": figure.unit,
                        "goal": figure.goal.text if figure.goal else None,
                        "command": figure.command,
                        "values": figure.values,
                    }
                    for figure in figures
                ],
            }
            for name, figures in measures.items()
        ],
        "skipped": list(skipped),
    }
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(record, indent=1) + "\n")
