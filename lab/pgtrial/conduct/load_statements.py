"""Which statements the load of a first block sends: those of pgbench's scripts, or what other arms' sessions ran."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from pgtrial.conduct.engine_options import front_end, scripts_of
from pgtrial.evidence.observe.statements import MOST_STATEMENTS, Statements, by_text
from pgtrial.files.reading import read_bytes
from pgtrial.loads.script_commands import script_commands
from pgtrial.loads.sql_files import statements
from pgtrial.model.errors import StudyError
from pgtrial.model.records.load_point import LoadPoint
from pgtrial.model.records.plan import PlannedTrial
from pgtrial.model.records.suite import SuiteLoad
from pgtrial.model.study.suites import QUERY_ENDING
from pgtrial.store.directory import StudyDirectory


def statements_of(study: StudyDirectory, due: PlannedTrial) -> Statements | None:
    """What is known of them before a trial; None: they are not to be explained."""
    load, point = study.spec.load, study.plan.load_points[due.load_point]
    if due.block > 0 or not load.observe or load.replays or load.runs_job or load.runs_programs:
        return None
    if are_listed(point):
        return listed_statements(point, study.script(point))
    stored = [trial for trial in study.trials() if trial.load_point == point]
    texts = {key: statement.text for trial in stored for key, statement in trial.statements.items()}
    return Statements(texts, are_complete=False)


def are_listed(point: LoadPoint) -> bool:
    """Whether files list the statements of a load."""
    return front_end(point) in ("pgbench", "suite")


def listed_statements(point: LoadPoint, script: Path | None) -> Statements:
    """Those of pgbench's scripts, or by query of a suite's files; `script` as for `engine_options`."""
    if point.suite is not None and script is not None:
        return Statements(_of_suite(point.suite, script), are_complete=True)
    listed = by_text(_listed(scripts_of(point, script)))
    return Statements(listed, are_complete=0 < len(listed) <= MOST_STATEMENTS)


def _of_suite(suite: SuiteLoad, folder: Path) -> dict[str, str]:
    """By query the longest statement of its file: the others set something for it."""
    texts = {query: read_bytes(folder / f"{query}{QUERY_ENDING}").decode() for query in suite.queries}
    parts = {query: [part.text for part in statements(text, {})] for query, text in texts.items()}
    return {query: max(of_query, key=len) for query, of_query in parts.items() if of_query}


def _listed(options: list[str]) -> list[str]:
    """The statements of scripts as the extended protocol sends them; none if the engine refuses them."""
    with suppress(StudyError):
        return [command.sql for command in script_commands(options) if command.sql is not None]
    return []
