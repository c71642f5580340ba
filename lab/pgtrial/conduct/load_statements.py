"""Which statements the load of a first block sends: those of pgbench's scripts, or what other arms' sessions ran."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from pgtrial.conduct.engine_options import front_end, scripts_of
from pgtrial.evidence.observe.statements import MOST_STATEMENTS, Statements, by_text
from pgtrial.loads.script_commands import script_commands
from pgtrial.model.errors import StudyError
from pgtrial.model.records.plan import LoadPoint, PlannedTrial
from pgtrial.store.directory import StudyDirectory


def statements_of(study: StudyDirectory, due: PlannedTrial) -> Statements | None:
    """What is known of them before a trial; None: they are not to be explained."""
    load, point = study.spec.load, study.plan.load_points[due.load_point]
    if due.block > 0 or not load.observe or load.replays or load.runs_job or load.runs_programs:
        return None
    if front_end(point) == "pgbench":
        return listed_statements(point, study.script(point))
    stored = [trial for trial in study.trials() if trial.load_point == point]
    texts = {key: statement.text for trial in stored for key, statement in trial.statements.items()}
    return Statements(texts, are_complete=False)


def listed_statements(point: LoadPoint, script: Path | None) -> Statements:
    """Those of pgbench's scripts; `script` as for `engine_options`."""
    listed = by_text(_listed(scripts_of(point, script)))
    return Statements(listed, are_complete=0 < len(listed) <= MOST_STATEMENTS)


def _listed(options: list[str]) -> list[str]:
    """The statements of scripts as the extended protocol sends them; none if the engine refuses them."""
    with suppress(StudyError):
        return [command.sql for command in script_commands(options) if command.sql is not None]
    return []
