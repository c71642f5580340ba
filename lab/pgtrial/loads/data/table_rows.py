"""Summarises the rows of tables on a server as counts and digests, so that the data of two servers can be compared. The
digests do not depend on the order of the rows.

The digest of a row is computed from its text, which the settings below make the same on PostgreSQL 9.6 to 18. Output
functions of the columns' types produce the text, and users may have defined them: therefore only sessions of the load's
role read it.
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
"""The limit, in bytes, for the total size of tables that are read completely; the smallest tables come first. Larger
tables are compared by a sample of rows."""
SAMPLE = 10_000
"""The number of primary keys of a large table that are sampled and looked up on the other servers."""

_SETTINGS = {
    # with a higher value, PostgreSQL 12 and later write the shortest exact text of a float, which earlier versions do
    # not
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
    # the load sees the rows that row-security policies show to its role; the policies run with the rights of that role
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
"""SQL that lists tables with their sizes. A partitioned table is one table here: how it is divided is not a difference
between its rows."""
_COLUMNS = """SELECT a.attname, 'oid'::regtype IN (t.oid, t.typbasetype)
    FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
    WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attname"""
"""SQL that lists the columns of a table, and whether they are OIDs, as those of large objects."""
_KEY = """SELECT a.attname, format_type(a.atttypid, a.atttypmod) FROM pg_index i
    JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey)
    WHERE i.indrelid = %s AND i.indisprimary ORDER BY a.attname"""

_TEXT_OF_ROW = "ROW({columns})::text"
_OF_OID = """CASE WHEN EXISTS (SELECT FROM pg_largeobject_metadata m WHERE m.oid = {column})
    THEN md5(lo_get({column})) ELSE {column}::text END"""
"""SQL for the value of an OID. If it is that of a large object, the content is compared: SQL that makes large objects
gives them other OIDs in each database."""
_IN_UTF8 = "convert_to({text}, 'UTF8')"
_SUM = "coalesce(sum(('x' || substr(md5({text}), 1, 15))::bit(60)::int8), 0)::text"
"""SQL for the digest of the rows of a table: the sum of a number for each row, since a sum does not depend on the order
of the rows. The number is the beginning of the MD5 of the row's text; 60 bits of each row's MD5 fit a positive int8 in
every version of PostgreSQL."""

Keys = Sequence[Sequence[str]]
"""The primary keys of sampled rows, as texts: one sequence for each column of the key."""


_PARTITIONED, _FOREIGN = "p", "f"


@dataclass(frozen=True)
class Table:
    """A table or materialized view with data of the user on a server. A partitioned table with its partitions is a
    single table."""

    schema: str
    name: str
    oid: int
    kind: str
    """The type of the table, as the letter in pg_class.relkind."""
    has_policies: bool
    """True if row-security policies decide which rows the session's role sees."""
    bytes_on_disk: int
    tuples: float
    """The number of rows as pg_class estimates it (reltuples)."""
    is_changed: bool = False
    """True if the SQL texts in which pgtrial found the table contain a statement that changes it."""

    @property
    def label(self) -> str:
        """The name of the table in messages, by which tables of two servers are matched: `public.orders`."""
        return f"{self.schema}.{self.name}"


def tables_of(session: Session, data: Data, texts: Iterable[str] = ()) -> list[Table]:
    """Returns the tables whose rows were made by SQL or by a program of the user, the smallest first.

    These are the tables of the data. If pgtrial's own generators make the data, they are the other tables that the SQL
    in `texts` uses (`named_relations`). Materialized views are included, since they are copies of rows that may be
    older than the tables. Raises psycopg.Error if a query fails.
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
    """Returns the smallest of the tables, as many as can be read completely within the limit for the total size.
    `tables` must be sorted by size."""
    whole, taken = [], 0
    for table in tables:
        taken += table.bytes_on_disk
        if taken <= WHOLE_BYTES:
            whole.append(table)
    return whole


def rows_of(session: Session, table: Table, keys: Keys | None = None, *, by_column: bool = False) -> TableRows:
    """Returns the count and the digest of the rows of a table: of all rows, or of those with the given keys. If the
    rows cannot be read, `unread` of the result says why.

    The session must be one of the lab's own sessions, with the load's role (`Target.for_load`). Raises
    psycopg.OperationalError if the connection is lost.
    """
    columns: dict[str, bool] = dict(session.execute(_COLUMNS, (table.oid,)).fetchall())
    if table.kind == _FOREIGN:
        return TableRows(unread="it is a foreign table, whose rows are on another server")
    encoding = str(value(session, "SHOW server_encoding"))
    values = [_value(column, is_oid=is_oid) for column, is_oid in columns.items()]
    groups = [[value] for value in values] if by_column else [values]
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
    """Returns the primary keys of a random sample of rows, which can be looked up on other servers; None if the table
    has no primary key, if the role has no right to read it, or if the sample has no rows.

    Raises psycopg.Error if a query fails for another reason.
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
    """A context with a read-only transaction in which a row has the same text on every version of PostgreSQL."""
    with session.transaction():
        for name, setting in _SETTINGS.items():
            session.execute(f"SET LOCAL {name} = '{setting}'".encode())
        yield


def _value(column: str, *, is_oid: bool) -> sql.Composable:
    name = sql.Identifier("r", column)
    return sql.SQL(_OF_OID).format(column=name) if is_oid else name


def _digest(encoding: str, values: Sequence[sql.Composable]) -> sql.Composed:
    text = _TEXT_OF_ROW
    # in databases with the encoding SQL_ASCII the bytes are compared as they are
    if encoding not in ("UTF8", "SQL_ASCII"):
        text = _IN_UTF8.format(text=text)
    return sql.SQL(_SUM.format(text=text)).format(columns=sql.SQL(", ").join(values))


def _relation(table: Table) -> sql.Composed:
    """Returns the table for a FROM clause, with its partitions but without tables that inherit from it, which are read
    separately."""
    only = "" if table.kind == _PARTITIONED else "ONLY "
    return sql.SQL(f"{only}{{}}").format(sql.Identifier(table.schema, table.name))


def _source(session: Session, table: Table, keys: Keys | None) -> sql.Composed:
    """Returns the FROM clause of a query that reads the table with the alias `r`: all its rows or, with `keys`, only
    rows with these keys."""
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
