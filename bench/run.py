"""`make bench`: our client against pgbench on one server in one run, interleaved; writes docs/benchmarks.md.

Not part of the tests: it takes minutes and wants a quiet machine.
"""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

from pgtrial.arm.base import Needs, make_arms
from pgtrial.arm.connect import Target
from pgtrial.arm.servers import resolve
from pgtrial.arm.workspace import Workspace
from pgtrial.engine import engine_path
from pgtrial.facts.collect import collect
from pgtrial.study.spec import StudySpec

ROUNDS = 7
SECONDS = 3
SCALE = 20
PAGE = Path(__file__).parents[1] / "docs" / "benchmarks.md"
LOADS = (("select-only", 1), ("select-only", 8), ("select-only", 64), ("tpcb-like", 8))
INSTRUCTIONS = (("select-only", 1000, 6000), ("tpcb-like", 200, 1200))


@dataclass(frozen=True)
class Client:
    """A program that is pgbench."""

    name: str
    command: tuple[str, ...]


@dataclass(frozen=True)
class Run:
    """One run's figures: transactions per second and the client's own CPU, microseconds per transaction."""

    tps: float
    cpu_us: float


def main() -> None:
    """Measure and write the page."""
    server = resolve("18")
    clients = (Client("pgtrial", (str(engine_path()), "pgbench")), Client("pgbench", (str(server.bin / "pgbench"),)))
    setup = {"settings": {"shared_buffers": "1GB", "max_wal_size": "8GB", "max_connections": "200"}}
    spec = StudySpec.model_validate({"arms": {"server": setup, "unused": setup}, "load": {"scale": SCALE}})
    with Workspace() as workspace, tempfile.TemporaryDirectory() as scratch:
        arm = make_arms(spec, workspace)["server"]
        arm.check(Needs.of(spec))
        arm.prepare(SCALE, lambda line: print(line, file=sys.stderr))
        with arm.serve(SCALE, Path(scratch) / "server.log", {}) as target:
            facts = collect("server", target, arm.data_directory).facts
            figures = list(_compare(clients, target))
            counts = list(_count_instructions(clients, target, Path(scratch)))
        arm.close()
    PAGE.write_text(_page(facts, server.version, figures, counts))
    print(f"wrote {PAGE}")


def _compare(clients: tuple[Client, ...], target: Target) -> Iterator[tuple[str, int, dict[str, list[Run]]]]:
    """Every load, every client, in random order within each round."""
    for workload, number in LOADS:
        runs: dict[str, list[Run]] = {client.name: [] for client in clients}
        for round_number in range(ROUNDS):
            for client in random.sample(clients, len(clients)):
                runs[client.name].append(_run(client, target, workload, number))
            print(f"{workload}, {number} clients: round {round_number + 1} of {ROUNDS}", file=sys.stderr)
        yield workload, number, runs


def _run(client: Client, target: Target, workload: str, number: int) -> Run:
    options = ["-n", "-b", workload, "-M", "prepared", "-c", str(number), "-j", "1", "-T", str(SECONDS)]
    process = subprocess.Popen(
        [*client.command, *options],
        env=_environment(target),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    text = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        raise SystemExit(f"{client.name} failed with status {os.waitstatus_to_exitcode(status)}")
    transactions, tps = int(_number(r"actually processed: (\d+)", text)), _number(r"tps = ([\d.]+)", text)
    return Run(tps, 1e6 * (usage.ru_utime + usage.ru_stime) / transactions)


def _count_instructions(
    clients: tuple[Client, ...], target: Target, scratch: Path
) -> Iterator[tuple[str, dict[str, float]]]:
    """User-space instructions per transaction: the difference of two counts, so that start and end cancel out."""
    if shutil.which("valgrind") is None:
        print("valgrind is not here: instructions are not counted", file=sys.stderr)
        return
    for workload, few, many in INSTRUCTIONS:
        found = {}
        for client in clients:
            counted = [_instructions(client, target, workload, number, scratch) for number in (few, many)]
            found[client.name] = (counted[1] - counted[0]) / (many - few)
        yield workload, found


def _instructions(client: Client, target: Target, workload: str, transactions: int, scratch: Path) -> int:
    valgrind = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={scratch / 'callgrind.out'}"]
    options = ["-n", "-b", workload, "-M", "prepared", "-c", "1", "-t", str(transactions)]
    done = subprocess.run(
        [*valgrind, *client.command, *options], env=_environment(target), capture_output=True, text=True, check=True
    )
    return int(_number(r"Collected : (\d+)", done.stderr))


def _number(pattern: str, text: str) -> float:
    found = re.search(pattern, text)
    if found is None:
        raise SystemExit(f"no line like {pattern!r} in:\n{text}")
    return float(found[1])


def _environment(target: Target) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], **target.environment()}


def _page(
    facts: dict[str, dict[str, Any]],
    version: str,
    figures: list[tuple[str, int, dict[str, list[Run]]]],
    counts: list[tuple[str, dict[str, float]]],
) -> str:
    cpu, memory, system = facts["cpu"], facts["memory"], facts["os"]
    machine = json.dumps({"cpu": cpu.get("model"), "cpus": cpu.get("logical"), "kernel": system.get("kernel")})
    lines = [
        "# Benchmarks of the load engine",
        "",
        f"Written by `make bench` on {datetime.now(UTC):%Y-%m-%d}: one run, {ROUNDS} rounds of {SECONDS} s, the two "
        f"clients in random order in each round. PostgreSQL {version}, scale {SCALE}, shared_buffers 1GB, prepared "
        "statements, Unix socket, one job; client and server on the same machine. Figures are medians with the lowest "
        "and highest in brackets; ratios are taken within a round.",
        "",
        f"Machine: `{machine}`, memory {memory.get('total_mb', 0) / 1024:.0f} GiB.",
        "",
        "| load | clients | tps pgtrial | tps pgbench | ratio | CPU us/transaction pgtrial | pgbench | ratio |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for workload, number, runs in figures:
        ours, theirs = runs["pgtrial"], runs["pgbench"]
        tps = [a.tps / b.tps for a, b in zip(ours, theirs, strict=True)]
        used = [a.cpu_us / b.cpu_us for a, b in zip(ours, theirs, strict=True)]
        lines.append(
            f"| {workload} | {number} | {_spread([r.tps for r in ours], 0)} | {_spread([r.tps for r in theirs], 0)} "
            f"| {_spread(tps, 2)} | {_spread([r.cpu_us for r in ours], 1)} | {_spread([r.cpu_us for r in theirs], 1)} "
            f"| {_spread(used, 2)} |"
        )
    if counts:
        lines += [
            "",
            "User-space instructions per transaction, one client "
            "(`valgrind --tool=callgrind`, difference of two counts):",
            "",
            "| load | pgtrial | pgbench | ratio |",
            "|---|---|---|---|",
        ]
        for workload, found in counts:
            ratio = found["pgtrial"] / found["pgbench"]
            lines.append(f"| {workload} | {found['pgtrial']:,.0f} | {found['pgbench']:,.0f} | {ratio:.2f} |")
    return "\n".join(lines) + "\n"


def _spread(values: list[float], places: int) -> str:
    low, middle, high = (f"{value:,.{places}f}" for value in (min(values), median(values), max(values)))
    return f"{middle} ({low}..{high})"


if __name__ == "__main__":
    main()
