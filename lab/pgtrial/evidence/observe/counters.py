"""Counters of pg_stat_* over the measured part of a trial, named alike for PostgreSQL 10 to 18.

A server process reports its counters at most once a second and when it ends, so a delta that starts inside a load holds
up to one second of warm-up besides the measured part. Ratios within one delta, such as WAL bytes per transaction, are
not touched by that. Before PostgreSQL 14 there are none of WAL.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import psycopg

from pgtrial.loads.target import Session, backend_type, value
from pgtrial.model.records import Record
from pgtrial.model.resources import table


class Source(Record):
    """One view of views.toml, and how it is read in versions from `since` to `until`."""

    name: str
    since: int = 9
    until: int = 99
    query: str


_VIEWS = table("views.toml", __package__)
COUNTED = [Source(**each) for each in _VIEWS["counted"]]
SAMPLED = [Source(**each) for each in _VIEWS["sampled"]]

Counters = dict[str, dict[str, float]]
"""View -> counter -> value. Views: database, wal, checkpointer, bgwriter, io, maintenance."""

_MOVED = {"checkpoints_timed", "checkpoints_req", "checkpoint_write_time", "checkpoint_sync_time", "buffers_checkpoint"}

_TABLES = """SELECT CASE WHEN c.relname LIKE 'pgbench\\_%' THEN c.relname
            ELSE regexp_replace(c.relname, '[0-9]+$', 'N') END,
        sum(pg_table_size(c.oid)), sum(pg_indexes_size(c.oid)), sum(s.n_live_tup), sum(s.n_dead_tup)
    FROM pg_class c JOIN pg_stat_all_tables s ON s.relid = c.oid
    WHERE c.relkind IN ('r', 'p') AND pg_table_is_visible(c.oid) AND {relations}
    GROUP BY 1 ORDER BY 1"""
_CLIENTS = """SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND {backend_type} = 'client backend' AND pid <> pg_backend_pid()"""
_COLLECTOR_DELAY_S = 0.6
"""Before PostgreSQL 15 what a session reads of the counters may be half a second old."""


def read_counters(session: Session) -> Counters:
    """The counters now. Raises psycopg.Error."""
    session.execute("SELECT pg_stat_clear_snapshot()")
    counters: Counters = {}
    for view in COUNTED:
        if view.since <= session.info.server_version // 10000 <= view.until:
            counters.setdefault(view.name, {}).update(_read(session, view.query))
    for name in _MOVED:
        counters["bgwriter"].pop(name, None)
    return counters


def deltas(before: Mapping[str, Mapping[str, float]], after: Mapping[str, Mapping[str, float]]) -> Counters:
    """The changes of every counter that is in both; a counter that was reset in between is left out."""
    return {
        view: {
            name: value - before[view][name]
            for name, value in now.items()
            if value >= before[view].get(name, value + 1)
        }
        for view, now in after.items()
        if view in before
    }


def count_clients(session: Session) -> int:
    """Client processes of this database besides this session."""
    return int(value(session, _CLIENTS.format(backend_type=backend_type(session))))


def wait_for_clients_to_leave(session: Session, remaining: int, timeout_s: float = 3.0) -> None:
    """Wait until at most `remaining` client processes are left: each reports its last counters when it ends.

    From then on read_counters has them.
    """
    deadline = time.monotonic() + timeout_s
    while count_clients(session) > remaining and time.monotonic() < deadline:
        time.sleep(0.02)
    if session.info.server_version < 150000:
        time.sleep(_COLLECTOR_DELAY_S)


def read_relations(session: Session, relations: str) -> Counters:
    """Size and estimated tuples of tables: bytes_table, bytes_indexes, live_tuples, dead_tuples.

    `relations` is an SQL condition, of which pg_class is named `c`. Numbered tables are added up: `sbtestN`.
    """
    session.execute("SELECT pg_stat_clear_snapshot()")
    names = ("bytes_table", "bytes_indexes", "live_tuples", "dead_tuples")
    rows = session.execute(_TABLES.format(relations=relations).encode()).fetchall()
    return {row[0]: {name: float(value) for name, value in zip(names, row[1:], strict=True)} for row in rows}


def _read(session: Session, query: str) -> dict[str, float]:
    try:
        cursor = session.execute(query.encode())
    except (psycopg.errors.InsufficientPrivilege, psycopg.errors.UndefinedTable):
        return {}  # what a provider hides or does not have is unknown
    row = cursor.fetchone()
    if row is None or cursor.description is None:
        return {}
    return numbers(dict(zip((column.name for column in cursor.description), row, strict=True)))


def numbers(row: Mapping[str, Any]) -> dict[str, float]:
    """The counters of a row, by their columns."""
    return {
        name: float(value)
        for name, value in row.items()
        if isinstance(value, int | float | Decimal) and not isinstance(value, bool) and name not in _NOT_COUNTERS
    }


_NOT_COUNTERS = frozenset({"datid", "numbackends"})
