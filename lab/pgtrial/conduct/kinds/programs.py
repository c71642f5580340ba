"""Runs and observes a trial in which an arm's client program makes the load. The module also has the rehearsal of a
program: the program runs one batch, and the lab tells the user if the server rolled back transactions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager

from pgtrial.conduct.kinds.rehearsed import LoadRehearsal
from pgtrial.conduct.kinds.watch import LoadWatch
from pgtrial.conduct.rehearsal_failures import RehearsalFailure
from pgtrial.conduct.running_trial import RunningTrial
from pgtrial.conduct.stage import Stage
from pgtrial.conduct.start_load import remembered
from pgtrial.evidence.observe.views import read_counters
from pgtrial.loads.client_processes import count_clients, wait_for_clients_to_leave
from pgtrial.loads.load_run import LoadRun
from pgtrial.loads.programs.program import START_LIMIT_S, Program, program_order
from pgtrial.loads.programs.run import ProgramRun
from pgtrial.loads.target import Target
from pgtrial.machines.cpus import running_on
from pgtrial.model.records.load_point import LoadPoint
from pgtrial.model.study.servers import Server
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


class ProgramsRehearsal(LoadRehearsal):
    """The rehearsal of an arm's client program."""

    def on_copy(self, stage: Stage, point: LoadPoint) -> list[RehearsalFailure]:
        transactions, rolled_back = _one_batch(stage.arm.setup, stage.target)
        if rolled_back:
            stage.report(
                f"the client program of {stage.arm.name}: {rolled_back:,} of {transactions:,} transactions in its "
                "rehearsal were rolled back; if these are errors, the program must report them, or they count as speed"
            )
        return []


def _one_batch(setup: Server, target: Target) -> tuple[int, int]:
    """Runs one batch of a client program. Returns how many transactions the server counted during the batch, and how
    many of them it rolled back.

    The counts include transactions of the lab's own session. Raises the errors of `Program`, and psycopg.Error.
    """
    with target.connect() as session:
        clients = count_clients(session)
        before = read_counters(session)["database"]
        with Program(program_order(setup, target)) as program:
            program.run_batch(START_LIMIT_S)
        wait_for_clients_to_leave(session, clients)
        after = read_counters(session)["database"]
    committed, rolled_back = (int(after[name] - before[name]) for name in ("xact_commit", "xact_rollback"))
    return committed + rolled_back, rolled_back
