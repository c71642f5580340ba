"""Statements of tests that sleep in the server, and how many of them are running."""

from __future__ import annotations

from dataclasses import replace

from pgtrial.loads.target import Target
from tests.processes import until

SLEEPS = (
    "SELECT count(*) FROM pg_stat_activity"
    " WHERE state = 'active' AND query LIKE '%pg_sleep(1000%' AND pid <> pg_backend_pid()"
)
"""A query for the number of the sleeping statements that are running at the moment."""

SLEEPS_OF_LUA = "con:query('SELECT pg_sleep(1000)')"


def running(target: Target) -> int:
    with replace(target, dbname="postgres").connect_as_user() as connection:
        (count,) = connection.execute(SLEEPS).fetchone()
    return count


def wait_until_running(target: Target, count: int) -> None:
    until(lambda: running(target) >= count, "the statements are running", 60)
