"""The rows of tables on a server as numbers that can be compared: counts, and digests that do not depend on the order.

The digest of a row is taken from its text, which these settings make the same on PostgreSQL 9.6 to 18. The text comes
from the output functions of the columns' types, which users may define: it is asked for in sessions of the load's role.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import psycopg
from psycopg import sql

from pgtrial.loads.data.data import Data
from pgtrial.loads.names import array_of
from pgtrial.loads.target import Session, value
from pgtrial.model.records.rows import TableRows

WHOLE_BYTES = 2**30
"""The tables of a place are read as a whole, the smallest first, up to this size together; larger ones by a sample."""
SAMPLE = 10_000
"""How many keys of a large table are looked up."""

_SETTINGS = {
    # the shortest exact text of a float, which 12 and later write, is unknown to earlier versions
    "extra_float_digits": "0",
    "datestyle": "ISO, YMD",
    "intervalstyle": "postgres",
    "timezone": "UTC",
    "bytea_output": "hex",
    "xmloption": "content",
    "lc_monetary": "C",
    "quote_all_identifiers": "off",
    "lock_timeout": "10s",
    "transaction_read_only": "on",
}

_TABLES = """SELECT n.nspname, c.relname, c.oid, pg_table_size(c.oid), c.reltuples::float8
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind = 'r' AND c.relpersistence <> 't' AND {condition}
        AND NOT EXISTS (SELECT FROM pg_depend d
            WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e')
    ORDER BY 4, 1, 2"""
_COLUMNS = """SELECT a.attname FROM pg_attribute a WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped
    ORDER BY a.attname"""
_KEY = """SELECT a.attname, format_type(a.atttypid, a.atttypmod) FROM pg_index i
    JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey)
    WHERE i.indrelid = %s AND i.indisprimary ORDER BY a.attname"""

_TEXT_OF_ROW = "ROW({columns})::text"
_IN_UTF8 = "convert_to({text}, 'UTF8')"
_SUM = "coalesce(sum(('x' || substr(md5({text}), 1, 15))::bit(60)::int8), 0)::text"
"""The sum does not depend on the order of the rows; 60 bits of each row's MD5 are a positive int8 on every version."""

Keys = Sequence[Sequence[str]]
"""The texts of a sample's keys, one sequence for each column of the primary key."""


@dataclass(frozen=True)
class Table:
    """A table of the user's data on a server."""

    schema: str
    name: str
    oid: int
    bytes_on_disk: int
    tuples: float
    """The estimate of pg_class."""

    @property
    def label(self) -> str:
        """For people, and the name under which places are compared: `public.orders`."""
        return f"{self.schema}.{self.name}"


def tables_of(session: Session, data: Data, texts: Iterable[str] = ()) -> list[Table]:
    """The tables whose rows SQL or a program of the user's has made, the smallest first.

    Those of the data, or if pgtrial's own generators fill these, the other tables that `texts` of SQL name. A name in
    the text of a view or a function that is named counts as well. Raises psycopg.Error.
    """
    condition = data.relations(session)
    if not data.has_users_rows:
        condition = f"c.oid = ANY ({array_of(_named_in(session, texts))}) AND NOT ({condition})"
    rows = session.execute(_TABLES.format(condition=condition).encode()).fetchall()
    return [Table(str(schema), str(name), oid, size, tuples) for schema, name, oid, size, tuples in rows]


def read_as_whole(tables: Sequence[Table]) -> list[Table]:
    """Those that are small enough, all together, to be read as a whole; the smallest stand first."""
    whole, taken = [], 0
    for table in tables:
        taken += table.bytes_on_disk
        if taken <= WHOLE_BYTES:
            whole.append(table)
    return whole


def rows_of(session: Session, table: Table, keys: Keys | None = None, *, by_column: bool = False) -> TableRows:
    """The rows of a table, all of them or those with these keys; unknown where the role may not read them.

    The session is the lab's own, of the load's role (`Target.for_load`). Raises psycopg.OperationalError.
    """
    columns = [name for (name,) in session.execute(_COLUMNS, (table.oid,)).fetchall()]
    if not columns:
        return TableRows()
    encoding = str(value(session, "SHOW server_encoding"))
    groups = [[column] for column in columns] if by_column else [columns]
    sums = sql.SQL(", ").join(_digest(encoding, group) for group in groups)
    query = sql.SQL("SELECT count(*), {} FROM {}").format(sums, _source(session, table, keys))
    try:
        with _as_compared(session):
            row = session.execute(query).fetchone()
    except psycopg.OperationalError:
        if session.broken:
            raise
        return TableRows()
    except psycopg.Error:
        return TableRows()
    assert row is not None
    count, *digests = row
    found = TableRows(rows=count, sample=len(keys[0]) if keys else 0)
    if by_column:
        return found.model_copy(update={"columns": dict(zip(columns, digests, strict=True))})
    return found.model_copy(update={"digest": f"{count}:{digests[0]}"})


def sample_keys(session: Session, table: Table, seed: int) -> Keys | None:
    """The keys of some rows, to be looked up elsewhere; None for a table without a primary key.

    Raises psycopg.OperationalError.
    """
    key = [name for name, _ in session.execute(_KEY, (table.oid,)).fetchall()]
    if not key:
        return None
    percent = min(100.0, 100.0 * 2 * SAMPLE / max(table.tuples, 1.0))
    columns = sql.SQL(", ").join(sql.SQL("{}::text").format(sql.Identifier(name)) for name in key)
    query = sql.SQL("SELECT {} FROM ONLY {} TABLESAMPLE SYSTEM ({}) REPEATABLE ({}) LIMIT {}").format(
        columns, sql.Identifier(table.schema, table.name), percent, seed % 2**31, SAMPLE
    )
    try:
        with _as_compared(session):
            rows = session.execute(query).fetchall()
    except psycopg.errors.InsufficientPrivilege:
        return None
    return [list(texts) for texts in zip(*rows, strict=True)] or None


def changed_in(texts: Iterable[str]) -> set[str]:
    """The names of the tables, without their schemas, that texts of SQL say they change or make."""
    return {name.rpartition(".")[2].strip('"').lower() for text in texts for name in _CHANGES.findall(text)}


def named_texts(session: Session, texts: Iterable[str]) -> list[str]:
    """These texts of SQL, and those of the views and functions that they name. Raises psycopg.Error."""
    wanted = _words(texts)
    found = list(texts)
    bodies: dict[str, str] = {}
    for query in (_VIEWS, _FUNCTIONS):
        for name, body in session.execute(query.encode()).fetchall():
            bodies[name] = f"{bodies.get(name, '')}\n{body}"
    while named := wanted & bodies.keys():
        more = [bodies.pop(name) for name in sorted(named)]
        found += more
        wanted |= _words(more)
    return found


_VIEWS = """SELECT c.relname, pg_get_viewdef(c.oid) FROM pg_class c
    WHERE c.relkind IN ('v', 'm') AND c.relnamespace::regnamespace::text !~ '^(pg_|information_schema)'"""
_FUNCTIONS = """SELECT p.proname, p.prosrc FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang
    WHERE l.lanname NOT IN ('internal', 'c') AND p.pronamespace::regnamespace::text !~ '^(pg_|information_schema)'"""
_OF_USERS = "SELECT c.oid, c.relname FROM pg_class c WHERE c.relkind = 'r' AND c.relnamespace <> ALL (%s)"
_SYSTEM = """SELECT oid FROM pg_namespace WHERE nspname ~ '^pg_' OR nspname = 'information_schema'"""

_CHANGES = re.compile(
    r"\b(?:insert\s+into|update|delete\s+from|merge\s+into|truncate(?:\s+table)?|"
    r"copy(?=\s+[\w$.\"]+\s*(?:\([^)]*\)\s*)?from\b)|"
    r"create\s+(?:unlogged\s+)?table(?:\s+if\s+not\s+exists)?)\s+(?:only\s+)?([\w$.\"]+)",
    re.IGNORECASE,
)
_WORD = re.compile(r"[\w$]+")


def _words(texts: Iterable[str]) -> set[str]:
    words = {word for text in texts for word in _WORD.findall(text)}
    return words | {word.lower() for word in words}


def _named_in(session: Session, texts: Iterable[str]) -> list[int]:
    words = _words(named_texts(session, texts))
    system = [oid for (oid,) in session.execute(_SYSTEM).fetchall()]
    tables = session.execute(_OF_USERS, (system,)).fetchall()
    return [oid for oid, name in tables if name in words]


@contextmanager
def _as_compared(session: Session) -> Iterator[None]:
    """A transaction that reads only, in which rows have the same text on every version."""
    with session.transaction():
        for name, setting in _SETTINGS.items():
            session.execute(f"SET LOCAL {name} = '{setting}'".encode())
        yield


def _digest(encoding: str, columns: Sequence[str]) -> sql.Composed:
    text = _TEXT_OF_ROW
    # where nothing is known of the bytes (SQL_ASCII) they are compared as they are
    if encoding not in ("UTF8", "SQL_ASCII"):
        text = _IN_UTF8.format(text=text)
    names = sql.SQL(", ").join(sql.Identifier("r", name) for name in columns)
    return sql.SQL(_SUM.format(text=text)).format(columns=names)


def _source(session: Session, table: Table, keys: Keys | None) -> sql.Composed:
    """The rows that are read, as a FROM clause."""
    all_rows = sql.SQL("ONLY {} AS r").format(sql.Identifier(table.schema, table.name))
    if keys is None:
        return all_rows
    key = session.execute(_KEY, (table.oid,)).fetchall()
    drawn = [sql.Identifier("s", f"k{number}") for number in range(len(key))]
    names = sql.SQL(", ").join(sql.Identifier(f"k{number}") for number in range(len(key)))
    arrays = sql.SQL(", ").join(sql.SQL("{}::text[]").format(sql.Literal(list(texts))) for texts in keys)
    equal = sql.SQL(" AND ").join(
        sql.SQL("{} = {}::{}").format(sql.Identifier("r", column), text, sql.SQL(kind))
        for (column, kind), text in zip(key, drawn, strict=True)
    )
    return sql.SQL("unnest({}) AS s ({}) JOIN {} ON {}").format(arrays, names, all_rows, equal)
