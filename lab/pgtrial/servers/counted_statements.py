"""Reads the statements that a server has counted in pg_stat_statements, and the statistics of the columns from which
values for them can be drawn, into the files that `pgtrial capture` takes."""

from __future__ import annotations

import re
from pathlib import Path

import psycopg

from pgtrial.loads.process import finished, starting
from pgtrial.loads.server_message import message_of
from pgtrial.loads.target import CONNECT_TIMEOUT_S, Session, lab_path, open_session, value
from pgtrial.model.errors import StudyError
from pgtrial.model.study.servers import conninfo_of
from pgtrial.servers.dumped import not_connected
from pgtrial.servers.given import without_password
from pgtrial.store.files import writing

_WRITTEN = re.compile(r"^\\copy \((.*)\) TO '(\w+)\.csv' CSV HEADER$", re.MULTILINE)
"""Matches a query that `pgtrial capture --queries` prints for psql, and the name of the file that it writes."""
_STATEMENTS = "statements"
_ONCE = """SELECT query, 1 AS calls, rows::pg_catalog.float8 / greatest(calls, 1) AS rows, mean_exec_time
    FROM ({query}) AS counted WHERE query NOT LIKE 'SELECT pg~_catalog.%' ESCAPE '~'
    ORDER BY counted.calls DESC LIMIT {most}"""
"""A query that returns each counted statement with one call, those with the most calls first. The statements by which
sessions of pgtrial set and check their search path are left out."""
_FROM_VIEW = "FROM pg_stat_statements "
"""The part of the engine's query that names the view, without its schema."""
_SCHEMA = """SELECT quote_ident(n.nspname) FROM pg_extension e
    JOIN pg_depend d ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid AND d.deptype = 'e'
    JOIN pg_class c ON d.classid = 'pg_class'::regclass AND c.oid = d.objid AND c.relname = 'pg_stat_statements'
    JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE e.extname = 'pg_stat_statements'"""
"""The query for the schema of the view pg_stat_statements, as SQL writes it. The view must belong to the extension:
anybody may have created another view of this name."""


def write_counted_statements(dsn: str, folder: Path, most: int) -> str:
    """Writes the files `statements.csv`, with at most `most` statements of the database, and `columns.csv` into a
    folder. Returns the address of the database without its password.

    They are read by the role of the connection string, which may be a superuser. Therefore the session only reads, and
    finds nothing of a user's schema except for the extension's own view. Raises StudyError and StoreError.
    """
    conninfo = conninfo_of(dsn)
    queries = _queries()
    try:
        session = open_session(conninfo, connect_timeout=CONNECT_TIMEOUT_S, client_encoding="UTF8", autocommit=True)
    except (psycopg.OperationalError, psycopg.ProgrammingError) as error:
        raise not_connected("--statements-of", conninfo, error) from None
    shown = without_password(conninfo)
    try:
        with session, lab_path(session):  # behind a pooler the session itself does not have the lab's path
            session.execute("SET TRANSACTION READ ONLY")
            if (schema := value(session, _SCHEMA)) is None:
                raise StudyError(
                    f"--statements-of: {shown} has no extension pg_stat_statements; create it in this database "
                    "(PostgreSQL 14 or later), or name a log by --log"
                )
            counted = queries[_STATEMENTS].replace(_FROM_VIEW, f"FROM {schema}.pg_stat_statements ")
            queries[_STATEMENTS] = _ONCE.format(query=counted, most=most)
            for name, query in queries.items():
                _write(session, query, folder / f"{name}.csv")
    except psycopg.Error as error:
        raise StudyError(
            f"--statements-of: {shown} does not tell its statements: {message_of(error)}; install "
            "pg_stat_statements there (PostgreSQL 14 or later), or name a log by --log"
        ) from None
    return shown


def _queries() -> dict[str, str]:
    """Returns the queries that the engine prints for psql, by the names of the files that they write."""
    with starting() as engine:
        done = finished([engine, "capture", "--queries"], {})
    return {name: query for query, name in _WRITTEN.findall(done.stdout)}


def _write(session: Session, query: str, path: Path) -> None:
    with session.cursor().copy(f"COPY ({query}) TO STDOUT CSV HEADER".encode()) as copy, writing(path):
        path.write_bytes(b"".join(map(bytes, copy)))
