"""Reads the results of a trial from its server, after the loads of all trials that run together have ended."""

from __future__ import annotations

import psycopg

from pgtrial.conduct.packs import check, measure
from pgtrial.conduct.trial.counters import ServerCounters
from pgtrial.conduct.trial.kinds.watch import LoadWatch
from pgtrial.conduct.trial.order import TrialOrder
from pgtrial.conduct.trial.own_metrics import read_after_load
from pgtrial.conduct.trial.ready import check_conditions
from pgtrial.conduct.trial.results import Collected, Loaded, sentence
from pgtrial.conduct.trial.sessions import LabSessions
from pgtrial.conduct.trial.unsent import check_sent
from pgtrial.evidence.observe import views
from pgtrial.evidence.observe.plans import nodes_of
from pgtrial.loads.target import Target
from pgtrial.model.units import patience_s
from pgtrial.servers.arm import timed


def collect(
    order: TrialOrder,
    loaded: Loaded,
    sessions: LabSessions,
    counters: ServerCounters,
    watch: LoadWatch,
    *,
    measured_since: float | None,
) -> Collected:
    """Returns how the server's counters have changed over the measured part, the sizes of relations, the plans of
    statements, and the number that a pack (a workload in a folder of SQL files) measures by its measure.sql.

    `loaded` is the result of the load, which has ended. `measured_since` is the start of the measured part, by
    time.monotonic(). Raises StudyError if the load has sent no statement to the server.
    """
    found = Collected()
    target, checkpoint = sessions.target, sessions.checkpoint
    with found.failing():
        with timed(found.seconds, "collect"):
            checkpoint.close()
            if sessions.reader.closed and watch.restarts:
                sessions.reopen()
            found.checkpoint_s = checkpoint.duration_s
            found.note(checkpoint.note(measured_since))
            found.not_permitted += [checkpoint.not_permitted] if checkpoint.not_permitted else []
            try:
                _read_server(order, sessions, counters, watch, found)
                _take_plans(order, target, found)
            except psycopg.OperationalError as error:
                found.lost = sentence(error)
        lost = loaded.lost or found.lost
        if lost is not None and patience_s(order.load.on_server_loss) is None:
            found.fail(lost)
        elif lost is not None:  # if the study waits for lost servers, the load decides whether the trial has failed
            gone = "the lab's own session was lost with the server, and with it the server's counters"
            found.note(f"{gone}: {lost}")
        if loaded.failed is None and found.failed is None:
            check_conditions(order, target, "after", found)
            if order.pack is not None:
                with timed(found.seconds, "check"):
                    check(order.pack, target, "after the load")
                with timed(found.seconds, "measure"):
                    found.quality = measure(order.pack, target)
            check_sent(order, loaded.outcome, loaded.deltas | found.deltas)
    return found


def _read_server(
    order: TrialOrder, sessions: LabSessions, counters: ServerCounters, watch: LoadWatch, found: Collected
) -> None:
    if not order.shared_server:
        counters.wait_for_clients()
    found.job = watch.end()
    found.deltas = counters.changes()
    found.relations = views.read_relations(sessions.reader, order.data.relations(sessions.reader))
    for metric in read_after_load(order.metrics, sessions.target):
        found.take(metric)


def _take_plans(order: TrialOrder, target: Target, found: Collected) -> None:
    """Reads the plans of the load's statements. This comes after everything else was read, since the short run that
    finds the statements may change rows."""
    if order.statements is None:
        return
    statements = order.statements(target)
    # the role of the load explains the statements, since planning can execute functions that belong to the data
    with target.connect_as_load() as reader:
        plans = statements.plans(reader)
    if order.with_drawn_statistics:
        found.plan_nodes = {text: nodes_of(statement.plan) for text, statement in plans.items() if statement.plan}
    if order.planned.block > 0:
        return
    found.plans = plans
    found.unplanned = not statements.are_complete
    if statements.left_out:
        kept = len(statements.sent)
        found.note(
            f"only the first {kept} statements of the load have plans; {statements.left_out} more are not explained"
        )
