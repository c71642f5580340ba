"""Rehearses a load that is a job: its SQL runs on empty tables, and its program is looked for."""

from __future__ import annotations

from pgtrial.conduct.preparation.kinds.rehearsed import LoadRehearsal
from pgtrial.conduct.preparation.rehearsal_failures import RehearsalFailure
from pgtrial.conduct.preparation.stage import Stage
from pgtrial.conduct.trial.kinds.job import is_program, program_of
from pgtrial.conduct.trial.settle import empty_tables
from pgtrial.loads.command_lines.job import job_options
from pgtrial.loads.job_command import command_environment, missing_program
from pgtrial.loads.script_commands import run_once
from pgtrial.model.records.load_point import LoadPoint


class JobRehearsal(LoadRehearsal):
    """The rehearsal of a job. The job runs on empty tables, so that this takes little time."""

    def on_given(self, stage: Stage, point: LoadPoint) -> list[RehearsalFailure]:
        return [*stage.parse(point), *(_find_program(stage, point) if is_program(point) else [])]

    def on_copy(self, stage: Stage, point: LoadPoint) -> list[RehearsalFailure]:
        """Runs the script of the load beside the job once, then the job itself on empty tables."""
        beside = [name for name in point.kind.scripts_beside if name in stage.spec.scripts]
        failures = [failure for name in beside if (failure := stage.run_script(point, name)) is not None]
        with stage.target.for_load.connect() as session:
            empty_tables(session)
        return [*failures, *_try_job(stage, point)]


_NOT_FOR_WANT_OF_ROWS = ("0A", "25", "3F", "42", "58")
"""Classes of SQLSTATEs that do not depend on the rows: a statement that fails with such an error on empty tables also
fails on full tables."""


def _try_job(stage: Stage, point: LoadPoint) -> list[RehearsalFailure]:
    """Runs the SQL of a job on empty tables. This finds wrong names and syntax errors in less time than the job takes
    on full tables."""
    script = stage.script(point)
    if script is None:
        return _find_program(stage, point)
    limit_s = stage.no_longer_than(stage.spec.load.job.limit)
    failure = run_once("pgbench", ["-n", *job_options(script, point)], stage.target.environment(), limit_s)
    if failure is None or failure.sqlstate is None or not failure.sqlstate.startswith(_NOT_FOR_WANT_OF_ROWS):
        return []
    return [stage.failed(point.workload, failure)]


def _find_program(stage: Stage, point: LoadPoint) -> list[RehearsalFailure]:
    """Checks that the program of a job exists. Does not run the program, since its behaviour on empty tables would show
    little."""
    program = program_of(point, stage.arm)
    missing = missing_program(program.words, command_environment(stage.target)) if program is not None else None
    if program is None or missing is None:
        return []
    return [RehearsalFailure(f"{program.key}: there is no program {missing}", "correct the name, or write its path")]
