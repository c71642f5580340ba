"""The sessions of a server: waited for until they are there, or until all have left."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import psycopg

from pgtrial.loads.target import Target

TIMEOUT_S = 60.0

SELECTS = "application_name = 'pgbench' AND query LIKE 'SELECT abalance%'"
"""The condition on pg_stat_activity: clients whose last statement is a SELECT of an account."""

Look = Callable[[], bool]


def wait_until_left(target: Target) -> None:
    """Wait until nobody is in the target's database, so that its statistics are complete.

    A program that has ended leaves backends that are about to. They have places that the next clients may need, and
    tell what they did before they leave the list of sessions. While they have all places nobody can ask; who asks is in
    another database, whose statistics it adds to.
    """
    with _once_there_is_room(replace(target, dbname="postgres")) as connection:
        wait_until_alone(connection, target.dbname)


def wait_until_alone(connection: psycopg.Connection[tuple[Any, ...]], dbname: str) -> None:
    """Wait until nobody but who asks, by `connection`, is in the database of that name."""
    others = "SELECT count(*) FROM pg_stat_activity WHERE datname = %s AND pid <> pg_backend_pid()"
    _wait(lambda: connection.execute(others, [dbname]).fetchone() == (0,), "there are other sessions")


def wait_until_counting(target: Target) -> None:
    """Wait until the only client has begun a second SELECT of an account: by then it has counted the first."""
    begun = f"SELECT query_start FROM pg_stat_activity WHERE {SELECTS}"
    with target.connect_as_user() as connection:
        starts: set[object] = set()

        def second() -> bool:
            starts.update(connection.execute(begun).fetchall())
            return len(starts) > 1

        _wait(second, "no client counts")


def wait_until_locked(target: Target) -> None:
    """Wait until a client's SELECT of an account waits for the table."""
    waiting = f"SELECT count(*) > 0 FROM pg_stat_activity WHERE {SELECTS} AND wait_event_type = 'Lock'"
    with target.connect_as_user() as connection:
        _wait(lambda: connection.execute(waiting).fetchone() == (True,), "no client waits")


def _once_there_is_room(target: Target) -> psycopg.Connection[tuple[Any, ...]]:
    made: list[psycopg.Connection[tuple[Any, ...]]] = []

    def enter() -> bool:
        try:
            made.append(target.connect_as_user())
        except psycopg.OperationalError as error:
            if "too many clients" not in str(error):
                raise
        return bool(made)

    _wait(enter, "there is no room")
    return made[0]


def _wait(look: Look, otherwise: str) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not look():
        assert time.monotonic() < deadline, otherwise
        time.sleep(0.01)
