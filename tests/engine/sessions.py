"""The sessions of a server: waited for until they are there, or until all have left."""

from __future__ import annotations

import time
from collections.abc import Callable

from pgtrial.arm.connect import Target

TIMEOUT_S = 60.0

Look = Callable[[], bool]


def wait_until_left(target: Target) -> None:
    """Wait until nobody but who asks is in the target's database, so that its statistics are complete.

    A program that has ended leaves backends that are about to. They have places that the next clients may need, and
    tell what they did before they leave the list of sessions.
    """
    others = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    with target.connect() as connection:
        _wait(lambda: connection.execute(others).fetchone() == (0,), "there are other sessions")


def wait_until_running(target: Target, *, locked: bool = False) -> None:
    """Wait until a client's SELECT of an account has begun; if `locked`, until it waits for the table."""
    running = f"SELECT count(*) > 0 FROM pg_stat_activity WHERE {running_selects(locked=locked)}"
    with target.connect() as connection:
        _wait(lambda: connection.execute(running).fetchone() == (True,), "no client runs")


def running_selects(*, locked: bool) -> str:
    """The condition on pg_stat_activity. A client that was ended is no longer one that waits for the table."""
    waiting = " AND wait_event_type = 'Lock'" if locked else ""
    return f"application_name = 'pgbench' AND query LIKE 'SELECT abalance%'{waiting}"


def _wait(look: Look, otherwise: str) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not look():
        assert time.monotonic() < deadline, otherwise
        time.sleep(0.01)
