"""The rehearsal of a client program: one batch of it, and how many transactions the server rolled back meanwhile."""

from __future__ import annotations

from pgtrial.conduct.kinds.rehearsed import LoadRehearsal
from pgtrial.conduct.rehearsal_failures import RehearsalFailure
from pgtrial.conduct.stage import Stage
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
            stage.say(
                f"the client program of {stage.arm.name}: {rolled_back:,} of {transactions:,} transactions in its "
                "rehearsal were rolled back; errors that a program catches and does not report are no speed"
            )
        return []


def _one_batch(setup: Server, target: Target) -> tuple[int, int]:
    """Runs one batch of a program. Returns its transactions, and those of them that the server rolled back.

    Transactions of the lab's own session are among the former. Raises what `Program` raises, and psycopg.Error.
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
