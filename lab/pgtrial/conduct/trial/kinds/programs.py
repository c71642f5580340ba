"""Runs the load of a trial by an arm's client program instead of the engine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager

from pgtrial.conduct.trial.kinds.watch import LoadWatch
from pgtrial.conduct.trial.running_trial import RunningTrial
from pgtrial.conduct.trial.start_load import remembered
from pgtrial.loads.load_run import LoadRun
from pgtrial.loads.programs.program import program_order
from pgtrial.loads.programs.run import ProgramRun
from pgtrial.loads.target import Target
from pgtrial.machines.cpus import running_on
from pgtrial.servers.arm import Arm
from pgtrial.store.programs import check_programs_unchanged


class ProgramsWatch(LoadWatch):
    """The lab's work in a trial of client programs: it starts the program of the arm instead of the engine."""

    def started(self, trial: RunningTrial, arm: Arm, target: Target) -> AbstractContextManager[LoadRun]:
        return remembered(trial, _program(trial, arm, target))


@contextmanager
def _program(trial: RunningTrial, arm: Arm, target: Target) -> Iterator[LoadRun]:
    """Runs the client program of an arm within the context. Raises StudyError if files of the program have changed
    since the study was planned, and TrialError if the program fails."""
    assert trial.rounds is not None
    check_programs_unchanged(arm.name, arm.setup)
    load = ProgramRun(
        program_order(arm.setup, target),
        trial.rounds,
        events_file=trial.directory / "engine.jsonl",
        inbox=trial.inbox,
        waits=trial.turn.slice_s is not None,
    )
    with ExitStack() as stack:
        with running_on(trial.load.cpus):
            run = stack.enter_context(load)
        yield run
