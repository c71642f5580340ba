"""The process that makes the load of a trial: the engine, a job's program or an arm's client program."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from pgtrial.conduct import leftovers
from pgtrial.conduct.course import Course
from pgtrial.conduct.kinds import job
from pgtrial.loads.command_lines import engine_options, front_end
from pgtrial.loads.job_command import CommandRun
from pgtrial.loads.load_makers import LoadOrder
from pgtrial.loads.load_run import LoadRun
from pgtrial.loads.programs.program import program_order
from pgtrial.loads.programs.run import ProgramRun
from pgtrial.loads.target import Target
from pgtrial.machines.cpus import running_on
from pgtrial.model.errors import StudyError
from pgtrial.servers.arm import Arm
from pgtrial.store.programs import check_programs_unchanged


def _folder_of(course: Course) -> Path | None:
    """Where the files of a workload of the study's own are."""
    has_folder = course.pack is not None or course.point.kind.folder is not None or bool(course.point.mix)
    return course.script if course.script is None or has_folder else course.script.parent


@contextmanager
def _command(course: Course, target: Target, words: Sequence[str]) -> Iterator[LoadRun]:
    events = course.directory / "engine.jsonl"
    with running_on(course.load.cpus), CommandRun(words, target, events_file=events, inbox=course.inbox) as run:
        yield run


@contextmanager
def start_engine(course: Course, target: Target) -> Iterator[LoadRun]:
    """Start the engine of a trial, or the program of a job."""
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
    words = job.command_of(course.point)
    started = course.maker.started(order) if words is None else _command(course, target, words)
    with started as run:
        if run.pid is not None:
            leftovers.remember(course.directory, run.pid)
        yield run
    leftovers.forget(course.directory)


@contextmanager
def start_program(course: Course, arm: Arm, target: Target) -> Iterator[LoadRun]:
    """The arm's client program. Raises StudyError if its files have changed, and TrialError."""
    assert course.rounds is not None
    check_programs_unchanged(arm.name, arm.setup)
    load = ProgramRun(
        program_order(arm.setup, target),
        course.rounds,
        events_file=course.directory / "engine.jsonl",
        inbox=course.inbox,
        waits=course.turn.slice_s is not None,
    )
    with ExitStack() as stack:
        with running_on(course.load.cpus):
            run = stack.enter_context(load)
        leftovers.remember(course.directory, run.pid)
        yield run
    leftovers.forget(course.directory)


@contextmanager
def probing(course: Course, target: Target) -> Iterator[LoadRun]:
    """The engine of a probe. Raises StudyError if it refuses a script of the study."""
    with start_engine(course, target) as run:
        yield run
        check_script(course, run)


def check_script(course: Course, run: LoadRun) -> None:
    """Raise StudyError if the engine did not begin for an error in the script, which a repetition would not correct."""
    if course.outcome.begun:
        return
    if course.script is not None and (complaint := run.message_about(str(course.script))) is not None:
        raise StudyError(f"the engine refuses a script of the study: {complaint}")
