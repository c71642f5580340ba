"""Finds the statements that a load sends, so that their plans can be recorded in the first block. They are listed in
files or, for other loads, observed in a short run of one client."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from pgtrial.evidence.observe.plans import SentStatement, without_values
from pgtrial.evidence.observe.statements import MOST_STATEMENTS, Statements, by_text
from pgtrial.files.reading import read_bytes
from pgtrial.loads.command_lines import command_line, front_end, short_options
from pgtrial.loads.command_lines.pgbench import scripts_of
from pgtrial.loads.process import lua_environment
from pgtrial.loads.script_commands import ScriptCommand, script_commands
from pgtrial.loads.sent_statements import SentText, sent_statements
from pgtrial.loads.sql_files import statements
from pgtrial.loads.target import Target
from pgtrial.model.errors import StudyError
from pgtrial.model.records.load_point import LoadPoint
from pgtrial.model.records.plan import PlannedTrial
from pgtrial.model.study.load_section import LoadSection
from pgtrial.model.study.order_entry import ORDER_ENTRY
from pgtrial.store.directory import StudyDirectory

FindStatements = Callable[[Target], Statements]
"""A function that finds the statements of a load after the load has ended, on its server. Raises the errors of
EngineRun."""


def statements_of(
    study: StudyDirectory, due: PlannedTrial, values: Mapping[str, Path] | None = None
) -> FindStatements | None:
    """Returns a function that finds the statements of a trial's load, so that pgtrial can explain them (EXPLAIN).
    Returns None if the study records no plans in this trial.

    `values` has the files from which the variables of scripts take values, by the variable's name.
    """
    load, point = study.spec.load, study.plan.load_points[due.load_point].for_arm(due.arm)
    if not load.observe or not load.kind.has_plans:
        return None
    if due.block > 0 and not (study.plan.statistics == "drawn" and are_listed(point)):
        return None  # the plans of the first block are valid for all later blocks
    script, seed = study.script(point), study.plan.seed
    if not are_listed(point):
        return SentStatements(load, point, script, seed)
    listed = listed_statements(point, script, values or {}, seed)
    return lambda _: listed


@dataclass
class SentStatements:
    """Finds the statements of a load that are not listed in files, by a short run of one client. Arms that alternate
    share one object of this class.

    All arms use the same seed, so that the statements have the same values.
    """

    load: LoadSection
    point: LoadPoint
    script: Path | None
    seed: int
    found: Statements = field(default_factory=lambda: Statements({}, are_complete=False))

    def __call__(self, target: Target) -> Statements:
        """Returns the statements of the load. Each call runs the load for a moment, until such a run has sent a
        statement; later calls return the same result."""
        if not self.found.sent:
            environment = target.environment()
            if self.script is not None:
                environment |= lua_environment(self.script.parent)
            options = short_options(self.load, self.point, self.seed, self.script)
            self.found = self._of(sent_statements(front_end(self.point), options, environment))
        return self.found

    def _of(self, sent: list[SentText]) -> Statements:
        executions: dict[str, list[SentText]] = {}
        for one in sent:
            executions.setdefault(one.sql, []).append(one)
        every = by_text(_as_sent(text, self.point.protocol, of_text) for text, of_text in executions.items())
        kept = dict(islice(every.items(), MOST_STATEMENTS))
        # a script may send a statement so rarely that the short run misses it, and order entry has such statements
        sends_all = self.script is None and self.point.workload != ORDER_ENTRY
        return Statements(kept, are_complete=sends_all and 0 < len(every) == len(kept), left_out=len(every) - len(kept))


def _as_sent(text: str, protocol: str, executions: list[SentText]) -> SentStatement:
    """Returns the statement with this text, with the parameter values of its first executions."""
    known = [[value for value in one.values if value is not None] for one in executions if None not in one.values]
    return SentStatement(text, protocol, known, next((one.sent for one in executions if one.sent is not None), None))


def are_listed(point: LoadPoint) -> bool:
    """True if files list the statements that the engine sends for a load, so that pgtrial knows them without a short
    run."""
    return point.kind.is_by_engine and command_line(point).lists_statements


def listed_statements(point: LoadPoint, script: Path | None, values: Mapping[str, Path], seed: int) -> Statements:
    """Returns the statements of a load that files list: those of its pgbench scripts, or one for each query of a suite.
    `script` is the script file, or the folder of a suite or pack.

    The parameters have the values that a client draws with this seed. They are the same in all arms, since plans depend
    on them.
    """
    if script is not None and point.kind.query_files:
        return Statements(_of_queries(point.kind.query_files, script), are_complete=True)
    listed = by_text(_listed(point, script, values, seed))
    return Statements(listed, are_complete=bool(listed))


def known_statements(point: LoadPoint, script: Path | None) -> list[str]:
    """Returns the statements of a load that files list, with placeholders instead of values. `script` is the script
    file, or the folder of a suite or pack."""
    if not are_listed(point):
        return []
    return [without_values(one.text) for one in listed_statements(point, script, {}, 1).sent.values()]


def _of_queries(files: Mapping[str, str], folder: Path) -> dict[str, SentStatement]:
    """Returns the longest statement of each query's file, by the name of the query. Other statements in such a file
    only set something for the query."""
    texts = {query: read_bytes(folder / file).decode() for query, file in files.items()}
    parts = {query: [part.text for part in statements(text, {})] for query, text in texts.items()}
    return {query: SentStatement(max(of_query, key=len)) for query, of_query in parts.items() if of_query}


def _listed(point: LoadPoint, script: Path | None, values: Mapping[str, Path], seed: int) -> Iterator[SentStatement]:
    """Yields the statements of scripts with the values that a client of the load would draw. Yields nothing if the
    engine refuses the scripts."""
    drawn = [f"--values={name}={path}" for name, path in values.items()]
    scale = ["-s", f"{point.whole_scale}"] if script is None else []
    options = [*scripts_of(point, script), *scale, *drawn, "-M", point.protocol, "--random-seed", str(seed)]
    commands: list[ScriptCommand] = []
    with suppress(StudyError):
        commands = script_commands(options)
    for command in commands:
        if command.sql is not None:
            yield SentStatement(
                command.sql,
                point.protocol,
                command.values,
                next(iter(command.sent), None),
                hides_values=not values.keys().isdisjoint(command.variables),
            )
