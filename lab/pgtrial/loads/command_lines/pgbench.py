"""Builds the engine's command lines for pgbench scripts, packs (workloads in folders of SQL files) and order entry (the
transactions of TPC-C)."""

from __future__ import annotations

from pathlib import Path

from pgtrial.loads.command_lines.command_line import Asked, CountableLine, UnlistedLine
from pgtrial.model.records.load_point import LoadPoint
from pgtrial.model.records.pack import PackLoad
from pgtrial.model.units import patience_s


class PgbenchLine(CountableLine):
    """Builds the command line for pgbench scripts and packs, whose clients repeat them until the time is over."""

    front_end = "pgbench"
    lists_statements = True

    def options(self, asked: Asked) -> list[str]:
        turns = asked.turn.options(asked.seed)
        # the measured time begins after all clients have connected, however long that takes
        loop = ["--time-after-connecting", *closed_loop(asked, self.threads(asked))]
        return [*_work(asked), *loop, *turns]

    def counted_options(self, asked: Asked, transactions: int) -> list[str]:
        return [*_work(asked), *_one_client(asked, transactions)]


def _work(asked: Asked) -> list[str]:
    """Returns the options that name the scripts of a load, and the files with the values of their variables."""
    drawn = [f"--values={name}={path}" for name, path in asked.values.items()]
    return ["-n", *scripts_of(asked.point, asked.script), *drawn]


def _one_client(asked: Asked, transactions: int) -> list[str]:
    return ["-M", asked.point.protocol, "-c", "1", "-j", "1", "-t", str(transactions), *asked.seeded]


class OrderEntryLine(UnlistedLine):
    """Builds the command line for the transactions of order entry."""

    front_end = "order-entry"

    def options(self, asked: Asked) -> list[str]:
        turns = asked.turn.options(asked.seed)
        return ["run", *closed_loop(asked, self.threads(asked)), *_calls(asked), *turns]

    def counted_options(self, asked: Asked, transactions: int) -> list[str]:
        return ["run", *_one_client(asked, transactions), *_calls(asked)]


def _calls(asked: Asked) -> list[str]:
    return ["--procedures"] if asked.load.procedures else []


def closed_loop(asked: Asked, threads: int) -> list[str]:
    """Returns the options that the front ends for pgbench and order entry have in common: clients, threads, times,
    rate, and what to do after errors."""
    load, point = asked.load, asked.point
    warmup, duration = map(asked.turn.wall_s, load.phases_s)
    options = ["-M", point.protocol, "-c", str(point.clients), "-j", str(threads)]
    options += ["-T", f"{duration:.0f}", "--warmup", f"{warmup:g}", "--random-seed", str(asked.seed)]
    if point.rate is not None:
        options += ["-R", f"{point.rate:.10g}"]
    if load.max_tries is not None:
        options += ["--max-tries", str(load.max_tries)]
    if load.latency_limit is not None:
        options += ["-L", f"{load.latency_limit * 1000:.12g}"]
    if (patience := patience_s(load.on_server_loss)) is not None:
        options += ["--continue-on-error", "--wait-for-server", f"{patience:g}"]
    return options


def scripts_of(point: LoadPoint, script: Path | None) -> list[str]:
    """Returns the options of the front end pgbench that name the scripts of a load point, with their weights."""
    if script is None:
        return ["-b", point.workload]
    # for scripts of the user, pgbench does not find out the scale by itself
    scale = ["-s", str(point.scale)]
    if point.pack is not None:
        return pack_options(point.pack, script, point.whole_scale)
    if point.mix:
        return [*(word for name, weight in point.mix.items() for word in ("-f", f"{script / name}@{weight}")), *scale]
    # the weight is given, so that pgbench does not take an @ in the path for the beginning of a weight
    return ["-f", f"{script}@1", *scale]


def pack_options(pack: PackLoad, folder: Path, scale: int) -> list[str]:
    """Returns pgbench's options for a pack in a folder: its scripts with their weights, and its variables."""
    scripts = [word for file, weight in pack.scripts.items() for word in ("-f", f"{folder / file}@{weight}")]
    variables = [word for name, value in pack.variables.items() for word in ("-D", f"{name}={value}")]
    return [*scripts, "-s", str(scale), *variables]
