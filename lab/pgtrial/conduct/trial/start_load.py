"""Starts the engine, which makes the load of a trial unless the kind of load has another program for that."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path

from pgtrial.conduct.trial import leftovers
from pgtrial.conduct.trial.order import TrialOrder
from pgtrial.loads.command_lines import engine_options, front_end
from pgtrial.loads.load_makers import LoadOrder
from pgtrial.loads.load_run import LoadRun
from pgtrial.loads.target import Target
from pgtrial.model.errors import StudyError


def folder_of(script: Path | None) -> Path | None:
    """Returns the folder with the files of a workload; None for a built-in workload. `script` is the script file of the
    workload, or its folder if the workload consists of several files."""
    return script if script is None or script.is_dir() else script.parent


def start_engine(order: TrialOrder, target: Target) -> AbstractContextManager[LoadRun]:
    """Starts the engine of a trial."""
    load = LoadOrder(
        front_end(order.point),
        partial(
            engine_options,
            order.load,
            order.point,
            order.planned.seed,
            order.script,
            turn=order.turn,
            values=order.values,
        ),
        target,
        order.directory / "engine.jsonl",
        order.point.kind.most_engines(order.point.clients),
        folder_of(order.script),
        order.load.cpus,
        order.inbox,
    )
    return remembered(order.directory, order.maker.started(load))


@contextmanager
def remembered(directory: Path, started: AbstractContextManager[LoadRun]) -> Iterator[LoadRun]:
    """Starts the process of a load, and records its process ID in the directory of its trial while it runs. If the lab
    is killed, the next start of the lab ends the recorded process."""
    with started as run:
        if run.pid is not None:
            leftovers.remember(directory, run.pid)
        yield run
    leftovers.forget(directory)


def check_script(order: TrialOrder, run: LoadRun) -> None:
    """Raises StudyError if an engine that did not begin has refused the script, since repeating the trial would not
    help."""
    if order.script is not None and (complaint := run.message_about(str(order.script))) is not None:
        raise StudyError(f"the engine refuses a script of the study: {complaint}")
