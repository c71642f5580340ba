"""Reads the statements that a server has counted in pg_stat_statements, and the statistics of the columns from which
values for them can be drawn, into the files that `pgtrial capture` takes."""

from __future__ import annotations

import re
from pathlib import Path

import psycopg

from pgtrial.loads.process import finished, starting
from pgtrial.loads.server_message import message_of
from pgtrial.loads.target import CONNECT_TIMEOUT_S, Session, open_session
from pgtrial.model.errors import StudyError
from pgtrial.model.study.servers import conninfo_of
from pgtrial.servers.dumped import not_connected
from pgtrial.servers.given import without_password
from pgtrial.store.files import make_folder, writing

_WRITTEN = re.compile(r"^\\copy \((.*)\) TO '(\w+)\.csv' CSV HEADER$", re.MULTILINE)
"""Matches a query that `pgtrial capture --queries` prints for psql, and the name of the file that it writes."""
_STATEMENTS = "statements"
_ONCE = """SELECT query, 1 AS calls, rows::pg_catalog.float8 / greatest(calls, 1) AS rows, mean_exec_time
    FROM ({query}) AS counted ORDER BY counted.calls DESC LIMIT {most}"""
"""A query that returns each counted statement with one call, those with the most calls first."""


def write_counted_statements(dsn: str, folder: Path, most: int) -> str:
    """Writes the files `statements.csv`, with at most `most` statements of the database, and `columns.csv` into a
    folder. Returns the address of the database without its password.

    The role of the connection string reads them, with its own search path, in which pg_stat_statements must be. Raises
    StudyError and StoreError.
    """
    conninfo = conninfo_of(dsn)
    queries = _queries()
    queries[_STATEMENTS] = _ONCE.format(query=queries[_STATEMENTS], most=most)
    try:
        session = open_session(conninfo, as_load=True, connect_timeout=CONNECT_TIMEOUT_S, autocommit=True)
    except (psycopg.OperationalError, psycopg.ProgrammingError) as error:
        raise not_connected("--statements-of", conninfo, error) from None
    shown = without_password(conninfo)
    with session:
        for name, query in queries.items():
            try:
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
    make_folder(path.parent, mode=0o700)
    with session.cursor().copy(f"COPY ({query}) TO STDOUT CSV HEADER".encode()) as copy, writing(path):
        path.write_bytes(b"".join(map(bytes, copy)))
