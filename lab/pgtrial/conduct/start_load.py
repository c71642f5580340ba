"""Starts the engine, which makes the load of a trial unless the kind of load has another program for that."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path

from pgtrial.conduct import leftovers
from pgtrial.conduct.course import Course
from pgtrial.loads.command_lines import engine_options, front_end
from pgtrial.loads.load_makers import LoadOrder
from pgtrial.loads.load_run import LoadRun
from pgtrial.loads.target import Target
from pgtrial.model.errors import StudyError


def _folder_of(course: Course) -> Path | None:
    """Returns the folder with the files of the workload if the study has its own; None for a built-in workload."""
    has_folder = course.pack is not None or course.point.kind.folder is not None or bool(course.point.mix)
    return course.script if course.script is None or has_folder else course.script.parent


def start_engine(course: Course, target: Target) -> AbstractContextManager[LoadRun]:
    """Starts the engine of a trial."""
    order = LoadOrder(
        front_end(course.point),
        partial(
            engine_options,
            course.load,
            course.point,
            course.planned.seed,
            course.script,
            turn=course.turn,
            values=course.values,
        ),
        target,
        course.directory / "engine.jsonl",
        course.point.kind.most_engines(course.point.clients),
        _folder_of(course),
        course.load.cpus,
        course.inbox,
    )
    return remembered(course, course.maker.started(order))


@contextmanager
def remembered(course: Course, started: AbstractContextManager[LoadRun]) -> Iterator[LoadRun]:
    """Starts the process of a load, and records its process ID while it runs. If the lab is killed, the next start of
    the lab ends the recorded process."""
    with started as run:
        if run.pid is not None:
            leftovers.remember(course.directory, run.pid)
        yield run
    leftovers.forget(course.directory)


@contextmanager
def probing(course: Course, target: Target) -> Iterator[LoadRun]:
    """Starts the engine of a probe. Raises StudyError if the engine refuses a script of the study."""
    with start_engine(course, target) as run:
        yield run
        check_script(course, run)


def check_script(course: Course, run: LoadRun) -> None:
    """Raises StudyError if the engine did not begin because of an error in the script, since repeating the trial would
    not help."""
    if course.outcome.begun:
        return
    if course.script is not None and (complaint := run.message_about(str(course.script))) is not None:
        raise StudyError(f"the engine refuses a script of the study: {complaint}")
