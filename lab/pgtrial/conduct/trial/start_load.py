"""Starts the engine, which makes the load of a trial unless the kind of load has another program for that."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path

from pgtrial.conduct.trial import leftovers
from pgtrial.conduct.trial.running_trial import RunningTrial
from pgtrial.loads.command_lines import engine_options, front_end
from pgtrial.loads.load_makers import LoadOrder
from pgtrial.loads.load_run import LoadRun
from pgtrial.loads.target import Target
from pgtrial.model.errors import StudyError


def folder_of(script: Path | None) -> Path | None:
    """Returns the folder with the files of a workload; None for a built-in workload. `script` is the script file of the
    workload, or its folder if the workload consists of several files."""
    return script if script is None or script.is_dir() else script.parent


def start_engine(trial: RunningTrial, target: Target) -> AbstractContextManager[LoadRun]:
    """Starts the engine of a trial."""
    order = LoadOrder(
        front_end(trial.point),
        partial(
            engine_options,
            trial.load,
            trial.point,
            trial.planned.seed,
            trial.script,
            turn=trial.turn,
            values=trial.values,
        ),
        target,
        trial.directory / "engine.jsonl",
        trial.point.kind.most_engines(trial.point.clients),
        folder_of(trial.script),
        trial.load.cpus,
        trial.inbox,
    )
    return remembered(trial, trial.maker.started(order))


@contextmanager
def remembered(trial: RunningTrial, started: AbstractContextManager[LoadRun]) -> Iterator[LoadRun]:
    """Starts the process of a load, and records its process ID while it runs. If the lab is killed, the next start of
    the lab ends the recorded process."""
    with started as run:
        if run.pid is not None:
            leftovers.remember(trial.directory, run.pid)
        yield run
    leftovers.forget(trial.directory)


@contextmanager
def probing(trial: RunningTrial, target: Target) -> Iterator[LoadRun]:
    """Starts the engine of a probe. Raises StudyError if the engine refuses a script of the study."""
    with start_engine(trial, target) as run:
        yield run
        check_script(trial, run)


def check_script(trial: RunningTrial, run: LoadRun) -> None:
    """Raises StudyError if the engine did not begin because of an error in the script, since repeating the trial would
    not help."""
    if trial.outcome.begun:
        return
    if trial.script is not None and (complaint := run.message_about(str(trial.script))) is not None:
        raise StudyError(f"the engine refuses a script of the study: {complaint}")
