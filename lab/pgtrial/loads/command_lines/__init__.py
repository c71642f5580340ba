"""Builds the engine's command lines. There is a module for each kind of load, and for each front end (command of the
engine, such as `pgbench` or `sysbench`) that runs transactions."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pgtrial.loads.command_lines.command_line import Asked, CommandLine, CountableLine, UnlistedLine
from pgtrial.loads.command_lines.job import JobLine
from pgtrial.loads.command_lines.pgbench import OrderEntryLine, PgbenchLine
from pgtrial.loads.command_lines.replay import ReplayLine
from pgtrial.loads.command_lines.suite import SuiteLine
from pgtrial.loads.command_lines.sysbench import SysbenchLine
from pgtrial.loads.command_lines.tasks import TasksLine
from pgtrial.loads.engine import FrontEnd
from pgtrial.loads.load_makers import Each
from pgtrial.loads.turns import ALONE, Turn
from pgtrial.model.records.job import JobLoad
from pgtrial.model.records.load_point import LoadPoint
from pgtrial.model.records.replay import ReplayLoad
from pgtrial.model.records.suite import SuiteLoad
from pgtrial.model.records.tasks import TaskLoad
from pgtrial.model.study.load_section import LoadSection
from pgtrial.model.study.order_entry import ORDER_ENTRY

_OF_A_KIND: Mapping[str, CommandLine] = {
    TaskLoad.key: TasksLine(),
    ReplayLoad.key: ReplayLine(),
    SuiteLoad.key: SuiteLine(),
    JobLoad.key: JobLine(),
}
"""The command lines of kinds of load, by the key of the kind. For other loads, the name of the workload in the study
file decides which front end of the engine runs it."""

_PGBENCH, _SYSBENCH, _ORDER_ENTRY = PgbenchLine(), SysbenchLine(), OrderEntryLine()


def command_line(point: LoadPoint) -> CommandLine:
    """Returns the object that builds the engine's command lines for a load point (one load of the study, with its scale
    and number of clients)."""
    if (of_a_kind := _OF_A_KIND.get(point.kind.key)) is not None:
        return of_a_kind
    if point.workload == ORDER_ENTRY:
        return _ORDER_ENTRY
    return _SYSBENCH if point.sysbench else _PGBENCH


def front_end(point: LoadPoint) -> FrontEnd:
    """Returns the name of the engine's front end (its command, such as `pgbench`) that runs the workload of a load
    point."""
    return command_line(point).front_end


def engine_options(
    load: LoadSection,
    point: LoadPoint,
    seed: int,
    script: Path | None,
    machine: Each | None = None,
    *,
    turn: Turn = ALONE,
    values: Mapping[str, Path] | None = None,
) -> list[str]:
    """Returns the options of the engine for the whole load of a trial.

    `script` is the user's script file, or the folder of a pack or suite; None for a built-in workload. `values` are the
    files from which variables of scripts take their values. The number of threads is that of one engine, which
    `machine` describes; by default one engine runs on this machine.
    """
    asked = Asked(load, point, seed, script, machine or Each(), turn, values or {})
    return command_line(point).options(asked)


def short_options(load: LoadSection, point: LoadPoint, seed: int, script: Path | None) -> list[str]:
    """Returns the options for a short run with one client, which shows the statements of a load. The load must be a
    sysbench test, order entry or tasks, since the statements of other loads are known without a run."""
    line = command_line(point)
    assert isinstance(line, UnlistedLine), "files list the statements of the others, or nobody asks for them"
    return line.short_options(Asked(load, point, seed, script))


def counted_options(asked: Asked, transactions: int) -> list[str]:
    """Returns the options for a run in which one client executes this number of transactions. The load must consist of
    transactions, as `LoadKind.why_no_instructions` says."""
    line = command_line(asked.point)
    assert isinstance(line, CountableLine), "the study file refuses to count the instructions of other loads"
    return line.counted_options(asked, transactions)
