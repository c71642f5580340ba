"""Runs the load of a trial by an arm's client program instead of the engine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager

from pgtrial.conduct.trial.kinds.watch import LoadWatch
from pgtrial.conduct.trial.order import TrialOrder
from pgtrial.conduct.trial.start_load import remembered
from pgtrial.loads.load_run import LoadRun
from pgtrial.loads.programs.program import program_order
from pgtrial.loads.programs.run import ProgramRun
from pgtrial.loads.target import Target
from pgtrial.machines.cpus import running_on
from pgtrial.store.programs import check_programs_unchanged


class ProgramsWatch(LoadWatch):
    """The lab's work in a trial of client programs: it starts the program of the arm instead of the engine."""

    def started(self, target: Target) -> AbstractContextManager[LoadRun]:
        return remembered(self._order.directory, _program(self._order, target))


@contextmanager
def _program(order: TrialOrder, target: Target) -> Iterator[LoadRun]:
    """Runs the client program of an arm within the context. Raises StudyError if files of the program have changed
    since the study was planned, and TrialError if the program fails."""
    assert order.rounds is not None
    check_programs_unchanged(order.arm.name, order.arm.setup)
    load = ProgramRun(
        program_order(order.arm.setup, target),
        order.rounds,
        events_file=order.directory / "engine.jsonl",
        inbox=order.inbox,
        waits=order.turn.slice_s is not None,
    )
    with ExitStack() as stack:
        with running_on(order.load.cpus):
            run = stack.enter_context(load)
        yield run
