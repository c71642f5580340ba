"""Brings a trial's server, which has just started, into the state in which its load begins."""

from __future__ import annotations

from pgtrial.conduct.packs import check
from pgtrial.conduct.trial.counters import leaving_s
from pgtrial.conduct.trial.kinds.watch import LoadWatch
from pgtrial.conduct.trial.order import TrialOrder
from pgtrial.conduct.trial.results import Ready, StepResult
from pgtrial.conduct.trial.sessions import LabSessions
from pgtrial.conduct.trial.settle import run_setup_sql, warm_relations
from pgtrial.evidence.collect.network import median_round_trip
from pgtrial.evidence.observe import views
from pgtrial.loads.client_processes import count_clients, wait_for_clients_to_leave
from pgtrial.loads.data.order_entry_tables import violated_condition
from pgtrial.loads.target import Target
from pgtrial.model.errors import TrialError
from pgtrial.model.study.order_entry import ORDER_ENTRY
from pgtrial.servers.arm import timed


def make_ready(order: TrialOrder, sessions: LabSessions, watch: LoadWatch) -> Ready:
    """Runs the arm's own SQL and the checks of the data, reads the relations into the cache, and measures their sizes.
    Returns what it has found. Raises StudyError if PostgreSQL refuses the arm's SQL."""
    found, arm = Ready(), order.arm
    target, session = sessions.target, sessions.reader
    with found.failing():
        check_conditions(order, target, "before", found)
        clients = count_clients(session)
        with timed(found.seconds, "warm"):
            run_setup_sql(target, arm.name, arm.setup)
        if order.pack is not None:
            with timed(found.seconds, "check"):
                check(order.pack, target, "before the load")
        with timed(found.seconds, "warm"):
            missed = warm_relations(target, arm.setup, order.data)
            # sessions that warmed the relations must not count as clients of others
            wait_for_clients_to_leave(session, clients, leaving_s(order))
            found.not_permitted += [missed] if missed else []
            if order.load.phases_s[0] == 0 or order.load.kind.searches_rate:
                sessions.checkpoint.issue()
        found.relations_before = views.read_relations(session, order.data.relations(session))
        found.table_created_s = watch.prepare()
        found.round_trip_us = median_round_trip(session)
        found.other_clients = count_clients(session)
    return found


def check_conditions(order: TrialOrder, target: Target, when: str, found: StepResult) -> None:
    """Checks the consistency conditions of order entry if the study asks for that, and adds the time that this took to
    `found`. Raises TrialError if the data violate one of them. `when` is `before` or `after`, for the message."""
    if not order.load.check or order.point.workload != ORDER_ENTRY:
        return
    with timed(found.seconds, "check"):
        violation = violated_condition(target)
    if violation is not None:
        raise TrialError(f"{when} the load {violation}")
