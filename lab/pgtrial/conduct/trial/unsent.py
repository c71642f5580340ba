"""Finds loads that send no statement to the server, so that their transactions measure only the client.

Scripts whose text already shows this are refused when the study is planned (`own_scripts.py`).
"""

from __future__ import annotations

from pgtrial.conduct.trial.running_trial import RunningTrial
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


def check_sent(trial: RunningTrial) -> None:
    """Raises StudyError if transactions were measured, but none of them has sent a statement.

    For sysbench the engine counts the statements, but not for pgbench. A pgbench load counts as sending nothing if the
    server has counted hardly any transactions, and all statements of the script are in branches that are not executed.
    """
    measured, point = trial.outcome.measured, trial.point
    if trial.reason is not None or measured is None or measured.transactions == 0 or trial.script is None:
        return
    kind = front_end(point)
    if kind == "sysbench":
        summary = trial.outcome.done.get("measure") if trial.outcome.done is not None else None
        queries = summary.get("queries") if summary else None
        if queries and not any(queries.get(name) for name in ("reads", "writes", "others", "errors")):
            raise _nothing_sent(trial, measured.transactions, "")
    elif kind == "pgbench" and point.kind.repeats and point.kind.is_by_engine:
        counts = trial.deltas.get("database", {})
        by_server = counts.get("xact_commit", measured.transactions) + counts.get("xact_rollback", 0)
        by_server -= trial.deltas.get("sampler", {}).get("transactions", 0)
        if by_server < _HARDLY * measured.transactions and not _reaches_statements(trial):
            raise _nothing_sent(
                trial, measured.transactions, r"all statements are in \if branches that are not executed; "
            )


def _reaches_statements(trial: RunningTrial) -> bool:
    """True if a client that begins with the trial's seed sends a statement in its first transactions."""
    seed = ["--random-seed", str(trial.planned.seed)]
    options = [*scripts_of(trial.point, trial.script), "-M", trial.point.protocol, *seed]
    return any(command.values for command in script_commands(options))


def _nothing_sent(trial: RunningTrial, transactions: int, why: str) -> StudyError:
    return StudyError(
        f"{trial.point.workload}: {plural(transactions, 'transaction')} of {trial.planned.arm} sent no statement to "
        f"the server, so nothing of the server was measured: {why}correct the script"
    )
