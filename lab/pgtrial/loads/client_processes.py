"""Counts the client backends of a database, without the backend of the lab's own session, and waits until the backends
of a load have ended."""

from __future__ import annotations

import time
from contextlib import suppress

import psycopg

from pgtrial.loads.target import Session, backend_type, value

_CLIENTS = """SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND {backend_type} = 'client backend' AND pid <> pg_backend_pid()"""
_COLLECTOR_DELAY_S = 0.6
"""The largest age, in seconds, of the counters that a session reads in versions before PostgreSQL 15, whose statistics
collector writes them twice per second. The value is rounded up."""


def count_clients(session: Session) -> int:
    """Returns the number of client backends of this database, without the backend of this session. Returns 0 if the
    role is not allowed to read pg_stat_activity."""
    with suppress(psycopg.errors.InsufficientPrivilege):
        return int(value(session, _CLIENTS.format(backend_type=backend_type(session))))
    return 0


LEAVING_S = 30.0
"""The longest time, in seconds, that pgtrial waits for the client backends of a load to end. They take milliseconds,
unless the machine is overloaded."""

LEAVING_AMONG_OTHERS_S = 3.0
"""The longest time, in seconds, that pgtrial waits during trials for client backends on a server of the user to end. It
is shorter than LEAVING_S, because other people's clients may have connected meanwhile and may never leave."""


def wait_for_clients_to_leave(session: Session, remaining: int, timeout_s: float = LEAVING_S) -> None:
    """Waits until at most `remaining` client backends are left. A backend reports its last counters to the cumulative
    statistics views when it ends.

    When the function returns, the views contain the counters of all backends that have ended. If more than `remaining`
    backends are still there after `timeout_s` seconds, their last counters may be missing.
    """
    deadline = time.monotonic() + timeout_s
    while count_clients(session) > remaining and time.monotonic() < deadline:
        time.sleep(0.02)
    if session.info.server_version < 150000:
        time.sleep(_COLLECTOR_DELAY_S)
