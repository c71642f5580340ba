"""The scripts that the user has written: writes them into files for the engine, finds those of a load point, and checks
that the engine can read them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from pgtrial.loads.script_commands import ScriptCommand, script_commands
from pgtrial.loads.sql_files import objection, reads_rows, statements
from pgtrial.model import marks
from pgtrial.model.errors import StudyError
from pgtrial.model.records.load_point import LoadPoint
from pgtrial.model.study.design import Design
from pgtrial.model.study.spec import StudySpec
from pgtrial.store.temporary import temporary_folder

_EMPTY = "empty command list"
"""The beginning of pgbench's error message about a script that is empty or has only comments."""


def check_scripts(design: Design) -> None:
    """Checks the scripts of a study by letting the engine read them. Raises StudyError with the user's file and the
    line of an error."""
    spec = design.spec
    for name in spec.load.kind.scripts_run_once(spec):
        _check_job(
            f"{marks.key('load', 'workload')}: {spec.origin(name)}", spec.scripts[name], "write what the job does"
        )
    if undo := spec.load.job.undo_sql:
        _check_job(marks.key("load.job", "undo"), undo, 'write what undoes the job, or "none"')
    scripts = _scripts_of(design)
    if scripts:
        with written_scripts(spec) as folder:
            _check_statements(design, {script: commands_of(spec, folder, script) for script in scripts})


def _check_job(location: str, text: str, what: str) -> None:
    """Raises StudyError if the SQL of a job, or the SQL that undoes the job, has no statement, or a statement that is
    not possible in a job. In the message, `location` names the SQL, and `what` is the advice what to write there."""
    todo = statements(text, {})
    if not todo:
        raise StudyError(f"{location} has no statement; {what}")
    for statement in todo:
        against = objection(statement.text)
        if reads_rows(statement.text):
            against = "COPY ... FROM STDIN gets no rows in a job; name a file on the server, COPY ... FROM '/tmp/rows'"
        if against is not None:
            raise StudyError(f"{location}, line {statement.line}: {against}")


def _check_statements(design: Design, commands: Mapping[str, Sequence[ScriptCommand]]) -> None:
    """Raises StudyError if no script of a load has an SQL statement. `commands` has the commands of each script.

    One of several scripts may have no statement, such as a script that only sleeps.
    """
    spec = design.spec
    for point in design.load_points:
        names = scripts_at(spec, point) if point.kind.repeats else point.kind.scripts_beside
        for load in [[name] for name in names] if point.of_arms else [names]:
            own = [name for name in load if name in commands]
            if own and not any(command.sql for name in own for command in commands[name]):
                raise StudyError(
                    f"{marks.heading('load')}{' and '.join(map(spec.origin, own))}: there is no SQL statement, so the "
                    "load would send nothing to the server; write a statement that ends in a semicolon"
                )


@contextmanager
def written_scripts(spec: StudySpec) -> Iterator[Path]:
    """Writes the scripts of a study into a temporary folder, which exists within the context."""
    with temporary_folder() as folder:
        for script, text in spec.scripts.items():
            (folder / script).parent.mkdir(exist_ok=True)
            (folder / script).write_bytes(text.encode())
        yield folder


def _scripts_of(design: Design) -> list[str]:
    """Returns the names of all pgbench scripts of a study. The name of a pack's script begins with the folder of the
    pack."""
    return list(dict.fromkeys(script for point in design.load_points for script in scripts_at(design.spec, point)))


def scripts_at(spec: StudySpec, point: LoadPoint) -> list[str]:
    """Returns the names of the pgbench scripts of a load point. The name of a pack's script begins with the folder of
    the pack."""
    if point.pack is not None:
        return [f"{point.pack.name}/{script}" for script, weight in point.pack.scripts.items() if weight]
    if point.of_arms:
        return [*point.script_names, *(name for name in point.kind.scripts_beside if name in spec.scripts)]
    if point.mix:
        return [script for script, weight in point.mix.items() if weight]
    names = [point.workload, *point.kind.scripts_beside]
    return [name for name in names if name in spec.scripts and not point.sysbench]


def commands_of(spec: StudySpec, folder: Path, script: str) -> list[ScriptCommand]:
    """Returns the commands of a script, as the engine reads them. Raises StudyError with the user's file and the line
    of an error."""
    try:
        return script_commands(["-M", spec.load.protocol, "-f", f"{folder / script}@1"])
    except StudyError as error:
        words = f"{error}".replace(str(folder / script), spec.origin(script))
        if words.startswith(_EMPTY):
            raise StudyError(
                f"{marks.heading('load')}{spec.origin(script)} has no command; write a statement that ends in a "
                "semicolon"
            ) from None
        raise StudyError(f"{marks.heading('load')}{words}; correct the script") from None
