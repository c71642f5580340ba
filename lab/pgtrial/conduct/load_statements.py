"""Which statements the load of a first block sends, as far as files list them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from pgtrial.conduct.engine_options import front_end, scripts_of
from pgtrial.evidence.observe.plans import SentStatement, without_values
from pgtrial.evidence.observe.statements import MOST_STATEMENTS, Statements, by_text
from pgtrial.files.reading import read_bytes
from pgtrial.loads.script_commands import ScriptCommand, script_commands
from pgtrial.loads.sql_files import statements
from pgtrial.model.errors import StudyError
from pgtrial.model.records.load_point import LoadPoint
from pgtrial.model.records.plan import PlannedTrial
from pgtrial.model.records.suite import SuiteLoad
from pgtrial.model.study.suites import QUERY_ENDING
from pgtrial.store.directory import StudyDirectory


def statements_of(
    study: StudyDirectory, due: PlannedTrial, values: Mapping[str, Path] | None = None
) -> Statements | None:
    """Returns what is known of the statements before a trial; None if they are not to be explained.

    `values` are the files of which variables of scripts have values.
    """
    load, point = study.spec.load, study.plan.load_points[due.load_point]
    if due.block > 0 or not load.observe or load.replays or load.runs_job or load.runs_programs:
        return None
    return listed_statements(point, study.script(point), values or {}, study.plan.seed) if are_listed(point) else None


def are_listed(point: LoadPoint) -> bool:
    """True if files list the statements of a load. The statements of a job have no plans to compare."""
    return front_end(point) in ("pgbench", "suite") and point.job is None


def listed_statements(point: LoadPoint, script: Path | None, values: Mapping[str, Path], seed: int) -> Statements:
    """Returns the statements of pgbench's scripts, or one for each query of a suite; `script` as for `engine_options`.

    All arms have the same values, since plans depend on them: those that a client draws with this seed.
    """
    if point.suite is not None and script is not None:
        return Statements(_of_suite(point.suite, script), are_complete=True)
    listed = by_text(_listed(point, script, values, seed))
    return Statements(listed, are_complete=0 < len(listed) <= MOST_STATEMENTS)


def known_statements(point: LoadPoint, script: Path | None) -> list[str]:
    """Returns the statements that files list, without values; `script` is as for `engine_options`."""
    if not are_listed(point) or point.programs:
        return []
    return [without_values(one.text) for one in listed_statements(point, script, {}, 1).sent.values()]


def _of_suite(suite: SuiteLoad, folder: Path) -> dict[str, SentStatement]:
    """Returns by query the longest statement of its file: the others set something for it."""
    texts = {query: read_bytes(folder / f"{query}{QUERY_ENDING}").decode() for query in suite.queries}
    parts = {query: [part.text for part in statements(text, {})] for query, text in texts.items()}
    return {query: SentStatement(max(of_query, key=len)) for query, of_query in parts.items() if of_query}


def _listed(point: LoadPoint, script: Path | None, values: Mapping[str, Path], seed: int) -> Iterator[SentStatement]:
    """The statements of scripts with the values of a client; none if the engine refuses them."""
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
