"""Checks that a given server permits what a study needs: enough connections, write access, the right to make tables,
and the space for them. If it does not, an error tells the user in one sentence why, and what to do."""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path

import psycopg
from psycopg.pq import ExecStatus

from pgtrial.loads.data.data import Data
from pgtrial.loads.data.pgbench_tables import PgbenchTables
from pgtrial.loads.target import Session, Target, backend_type, is_pooled, value, values_for_users
from pgtrial.model import marks
from pgtrial.model.errors import StudyError
from pgtrial.model.study.servers import Given
from pgtrial.servers.arm import LAB_CONNECTIONS, Needs

LOCK_APPLICATION = "pgtrial study "
"""The beginning of the application_name of the session by which a lab holds its lock on a given server. This session
does not count as a connection of others."""

_USED = """SELECT
    current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
        - coalesce(current_setting('reserved_connections', true), '0')::int,
    role.rolsuper, role.rolconnlimit, base.datconnlimit, used.everywhere, used.of_role, used.of_base
    FROM pg_roles role, pg_database base,
        (SELECT count(*) AS everywhere, count(*) FILTER (WHERE usename = current_user) AS of_role,
            count(*) FILTER (WHERE datname = current_database()) AS of_base
        FROM pg_stat_activity WHERE datid IS NOT NULL AND usesysid IS NOT NULL AND pid <> pg_backend_pid()
            AND coalesce({backend_type}, 'client backend') = 'client backend'
            AND NOT coalesce(application_name LIKE 'pgtrial study %', false)) used
    WHERE role.rolname = current_user AND base.datname = current_database()"""
"""The query for the limits of connections, and the number of connections in use. Without the rights of
pg_read_all_stats, backend_type is null for sessions of other roles, so that these count as client connections."""

LEAVING_S = 5.0
"""The time for which the server may still list a session whose client has ended, such as a killed lab, in seconds."""

_STATEMENT = b"pgtrial_check"


def check_connections(arm: str, setup: Given, needs: Needs, connection: Session) -> None:
    """Raises StudyError if the clients and the lab together need more connections than the server, the database or the
    role permits.

    If the role may not read pg_roles or the sessions, the limits are not known, and no error is raised.
    """
    of_lab = LAB_CONNECTIONS + bool(
        setup.settings
    )  # one more connection: the session that has changed the settings stays open
    wanted, deadline = needs.clients + of_lab, time.monotonic() + LEAVING_S
    while passed := [limit for limit in _limits(connection) if 0 <= limit[0] < wanted + limit[1]]:
        limit, taken, what, cure = passed[0]
        if limit < wanted or time.monotonic() > deadline:
            raise StudyError(
                f"arms.{arm}: {needs.clients} clients need {wanted} connections ({of_lab} for pgtrial), and "
                f"{what} is {limit}, with {taken} taken by others; {cure}, or ask for fewer clients "
                "(of tasks: for smaller pools)"
            )
        time.sleep(0.1)


def _limits(connection: Session) -> list[tuple[int, int, str, str]]:
    """Returns the limits of connections. Each has the limit (negative if there is none), the number of connections in
    use, a phrase that names the limit, and a phrase that says how to raise it."""
    try:
        row = connection.execute(_USED.format(backend_type=backend_type(connection)).encode()).fetchone()
    except psycopg.errors.InsufficientPrivilege:
        return []
    assert row is not None, "a session has a role and a database"
    of_server, is_superuser, of_role, of_base, *used = row
    limits = [(of_server, used[0], "max_connections less the reserved connections", "raise max_connections there")]
    if not is_superuser:
        limit = "the CONNECTION LIMIT of the"
        limits += [
            (of_role, used[1], f"{limit} role {connection.info.user}", "raise it (ALTER ROLE)"),
            (of_base, used[2], f"{limit} database {connection.info.dbname}", "raise it (ALTER DATABASE)"),
        ]
    return limits


_READ_ONLY = "SELECT reset_val FROM pg_settings WHERE name = 'default_transaction_read_only'"
"""The query for the value that the role or the database sets for default_transaction_read_only. It reads reset_val,
since the lab's own sessions override the current value."""


def check_writable(arm: str, connection: Session) -> None:
    """Raises StudyError for a standby, and for a role or database whose transactions are read-only."""
    if value(connection, "SELECT pg_is_in_recovery()"):
        raise StudyError(
            f"arms.{arm}: the server is a read-only standby, but pgtrial has to load or reset tables there; name the "
            'primary in the dsn, or load the tables on the primary and use reset = "none" with workloads that only read'
        )
    if value(connection, _READ_ONLY) == "on":
        raise StudyError(
            f"arms.{arm}: default_transaction_read_only is on for the role {connection.info.user} in the database "
            f"{connection.info.dbname}; set it off there, or name another role in the dsn"
        )


def check_prepared(arm: str, needs: Needs, target: Target) -> None:
    """Raises StudyError if the clients prepare statements and the dsn leads to a pooler that does not keep prepared
    statements apart: with pooling by transaction, a client can get a server session that lacks its statements or has
    those of others."""
    if not needs.prepared:
        return
    with closing(target.connect()) as first, closing(target.connect()) as second:
        if not is_pooled(first):
            return
        if first.pgconn.prepare(_STATEMENT, b"SELECT 1").status != ExecStatus.COMMAND_OK:
            return
        is_shared = second.pgconn.exec_prepared(_STATEMENT, []).status == ExecStatus.TUPLES_OK
        with suppress(psycopg.Error):
            first.execute(b"DEALLOCATE " + _STATEMENT)
    if is_shared:
        raise StudyError(
            f"arms.{arm}: the dsn leads to a pooler that gives a client another server session for each transaction, "
            f"with statements that others have prepared; set {marks.key_in('load', 'protocol', 'simple')}, make the "
            "pooler support prepared statements (pgbouncer since 1.21: max_prepared_statements), or name the server "
            "itself"
        )


def check_may_create(arm: str, connection: Session) -> None:
    """Raises StudyError if the role may not create tables in the schema in which CREATE TABLE with an unqualified name
    would create them."""
    user, database = connection.info.user, connection.info.dbname
    [(schema,)] = values_for_users(connection, "SELECT pg_catalog.current_schema()", ["search_path"])
    if schema is None:
        raise StudyError(
            f"arms.{arm}: no schema in the search path of {user} exists in the database {database}; create one, e.g. "
            f"CREATE SCHEMA AUTHORIZATION {user}"
        )
    if not value(connection, "SELECT has_schema_privilege(%s, 'CREATE')", schema):
        raise StudyError(
            f"arms.{arm}: the role {user} may not create tables in the schema {schema} of the database {database}; "
            f"grant it (GRANT CREATE ON SCHEMA {schema} TO {user}), or name another database in the dsn"
        )


def check_room(arm: str, setup: Given, reached: tuple[Target, Session], missing: Sequence[Data], needs: Needs) -> None:
    """Raises StudyError if the data of the study would not fit into the server's free space, as far as that space is
    known.

    If all data is loaded already, the load still writes WAL, for which a storage_limit has to leave space. Without a
    storage_limit this is not checked, since the file system may contain part of the WAL files already.
    """
    target, connection = reached
    if not missing and setup.storage_limit is None:
        return
    tables = _megabytes(missing)
    max_wal = float(value(connection, "SELECT pg_size_bytes(current_setting('max_wal_size'))")) / 1e6
    wal = min(max_wal, max(64.0, tables or _megabytes(needs.data)))
    free, known_by = _free_mb(setup, connection, target)
    if free is not None and tables + wal > free:
        largest = max(missing or needs.data, key=lambda data: data.mb).label
        what = (
            f"{largest} does not fit on the server: it needs about {tables:,} MB for tables and {wal:,.0f} MB for WAL"
        )
        if not missing:
            what = (
                f"{largest} is loaded, but the WAL of the load does not fit on the server: it needs about {wal:,.0f} MB"
            )
        raise StudyError(
            f"arms.{arm}: {what}, and {max(0.0, free):,.0f} MB are free {known_by}; choose less data, or a larger "
            "storage"
        )


def _megabytes(data: Sequence[Data]) -> int:
    """Returns the most space that the data takes at one time, in megabytes. A server has at most one set of pgbench's
    tables and one set of other data at a time, so this is the sum of the largest of each."""
    return sum(
        max((kept.mb for kept in data if isinstance(kept, PgbenchTables) is pgbenchs), default=0)
        for pgbenchs in (True, False)
    )


def _free_mb(setup: Given, connection: Session, target: Target) -> tuple[float | None, str]:
    """Returns the free space in megabytes, or None if it cannot be found out, and a phrase for messages that names the
    disk or the limit to which this space belongs."""
    if setup.storage_limit is not None:
        # databases to which the role may not connect are left out, since it may not read their size
        used = value(
            connection,
            "SELECT coalesce(sum(pg_database_size(oid)), 0) FROM pg_database "
            "WHERE has_database_privilege(oid, 'CONNECT')",
        )
        return (setup.storage_limit - float(used)) / 1e6, f"of storage_limit = {_size(setup.storage_limit)}"
    if target.local:
        # the role may lack the right to read data_directory, and the lab the right to read that directory
        with suppress(psycopg.errors.InsufficientPrivilege, OSError):
            directory = Path(value(connection, "SELECT current_setting('data_directory', true)") or "/nonexistent")
            if directory.is_dir():
                return shutil.disk_usage(directory).free / 1e6, f"in {directory}"
    return None, ""


def _size(size: int) -> str:
    return f"{size / 1e9:g} GB" if size >= 1e8 else f"{size / 1e6:g} MB"
