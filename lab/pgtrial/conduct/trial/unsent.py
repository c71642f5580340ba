"""Finds loads that send no statement to the server, so that their transactions measure only the client.

Scripts whose text already shows this are refused when the study is planned (`own_scripts.py`).
"""

from __future__ import annotations

from pgtrial.conduct.trial.order import TrialOrder
from pgtrial.conduct.trial.outcome import Outcome
from pgtrial.evidence.observe.views import Counters
from pgtrial.loads.command_lines import front_end
from pgtrial.loads.command_lines.pgbench import scripts_of
from pgtrial.loads.script_commands import script_commands
from pgtrial.model.errors import StudyError
from pgtrial.model.units import plural

_HARDLY = 0.1
"""If the server has counted fewer than this share of the client's transactions, the client has sent hardly any
statement.

Each transaction of the client that sends a statement is at least one transaction of the server.
"""


def check_sent(order: TrialOrder, outcome: Outcome, deltas: Counters) -> None:
    """Raises StudyError if transactions were measured, but none of them has sent a statement. `deltas` has the changes
    of the server's counters over the measured part.

    For sysbench the engine counts the statements, but not for pgbench. A pgbench load counts as sending nothing if the
    server has counted hardly any transactions, and all statements of the script are in branches that are not executed.
    """
    measured, point = outcome.measured, order.point
    if measured is None or measured.transactions == 0 or order.script is None:
        return
    kind = front_end(point)
    if kind == "sysbench":
        summary = outcome.done.get("measure") if outcome.done is not None else None
        queries = summary.get("queries") if summary else None
        if queries and not any(queries.get(name) for name in ("reads", "writes", "others", "errors")):
            raise _nothing_sent(order, measured.transactions, "")
    elif kind == "pgbench" and point.kind.repeats and point.kind.is_by_engine:
        counts = deltas.get("database", {})
        by_server = counts.get("xact_commit", measured.transactions) + counts.get("xact_rollback", 0)
        by_server -= deltas.get("sampler", {}).get("transactions", 0)
        if by_server < _HARDLY * measured.transactions and not _reaches_statements(order):
            raise _nothing_sent(
                order, measured.transactions, r"all statements are in \if branches that are not executed; "
            )


def _reaches_statements(order: TrialOrder) -> bool:
    """True if a client that begins with the trial's seed sends a statement in its first transactions."""
    seed = ["--random-seed", str(order.planned.seed)]
    options = [*scripts_of(order.point, order.script), "-M", order.point.protocol, *seed]
    return any(command.values for command in script_commands(options))


def _nothing_sent(order: TrialOrder, transactions: int, why: str) -> StudyError:
    return StudyError(
        f"{order.point.workload}: {plural(transactions, 'transaction')} of {order.planned.arm} sent no statement to "
        f"the server, so nothing of the server was measured: {why}correct the script"
    )
