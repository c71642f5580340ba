"""The rows of tables on a server as numbers that can be compared: counts, and digests that do not depend on the order.

The digest of a row is taken from its text, which these settings make the same on PostgreSQL 9.6 to 18. The text comes
from the output functions of the columns' types, which users may define: only sessions of the load's role ask for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import psycopg
from psycopg import sql

from pgtrial.loads.data.data import Data
from pgtrial.loads.data.named_relations import used_relations
from pgtrial.loads.names import array_of
from pgtrial.loads.target import Session, value
from pgtrial.model.errors import one_line
from pgtrial.model.records.rows import TableRows

WHOLE_BYTES = 2**30
"""Up to this many bytes together, the tables of a place are read as a whole, the smallest first; others by a sample."""
SAMPLE = 10_000
"""The number of keys of a large table that are looked up."""

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
    # the load finds the rows that policies let its role see; the policies run with the rights of that role
    "row_security": "on",
}

_TABLES = """WITH RECURSIVE chosen AS (
        SELECT n.nspname, c.relname, c.oid, c.relkind::text AS kind FROM pg_class c
        JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE c.relkind IN ('r', 'p', 'm', 'f') AND c.relpersistence <> 't' AND {condition}
            AND NOT EXISTS (SELECT FROM pg_depend d
                WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e')),
    parts AS (
        SELECT oid AS whole, oid AS part FROM chosen WHERE kind = 'p'
        UNION ALL SELECT p.whole, i.inhrelid FROM parts p JOIN pg_inherits i ON i.inhparent = p.part)
    SELECT c.nspname, c.relname, c.oid, c.kind, row_security_active(c.oid),
        CASE c.kind WHEN 'p' THEN (SELECT coalesce(sum(pg_table_size(part)), 0) FROM parts WHERE whole = c.oid)
            ELSE pg_table_size(c.oid) END::bigint,
        CASE c.kind WHEN 'p' THEN (SELECT coalesce(sum(greatest(r.reltuples, 0)), 0)::float8
                FROM parts JOIN pg_class r ON r.oid = part WHERE whole = c.oid AND r.relkind = 'r')
            ELSE (SELECT reltuples::float8 FROM pg_class r WHERE r.oid = c.oid) END
    FROM chosen c WHERE c.oid NOT IN (SELECT part FROM parts WHERE part <> whole)
    ORDER BY 6, 1, 2"""
"""Partitions are rows of their table: how a table is divided is no difference of its rows."""
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


_PARTITIONED, _FOREIGN = "p", "f"


@dataclass(frozen=True)
class Table:
    """A table or a materialized view of the user's data on a server; one with partitions is a single table."""

    schema: str
    name: str
    oid: int
    kind: str
    """The letter of pg_class.relkind."""
    has_policies: bool
    """True if policies of row-level security decide which rows the session's role sees."""
    bytes_on_disk: int
    tuples: float
    """The estimate of pg_class."""
    is_changed: bool = False
    """True if the SQL in which the table was found has a statement that changes it."""

    @property
    def label(self) -> str:
        """The name of the table for people, under which places are compared: `public.orders`."""
        return f"{self.schema}.{self.name}"


def tables_of(session: Session, data: Data, texts: Iterable[str] = ()) -> list[Table]:
    """Returns the tables whose rows SQL or a program of the user's has made, the smallest first.

    They are those of the data, or if pgtrial's own generators fill these, the other tables that `texts` of SQL use
    (`named_relations`). Materialized views are among them: they are copies, which may be older than their tables.
    Raises psycopg.Error.
    """
    condition = data.relations(session)
    found = used_relations(session, texts)
    if not data.has_users_rows:
        condition = f"c.oid = ANY ({array_of(sorted(found.used))}) AND NOT ({condition})"
    rows = session.execute(_TABLES.format(condition=condition).encode()).fetchall()
    return [
        Table(str(schema), str(name), oid, kind, has_policies, size, tuples, oid in found.changed)
        for schema, name, oid, kind, has_policies, size, tuples in rows
    ]


def read_as_whole(tables: Sequence[Table]) -> list[Table]:
    """Returns the tables that are small enough, all together, to be read as a whole; the smallest stand first."""
    whole, taken = [], 0
    for table in tables:
        taken += table.bytes_on_disk
        if taken <= WHOLE_BYTES:
            whole.append(table)
    return whole


def rows_of(session: Session, table: Table, keys: Keys | None = None, *, by_column: bool = False) -> TableRows:
    """Returns the rows of a table, all of them or those with these keys; `unread` says why they could not be read.

    The session is the lab's own, of the load's role (`Target.for_load`). Raises psycopg.OperationalError.
    """
    columns = [name for (name,) in session.execute(_COLUMNS, (table.oid,)).fetchall()]
    if table.kind == _FOREIGN:
        return TableRows(unread="a foreign table, whose rows another server has")
    encoding = str(value(session, "SHOW server_encoding"))
    groups = [[column] for column in columns] if by_column else [columns]
    asked = sql.SQL(", ").join([sql.SQL("count(*)"), *(_digest(encoding, group) for group in groups)])
    query = sql.SQL("SELECT {} FROM {}").format(asked, _source(session, table, keys))
    try:
        with _as_compared(session):
            row = session.execute(query).fetchone()
    except psycopg.Error as error:
        if session.broken:
            raise
        return TableRows(unread=one_line(error))
    assert row is not None
    count, *digests = row
    found = TableRows(rows=count, sample=len(keys[0]) if keys else 0, has_policies=table.has_policies)
    if by_column:
        return found.model_copy(update={"columns": dict(zip(columns, digests, strict=True))})
    return found.model_copy(update={"digest": f"{count}:{digests[0]}"})


def sample_keys(session: Session, table: Table, seed: int) -> Keys | None:
    """Returns the keys of some rows, to be looked up elsewhere; None for a table without a primary key.

    Raises psycopg.OperationalError.
    """
    key = [name for name, _ in session.execute(_KEY, (table.oid,)).fetchall()]
    if not key:
        return None
    percent = min(100.0, 100.0 * 2 * SAMPLE / max(table.tuples, 1.0))
    columns = sql.SQL(", ").join(sql.SQL("{}::text").format(sql.Identifier(name)) for name in key)
    query = sql.SQL("SELECT {} FROM {} TABLESAMPLE SYSTEM ({}) REPEATABLE ({}) LIMIT {}").format(
        columns, _relation(table), percent, seed % 2**31, SAMPLE
    )
    try:
        with _as_compared(session):
            rows = session.execute(query).fetchall()
    except psycopg.errors.InsufficientPrivilege:
        return None
    return [list(texts) for texts in zip(*rows, strict=True)] or None


@contextmanager
def _as_compared(session: Session) -> Iterator[None]:
    """Returns a context with a read-only transaction in which rows have the same text on every version of
    PostgreSQL."""
    with session.transaction():
        for name, setting in _SETTINGS.items():
            session.execute(f"SET LOCAL {name} = '{setting}'".encode())
        yield


def _digest(encoding: str, columns: Sequence[str]) -> sql.Composed:
    text = _TEXT_OF_ROW
    # bytes of an unknown encoding (SQL_ASCII) are compared as they are
    if encoding not in ("UTF8", "SQL_ASCII"):
        text = _IN_UTF8.format(text=text)
    names = sql.SQL(", ").join(sql.Identifier("r", name) for name in columns)
    return sql.SQL(_SUM.format(text=text)).format(columns=names)


def _relation(table: Table) -> sql.Composed:
    """Returns the table with its partitions, but without tables that inherit from it: those are read apart."""
    only = "" if table.kind == _PARTITIONED else "ONLY "
    return sql.SQL(f"{only}{{}}").format(sql.Identifier(table.schema, table.name))


def _source(session: Session, table: Table, keys: Keys | None) -> sql.Composed:
    """Returns the FROM clause of the query that reads the table as `r`: the whole table or, with `keys`, only the rows
    that have one of these keys."""
    all_rows = sql.SQL("{} AS r").format(_relation(table))
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
