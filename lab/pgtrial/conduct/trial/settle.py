"""Brings a server that has just started into the state in which the load of every trial begins: runs the arm's own SQL,
reads relations into the cache, and issues a checkpoint."""

from __future__ import annotations

import re
import threading
import time
from contextlib import suppress
from typing import Self

import psycopg
from psycopg import sql

from pgtrial.loads.data.data import Data
from pgtrial.loads.names import is_reached
from pgtrial.loads.sql_files import Statement, is_sent_alone, objection, reads_rows, statements
from pgtrial.loads.sql_scanner import first_words
from pgtrial.loads.target import Session, Target, value
from pgtrial.machines.interrupt import held_off
from pgtrial.model import marks
from pgtrial.model.errors import StudyError
from pgtrial.model.quoting import quoted
from pgtrial.model.study.servers import Given, Server
from pgtrial.store.files import first_line

_TABLES = "{relations} AND c.relkind = 'r' AND {is_reached}"

_PREWARM = """SELECT sum({schema}.pg_prewarm(relation, 'buffer'::text, 'main'::text, NULL::int8, NULL::int8)) FROM (
    SELECT c.oid::regclass FROM pg_class c WHERE {tables}
    UNION ALL SELECT i.indexrelid::regclass FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid
        WHERE {tables}) AS warm(relation)"""
"""The query that reads tables and indexes into shared buffers. It casts each argument to the exact type of its
parameter, so that PostgreSQL cannot choose another function of the same name."""

_SCHEMA_OF_PREWARM = """SELECT quote_ident(n.nspname) FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
    WHERE e.extname = 'pg_prewarm'"""

_KEYS = """SELECT n.nspname, c.relname, k.attname, o.attname
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    JOIN pg_index i ON i.indexrelid = (SELECT indexrelid FROM pg_index WHERE indrelid = c.oid
        ORDER BY NOT indisprimary, indexrelid LIMIT 1)
    JOIN pg_attribute k ON k.attrelid = c.oid AND k.attnum = i.indkey[0]
    JOIN LATERAL (SELECT attname FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
        AND NOT a.attnum = ANY (i.indkey) ORDER BY a.attnum LIMIT 1) o ON true
    WHERE {tables} ORDER BY c.relname"""
"""The query for the tables, each with the first column of its primary key, or else of its first index, and with a
column that this index does not have. Because of that column an index scan also has to read the table."""

NO_PREWARM = "warm the tables by pg_prewarm (index scans instead)"
"""The action that the role may not take on a given server without this extension, as the words after `may not` in a
message."""

_BY_INDEX_ALONE = """SELECT set_config(name, value, true) FROM (VALUES ('enable_seqscan', 'off'),
        ('enable_bitmapscan', 'off'), ('jit', 'off'), ('max_parallel_workers_per_gather', '0')) AS wanted(name, value)
    WHERE current_setting(name, true) IS NOT NULL"""
"""The query that makes the planner use plain index scans. It sets only settings that the server has: PostgreSQL 10 has
no jit."""


_BY_SUPERUSER = re.compile(
    r"((CREATE|ALTER|DROP)\s+(EXTENSION|ROLE|USER|GROUP|PUBLICATION|SUBSCRIPTION|TABLESPACE|SYSTEM|"
    r"(PROCEDURAL\s+|TRUSTED\s+)*LANGUAGE)|GRANT|REVOKE|SELECT\s+pg_reload_conf)\b",
    re.IGNORECASE,
)
"""Matches those statements of setup_sql that pgtrial runs as the superuser. They call no functions and read no rows of
the data, so that no foreign code runs with the superuser's rights."""


def run_setup_sql(target: Target, arm: str, server: Server) -> None:
    """Runs the arm's own SQL on its fresh copy of the data, as the role of the load. Statements that need a superuser,
    such as CREATE EXTENSION, run as the superuser.

    Raises StudyError that names the statement which PostgreSQL has refused.
    """
    if not server.setup_sql:
        return
    with target.connect_as_load() as session, target.connect_as_user() as superuser:
        for statement in server.setup_sql:
            failed = f"{marks.at_arm(arm)}setup_sql {quoted(statement.strip()[:60])} failed"
            parts = statements(statement, {})
            for part in parts:
                if reads_rows(part.text):
                    raise StudyError(f"{failed}: COPY ... FROM STDIN gets no rows here; write INSERT")
                if (against := objection(part.text)) is not None:
                    raise StudyError(f"{failed}: {against}")
            has_superusers = target.owner is not None and any(_BY_SUPERUSER.match(part.text) for part in parts)
            are_alone = has_superusers or any(is_sent_alone(first_words(part.text)) for part in parts)
            try:
                for sent in parts if are_alone else [Statement(statement, 1)]:
                    by = superuser if has_superusers and _BY_SUPERUSER.match(sent.text) else session
                    by.execute(sent.text.encode())
            except psycopg.Error as error:
                cure = "correct the statement, or make what it needs"
                raise StudyError(f"{failed}{_location(error, sent)}: {first_line(error)}; {cure}") from None


def _location(error: psycopg.Error, sent: Statement) -> str:
    """Returns a phrase with the line and the character at which PostgreSQL has found an error in a text that begins on
    the line of `sent`; empty if PostgreSQL names no position."""
    if error.diag.statement_position is None:
        return ""
    before = sent.text[: int(error.diag.statement_position) - 1]
    return f" at line {before.count(chr(10)) + sent.line}, character {len(before) - before.rfind(chr(10))}"


_OWN_TABLES = """SELECT c.oid::regclass::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind IN ('r', 'p')
        AND n.nspname NOT IN ('pg_catalog', 'information_schema')
        AND NOT EXISTS (SELECT 1 FROM pg_depend d WHERE d.objid = c.oid AND d.deptype = 'e')"""


def empty_tables(session: Session) -> None:
    """Empties all tables of a copy of the data, except for tables of extensions. Raises psycopg.Error."""
    tables = [name for (name,) in session.execute(_OWN_TABLES).fetchall()]
    if tables:
        session.execute(f"TRUNCATE {', '.join(tables)} CASCADE".encode())


def warm_relations(target: Target, server: Server, data: Data) -> str | None:
    """Reads tables and indexes into shared buffers, by pg_prewarm if possible. Returns None, or a phrase on what the
    role may not do if a given server has to be read without pg_prewarm.

    Without pg_prewarm each table is scanned in the order of its key. Unlike a sequential scan of a large table, this
    fills shared buffers with the same pages as pg_prewarm, so that arms with and without the extension begin in the
    same state. On a given server pgtrial uses the extension only if it is installed already. The role of the load reads
    the tables, since planning can call functions of an index with an expression.
    """
    with target.connect() as session:
        schema = _schema_of_prewarm(session, server)
    with target.for_load.connect() as session:
        tables = _TABLES.format(relations=data.relations(session), is_reached=is_reached(session))
        if target.owner is not None:  # leave out tables of extensions, which belong to the superuser
            tables += " AND pg_catalog.has_table_privilege(c.oid, 'SELECT')"
        if schema is not None:
            with suppress(psycopg.errors.InsufficientPrivilege):
                session.execute(_PREWARM.format(schema=schema, tables=tables).encode())
                return None
        _read_by_key(session, tables)
    return NO_PREWARM if isinstance(server, Given) else None


def _schema_of_prewarm(session: Session, server: Server) -> str | None:
    """Returns the schema of pg_prewarm, quoted for SQL. Creates the extension if pgtrial has made the server. Returns
    None if the extension is not available, or if it is not installed on a given server."""
    schema = value(session, _SCHEMA_OF_PREWARM)
    if schema is not None or isinstance(server, Given):
        return None if schema is None else str(schema)
    if value(session, "SELECT 1 FROM pg_available_extensions WHERE name = 'pg_prewarm'") is None:
        return None
    session.execute("CREATE EXTENSION pg_prewarm SCHEMA pg_catalog")  # this schema exists in every database
    return "pg_catalog"


def _read_by_key(session: Session, tables: str) -> None:
    with session.transaction():
        session.execute(_BY_INDEX_ALONE)
        for schema, table, key, other in session.execute(_KEYS.format(tables=tables).encode()).fetchall():
            query = sql.SQL("SELECT count({}) FROM {} WHERE {} IS NOT NULL")
            session.execute(query.format(sql.Identifier(other), sql.Identifier(schema, table), sql.Identifier(key)))


_CANCEL_S = 5.0
"""The time limit for a request to cancel a statement, in seconds."""


class Checkpoint:
    """The lab's own CHECKPOINT at a fixed moment of each trial, so that the measured parts of all trials begin at the
    same time after a checkpoint.

    As a context manager it waits on exit until a checkpoint that has begun is complete, except if an exception ends the
    context.
    """

    def __init__(self, target: Target):
        self.duration_s: float | None = None
        self.ended: float | None = None
        self.refusal: str | None = None
        self.not_permitted: str | None = None
        self._session = target.connect()
        self._cancelled = threading.Event()
        self._begun = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *raised: object) -> None:
        self._cancelled.set()
        if kind is not None and self._begun.is_set():
            with suppress(psycopg.Error):  # stop waiting for the checkpoint; the server itself continues it
                self._session.cancel_safe(timeout=_CANCEL_S)
        self.close()

    def issue_after(self, delay_s: float) -> None:
        """Issues the checkpoint in the background after `delay_s` seconds."""
        with held_off():
            self._thread = threading.Thread(target=self.issue, args=(delay_s,), daemon=True)
            self._thread.start()

    def issue(self, delay_s: float = 0.0) -> None:
        """Issues the checkpoint after `delay_s` seconds, and waits until it is complete."""
        if self._cancelled.wait(delay_s):
            return
        self._begun.set()
        start = time.monotonic()
        try:
            self._session.execute("CHECKPOINT")
        except psycopg.errors.InsufficientPrivilege:
            has_role = self._session.info.server_version >= 150000
            cure = "grant pg_checkpoint" if has_role else "before PostgreSQL 15 only a superuser may"
            self.not_permitted = f"issue a checkpoint before the measured part ({cure})"
            self.refusal = f"no checkpoint before the measured part: the role may not issue one ({cure})"
        except psycopg.Error as error:
            self.refusal = f"the checkpoint in the warm-up failed: {first_line(error)}"
        else:
            self.ended = time.monotonic()
            self.duration_s = self.ended - start

    def close(self) -> None:
        """Waits until a checkpoint that has begun is complete, and does not issue one that has not begun yet."""
        self._cancelled.set()
        if self._thread is not None:
            self._thread.join()
        self._session.close()

    def note(self, measured_since: float | None) -> str | None:
        """Returns a note for the trial if the checkpoint failed or ended only in the measured part; otherwise None.
        `measured_since` is the start of the measured part, by time.monotonic()."""
        if self.refusal is not None:
            return self.refusal
        if self.ended is None or self.duration_s is None or measured_since is None or self.ended <= measured_since:
            return None
        return (
            f"the checkpoint issued in the warm-up took {self.duration_s:.1f}s and ended "
            f"{self.ended - measured_since:.1f}s into the measured part; a longer warm-up avoids that"
        )
