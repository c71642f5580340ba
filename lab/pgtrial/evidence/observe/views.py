"""The server's cumulative views in one statement, for PostgreSQL 15 to 18 and for any role."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import polars as pl
import psycopg

from pgtrial.evidence.observe.counters import Session
from pgtrial.store.directory import WAITS_SCHEMA

_SOURCES = (
    (
        "pg_stat_database",
        150000,
        "SELECT 'pg_stat_database', '', row_to_json(v) FROM pg_stat_database v WHERE datname = current_database()",
    ),
    ("pg_stat_wal", 150000, "SELECT 'pg_stat_wal', '', row_to_json(v) FROM pg_stat_wal v"),
    ("pg_stat_bgwriter", 150000, "SELECT 'pg_stat_bgwriter', '', row_to_json(v) FROM pg_stat_bgwriter v"),
    ("pg_stat_checkpointer", 170000, "SELECT 'pg_stat_checkpointer', '', row_to_json(v) FROM pg_stat_checkpointer v"),
    ("pg_stat_slru", 150000, "SELECT 'pg_stat_slru', name, row_to_json(v) FROM pg_stat_slru v"),
    (
        "pg_stat_io",
        160000,
        """SELECT 'pg_stat_io', backend_type || ' ' || object, json_build_object('reads', sum(reads),
        'writes', sum(writes), 'extends', sum(extends), 'hits', sum(hits), 'evictions', sum(evictions),
        'fsyncs', sum(fsyncs)) FROM pg_stat_io GROUP BY backend_type, object""",
    ),
    (
        "pg_locks",
        150000,
        """SELECT 'pg_locks', mode, json_build_object('granted', count(*) FILTER (WHERE granted),
        'waiting', count(*) FILTER (WHERE NOT granted)) FROM pg_locks WHERE pid <> pg_backend_pid() GROUP BY mode""",
    ),
)
"""Name, the version that has it, and its query: source, part, counters."""

GAUGES = frozenset({"pg_locks"})
"""Sources that tell a state, not what has happened since the start."""

_NOT_COUNTERS = frozenset({"datid", "numbackends"})

_STATEMENTS = """SELECT left(regexp_replace(query, '\\s+', ' ', 'g'), 100), sum(calls), sum(total_exec_time), sum(rows),
        sum(shared_blks_hit), sum(shared_blks_read), sum(wal_bytes)
    FROM pg_stat_statements WHERE queryid IS NOT NULL
        AND dbid = (SELECT oid FROM pg_database WHERE datname = current_database())
    GROUP BY 1"""
_OF_STATEMENTS = ("calls", "exec_ms", "rows", "blks_hit", "blks_read", "wal_bytes")

_MOST_STATEMENTS = 50

Values = dict[str, dict[str, float]]


class Views:
    """Reads what this role may read of this server; `refused` names the rest."""

    def __init__(self, session: Session):
        self._session = session
        self.refused: list[str] = []
        readable = []
        for name, since, query in _SOURCES:
            if session.info.server_version < since:
                continue
            try:
                session.execute(query.encode())
            except psycopg.errors.InsufficientPrivilege:
                self.refused.append(name)
            else:
                readable.append(query)
        self._query = " UNION ALL ".join(f"({query})" for query in readable).encode()
        self._statements = self._has_statements()

    def read(self) -> Values:
        """Source -> name -> value now, by one statement. Raises psycopg.Error."""
        found: Values = {}
        for source, part, values in self._session.execute(self._query).fetchall() if self._query else ():
            found.setdefault(source, {}).update(_numbers(part, values))
        return found

    def statements(self) -> Values:
        """Statement -> counter -> value of this database; none without pg_stat_statements. Raises psycopg.Error."""
        if not self._statements:
            return {}
        rows = self._session.execute(_STATEMENTS).fetchall()
        return {row[0]: dict(zip(_OF_STATEMENTS, map(float, row[1:]), strict=True)) for row in rows}

    def _has_statements(self) -> bool:
        row = self._session.execute("SELECT to_regclass('pg_stat_statements') IS NOT NULL").fetchone()
        if row != (True,):
            return False
        try:
            self._session.execute(_STATEMENTS)
        except psycopg.errors.ObjectNotInPrerequisiteState:  # made, but not among shared_preload_libraries
            return False
        except psycopg.errors.InsufficientPrivilege:
            self.refused.append("pg_stat_statements")
            return False
        return True


def statement_gains(before: Values, after: Values) -> dict[str, float]:
    """`COUNTER: STATEMENT` -> gain, of the statements that took longest in between; none of one that did not run."""
    gains = {
        text: {name: value - before.get(text, {}).get(name, 0.0) for name, value in counters.items()}
        for text, counters in after.items()
    }
    ran = [text for text, gain in gains.items() if gain["calls"] > 0]
    longest = sorted(ran, key=lambda text: -gains[text]["exec_ms"])[:_MOST_STATEMENTS]
    return {f"{name}: {text}": gain for text in longest for name, gain in gains[text].items()}


def _numbers(part: str, values: dict[str, Any]) -> dict[str, float]:
    prefix = f"{part} " if part else ""
    return {
        prefix + name: float(value)
        for name, value in values.items()
        if isinstance(value, int | float) and not isinstance(value, bool) and name not in _NOT_COUNTERS
    }


Doing = tuple[str, str | None, str | None, str | None]
"""Backend type, wait event type, wait event, state."""

Doings = dict[Doing, int]
"""How many sessions were found doing what."""

LAB_NAME = "pgtrial lab"
"""The application_name of the lab's own sessions, which are no part of the load."""

_ACTIVITY = f"""SELECT backend_type, wait_event_type, wait_event, state, count(*) FROM pg_stat_activity
    WHERE pid <> pg_backend_pid() AND application_name IS DISTINCT FROM '{LAB_NAME}' GROUP BY 1, 2, 3, 4"""


def read_waits(session: Session) -> tuple[Doings, bool]:
    """The sessions of the server but the lab's own, and whether some are hidden from this role. Raises psycopg.Error.

    Of what a role may not see PostgreSQL tells the process, but neither its type nor its waits.
    """
    rows = session.execute(_ACTIVITY).fetchall()
    seen = {(row[0], row[1], row[2], row[3]): int(row[4]) for row in rows if row[0] is not None}
    return seen, len(seen) < len(rows)


def mean_waits(samples: Sequence[tuple[float, Doings]]) -> pl.DataFrame:
    """Mean number of sessions by second, columns of WAITS_SCHEMA; the samples' times count from the measured part.

    A second without a sample has no rows; in a second with samples, those that did not find a session count as 0.
    """
    taken: Counter[int] = Counter()
    sums: dict[tuple[int, Doing], int] = {}
    for moment, doings in samples:
        second = math.floor(moment)
        taken[second] += 1
        for doing, sessions in doings.items():
            sums[second, doing] = sums.get((second, doing), 0) + sessions
    rows = [(second, *doing, found / taken[second]) for (second, doing), found in sums.items()]
    return pl.DataFrame(rows, schema=WAITS_SCHEMA, orient="row").sort(list(WAITS_SCHEMA)[:-1])
