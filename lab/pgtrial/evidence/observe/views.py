"""Reads the cumulative statistics views of a server: counters before and after the measured phase of a trial, and
samples during it.

Views and counters have the same names here for all of PostgreSQL 10 to 19. Counters that a version does not have, or
that the role has no right to read, are left out. A server process reports its counters at most once per second and when
it ends, so a difference that begins during a load also contains up to one second of the warm-up. Ratios within one
difference, such as WAL bytes per transaction, are not affected. Before PostgreSQL 14 there are no WAL counters.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from typing import Any

import polars as pl
import psycopg
from psycopg.rows import dict_row

from pgtrial.loads.names import is_reached
from pgtrial.loads.target import Session, backend_type
from pgtrial.model.records import Record
from pgtrial.model.resources import table
from pgtrial.store.tables import WAITS_SCHEMA


class Source(Record):
    """An entry of views.toml: a view, with the query that reads it in the major versions from `since` to `until`."""

    name: str
    since: int = 9
    until: int = 99
    query: str


_VIEWS = table("views.toml", __package__)
COUNTED = [Source(**view) for view in _VIEWS["counted"]]
SAMPLED = [Source(**view) for view in _VIEWS["sampled"]]

Counters = dict[str, dict[str, float]]
"""Values by view and counter. The views are named database, wal, checkpointer, bgwriter, io, tables and maintenance."""

_TABLES = """SELECT CASE WHEN c.relname LIKE 'pgbench\\_%' THEN c.relname
            ELSE regexp_replace(c.relname, '[0-9]+$', 'N') END AS name,
        sum(pg_table_size(c.oid)) AS bytes_table, sum(pg_indexes_size(c.oid)) AS bytes_indexes,
        sum(s.n_live_tup) AS live_tuples, sum(s.n_dead_tup) AS dead_tuples,
        sum((c.reltoastrelid <> 0)::int) AS toast_tables
    FROM pg_class c JOIN pg_stat_all_tables s ON s.relid = c.oid
    WHERE c.relkind IN ('r', 'p') AND {is_reached} AND {relations}
    GROUP BY 1 ORDER BY 1"""


def read_counters(session: Session) -> Counters:
    """Returns the current values of all counters. Raises psycopg.Error if the query fails."""
    session.execute("SELECT pg_stat_clear_snapshot()")
    counters: Counters = {}
    for view in COUNTED:
        if view.since <= session.info.server_version // 10000 <= view.until:
            counters.setdefault(view.name, {}).update(_read(session, view.query))
    # before PostgreSQL 17, pg_stat_bgwriter also has the counters of the checkpointer
    counters["bgwriter"] = {name: count for name, count in counters["bgwriter"].items() if "checkpoint" not in name}
    return counters


def deltas(before: Mapping[str, Mapping[str, float]], after: Mapping[str, Mapping[str, float]]) -> Counters:
    """Returns the increase of each counter that both readings contain. A counter that was reset in between is left
    out."""
    return {
        view: {
            name: value - before[view][name]
            for name, value in now.items()
            if value >= before[view].get(name, value + 1)
        }
        for view, now in after.items()
        if view in before
    }


def read_relations(session: Session, relations: str) -> Counters:
    """Returns the sizes of tables and the estimated numbers of their rows, by table: bytes_table, bytes_indexes,
    live_tuples, dead_tuples and toast_tables.

    `relations` is an SQL condition in which pg_class has the alias `c`. Tables whose names end in numbers are added up,
    under names such as `sbtestN`. Returns nothing if the role has no right to see the tables.
    """
    session.execute("SELECT pg_stat_clear_snapshot()")
    with suppress(psycopg.errors.InsufficientPrivilege):
        return {
            row["name"]: numbers(row)
            for row in _rows(session, _TABLES.format(is_reached=is_reached(session), relations=relations))
        }
    return {}


def _read(session: Session, query: str) -> dict[str, float]:
    try:
        return numbers(next(iter(_rows(session, query)), {}))
    except (psycopg.errors.InsufficientPrivilege, psycopg.errors.UndefinedTable):
        return {}  # the provider of the server hides these values or does not have them


def _rows(session: Session, query: str) -> list[dict[str, Any]]:
    return session.cursor(row_factory=dict_row).execute(query.encode()).fetchall()


def numbers(row: Mapping[str, Any]) -> dict[str, float]:
    """Returns the numbers in a row, by their columns."""
    return {
        name: float(value)
        for name, value in row.items()
        if isinstance(value, int | float | Decimal) and not isinstance(value, bool) and name not in _NOT_COUNTERS
    }


_NOT_COUNTERS = frozenset({"datid", "numbackends"})


_MOVED_SOURCES = frozenset({"pg_stat_checkpointer"})
"""Views that older versions of PostgreSQL do not have, but whose counters are in another view there. Such a view is not
reported as lacking."""

GAUGES = frozenset({"pg_locks"})
"""The sources whose values show the state at the moment of reading, such as the number of locks that are held, and do
not count events since the server's start."""

_STATEMENTS = """SELECT left(regexp_replace(query, '\\s+', ' ', 'g'), 100) AS statement, {sums}
    FROM {schema}.pg_stat_statements WHERE queryid IS NOT NULL
        AND dbid = (SELECT oid FROM pg_database WHERE datname = current_database()) {of_role}
    GROUP BY 1"""
_SHOWN = 100
"""The number of characters that pgtrial reads of a statement's text in pg_stat_statements; the rest is cut off."""
_OF_ROLE = "AND userid = (SELECT oid FROM pg_roles WHERE rolname = current_user)"
_OF_STATEMENTS = {
    "calls": ("calls",),
    "exec_ms": ("total_exec_time", "total_time"),
    "rows": ("rows",),
    "blks_hit": ("shared_blks_hit",),
    "blks_read": ("shared_blks_read",),
    "wal_bytes": ("wal_bytes",),
}
"""For each counter, the names of its column in different versions, the newest first. The last of these counters does
not exist in pg_stat_statements before 1.8."""

_COLUMNS = """SELECT quote_ident(n.nspname), a.attname FROM pg_extension e
    JOIN pg_namespace n ON n.oid = e.extnamespace
    JOIN pg_depend d ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid AND d.deptype = 'e'
    JOIN pg_class c ON d.classid = 'pg_class'::regclass AND c.oid = d.objid AND c.relname = 'pg_stat_statements'
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
    WHERE e.extname = 'pg_stat_statements'"""
"""The query for the columns of the view pg_stat_statements, which must belong to the extension: anybody may have
created another view of this name."""

_PARAMETER = re.compile(r"\$\d+")
_CUT_PARAMETER = re.compile(r"\$\d*$")
_MOST_STATEMENTS = 50


class Views:
    """Samples the statistics views of a server. Views that the role has no right to read are listed in `refused`.

    `lacking` has the views that this version of PostgreSQL does not have, each with the first version that has it.
    """

    def __init__(self, session: Session, known: Collection[str] | None = None):
        """Finds out which views can be read.

        `known` has the texts of the load's statements without values. It is given for a server that other users use
        too: then, of pg_stat_statements, only the counters of the load's own statements are read.
        """
        self._session = session
        self._known = known
        self.refused: list[str] = []
        self.lacking: dict[str, int] = {}
        readable = []
        version = session.info.server_version // 10000
        for source in SAMPLED:
            if version < source.since:
                self.lacking |= {} if source.name in _MOVED_SOURCES else {source.name: source.since}
                continue
            try:
                session.execute(source.query.encode())
            except psycopg.errors.InsufficientPrivilege:
                self.refused.append(source.name)
            else:
                readable.append(source.query)
        self._query = " UNION ALL ".join(f"({query})" for query in readable).encode()
        self._statements = self._statements_query()

    def read(self) -> Counters:
        """Reads all views by one statement, and returns the current values by source (the view) and name. Raises
        psycopg.Error if the statement fails."""
        counters: Counters = {}
        for source, part, values in self._session.execute(self._query).fetchall() if self._query else ():
            prefix = f"{part} " if part else ""
            counters.setdefault(source, {}).update({prefix + name: value for name, value in numbers(values).items()})
        return counters

    def statements(self) -> Counters:
        """Returns the counters of the statements that ran in this database, by the text of the statement; empty without
        pg_stat_statements.

        Raises psycopg.Error if the query fails.
        """
        if self._statements is None:
            return {}
        rows = _rows(self._session, self._statements)
        texts = [row["statement"] for row in rows]
        of_load = texts if self._known is None else of_these(texts, self._known)
        return {row["statement"]: numbers(row) for row in rows if row["statement"] in of_load}

    def _statements_query(self) -> str | None:
        rows = self._session.execute(_COLUMNS).fetchall()
        columns = {column for _, column in rows}
        known = [(counter, name) for counter, names in _OF_STATEMENTS.items() for name in names if name in columns]
        if not known:
            return None
        query = _STATEMENTS.format(
            schema=rows[0][0],
            of_role="" if self._known is None else _OF_ROLE,
            sums=", ".join(f"sum({name}) AS {counter}" for counter, name in known),
        )
        try:
            _rows(self._session, query)
        except (
            psycopg.errors.ObjectNotInPrerequisiteState
        ):  # the extension is created, but its library is not in shared_preload_libraries
            return None
        except psycopg.errors.InsufficientPrivilege:
            self.refused.append("pg_stat_statements")
            return None
        return query


def of_these(shown: Iterable[str], known: Iterable[str]) -> set[str]:
    """Returns the texts from pg_stat_statements that belong to known statements. pgtrial reads only the first
    characters of long texts from pg_stat_statements, so of these only the beginning is compared."""
    texts = [_without_parameters(text) for text in known]
    return {one for one in shown if _is_known(one, texts)}


def _is_known(shown: str, known: Sequence[str]) -> bool:
    if len(shown) < _SHOWN:
        return _without_parameters(shown) in known
    beginning = _without_parameters(_CUT_PARAMETER.sub("", shown))
    return any(text.startswith(beginning) for text in known)


def _without_parameters(text: str) -> str:
    """Returns the text of a statement with `?` in place of its parameters."""
    return _PARAMETER.sub("?", text).rstrip("; ")


def statement_gains(before: Counters, after: Counters) -> dict[str, float]:
    """Returns the increases of the counters between the readings `before` and `after`, for the statements that took the
    most time between them. The keys have the form `COUNTER: STATEMENT`.

    Statements that did not run between the two readings are left out.
    """
    gains = {
        text: {name: value - before.get(text, {}).get(name, 0.0) for name, value in counters.items()}
        for text, counters in after.items()
    }
    ran = [text for text, gain in gains.items() if gain["calls"] > 0]
    longest = sorted(ran, key=lambda text: -gains[text]["exec_ms"])[:_MOST_STATEMENTS]
    return {f"{name}: {text}": gain for text in longest for name, gain in gains[text].items()}


Doing = tuple[str, str | None, str | None, str | None]
"""The backend type, wait event type, wait event and state of a session."""

Doings = dict[Doing, int]
"""The number of sessions by their backend type, wait event and state."""

LAB_NAME = "pgtrial lab"
"""The application_name of the lab's own sessions, which do not belong to the load."""

_ACTIVITY = f"""SELECT {{backend_type}}, wait_event_type, wait_event, state, count(*) FROM pg_stat_activity
    WHERE pid <> pg_backend_pid() AND application_name IS DISTINCT FROM '{LAB_NAME}' GROUP BY 1, 2, 3, 4"""


def read_waits(session: Session) -> tuple[Doings, bool]:
    """Returns the sessions of the server without the lab's own, and true if this role has no right to see some of the
    sessions.

    If a role has no right to see a session, PostgreSQL shows its process, but neither its type nor its wait events.
    Raises psycopg.Error if the query fails.
    """
    rows = session.execute(_ACTIVITY.format(backend_type=backend_type(session)).encode()).fetchall()
    sessions = {(row[0], row[1], row[2], row[3]): int(row[4]) for row in rows if row[0] is not None}
    return sessions, len(sessions) < len(rows)


def mean_waits(samples: Sequence[tuple[float, Doings]]) -> pl.DataFrame:
    """Returns the mean number of sessions in each second, by backend type, wait event and state, in the columns of
    WAITS_SCHEMA.

    The times of the samples are relative to the begin of the measured phase. A second without a sample has no rows. In
    a second with samples, a sample in which a kind of session did not occur counts as 0.
    """
    taken = Counter(math.floor(moment) for moment, _ in samples)
    sums: Counter[tuple[int, Doing]] = Counter()
    for moment, doings in samples:
        for doing, sessions in doings.items():
            sums[math.floor(moment), doing] += sessions
    rows = [(second, *doing, total / taken[second]) for (second, doing), total in sums.items()]
    return pl.DataFrame(rows, schema=WAITS_SCHEMA, orient="row").sort(list(WAITS_SCHEMA)[:-1])
