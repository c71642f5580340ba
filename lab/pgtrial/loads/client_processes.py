"""Counts the client processes of a database besides the lab's own, and waits until those of a load are gone."""

from __future__ import annotations

import time
from contextlib import suppress

import psycopg

from pgtrial.loads.target import Session, backend_type, value

_CLIENTS = """SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND {backend_type} = 'client backend' AND pid <> pg_backend_pid()"""
_COLLECTOR_DELAY_S = 0.6
"""How old the counters may be that a session reads before PostgreSQL 15, rounded up from half a second; seconds."""


def count_clients(session: Session) -> int:
    """Returns the number of client processes of this database besides this session; 0 if the role may not see any."""
    with suppress(psycopg.errors.InsufficientPrivilege):
        return int(value(session, _CLIENTS.format(backend_type=backend_type(session))))
    return 0


LEAVING_S = 30.0
"""How long the client processes of a load may take to end, seconds. They take milliseconds, unless the machine is
overloaded."""

LEAVING_AMONG_OTHERS_S = 3.0
"""The same on a given server during trials, where clients of others that have come meanwhile may never leave."""


def wait_for_clients_to_leave(session: Session, remaining: int, timeout_s: float = LEAVING_S) -> None:
    """Waits until at most `remaining` client processes are left: each reports its last counters when it ends.

    After that the cumulative views have these counters. If more clients are left after `timeout_s` seconds, the
    counters may lack theirs.
    """
    deadline = time.monotonic() + timeout_s
    while count_clients(session) > remaining and time.monotonic() < deadline:
        time.sleep(0.02)
    if session.info.server_version < 150000:
        time.sleep(_COLLECTOR_DELAY_S)
