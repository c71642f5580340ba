"""Rehearses a client program: it runs one batch, and the lab tells the user if the server rolled back transactions."""

from __future__ import annotations

from pgtrial.conduct.preparation.kinds.rehearsed import LoadRehearsal
from pgtrial.conduct.preparation.rehearsal_failures import RehearsalFailure
from pgtrial.conduct.preparation.stage import Stage
from pgtrial.evidence.observe.views import read_counters
from pgtrial.loads.client_processes import count_clients, wait_for_clients_to_leave
from pgtrial.loads.programs.program import START_LIMIT_S, Program, program_order
from pgtrial.loads.target import Target
from pgtrial.model.records.load_point import LoadPoint
from pgtrial.model.study.servers import Server


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
