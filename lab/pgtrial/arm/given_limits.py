"""What a given server permits: writing, making tables, and the room for them. Each refusal is one sentence."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psycopg

from pgtrial.arm.connect import Target
from pgtrial.data.prepared import Prepared
from pgtrial.data.sizes import Data, data_mb, label
from pgtrial.errors import StudyError
from pgtrial.study.spec import SetUp

_Connection = psycopg.Connection[tuple[Any, ...]]


def check_writable(arm: str, connection: _Connection) -> None:
    """Raise StudyError for a standby, and for a role or database whose transactions are read-only."""
    if _value(connection, "SELECT pg_is_in_recovery()"):
        raise StudyError(
            f"arms.{arm}: the server is a read-only standby, and tables are to be loaded or put back there; name the "
            'primary in the dsn, or load it there and use reset = "none" with workloads that only read'
        )
    if _value(connection, "SHOW default_transaction_read_only") == "on":
        raise StudyError(
            f"arms.{arm}: default_transaction_read_only is on for the role {connection.info.user} in the database "
            f"{connection.info.dbname}; set it off there, or name another role in the dsn"
        )


def check_may_create(arm: str, connection: _Connection) -> None:
    """Raise StudyError for a role that may not make tables where unqualified names would put them."""
    user, database = connection.info.user, connection.info.dbname
    schema = _value(connection, "SELECT current_schema()")
    if schema is None:
        raise StudyError(
            f"arms.{arm}: no schema of the search path of {user} exists in the database {database}; create one, e.g. "
            f"CREATE SCHEMA AUTHORIZATION {user}"
        )
    if not _value(connection, "SELECT has_schema_privilege(current_schema(), 'CREATE')"):
        raise StudyError(
            f"arms.{arm}: the role {user} may not create tables in the schema {schema} of the database {database}; "
            f"grant it (GRANT CREATE ON SCHEMA {schema} TO {user}), or name another database in the dsn"
        )


def check_room(
    arm: str, setup: SetUp, reached: tuple[Target, _Connection], missing: Sequence[Data], fillfactor: int
) -> None:
    """Raise StudyError where the largest data would not fit beside what is there, as far as the size is known."""
    target, connection = reached
    largest = max(missing, key=lambda data: data_mb(data, fillfactor))
    tables = sum(
        max((data_mb(each, fillfactor) for each in missing if isinstance(each, kind)), default=0)
        for kind in (int, Prepared)
    )
    max_wal = float(_value(connection, "SELECT pg_size_bytes(current_setting('max_wal_size'))")) / 1e6
    wal = min(max_wal, max(64.0, tables))
    free, known_by = _free_mb(setup, connection, target)
    if free is not None and tables + wal > free:
        raise StudyError(
            f"arms.{arm}: {label(largest)} does not fit the server: it needs about {tables:,} MB for tables and "
            f"{wal:,.0f} MB for WAL, and {max(0.0, free):,.0f} MB are free {known_by}; choose less data, or a larger "
            "storage"
        )


def _free_mb(setup: SetUp, connection: _Connection, target: Target) -> tuple[float | None, str]:
    """Free megabytes and how they are known; None where nothing tells."""
    if setup.storage_limit is not None:
        # of databases that the role may not connect to, the size is unknown
        used = _value(
            connection,
            "SELECT coalesce(sum(pg_database_size(oid)), 0) FROM pg_database "
            "WHERE has_database_privilege(oid, 'CONNECT')",
        )
        return (setup.storage_limit - float(used)) / 1e6, f"of storage_limit = {setup.storage_limit / 1e9:g} GB"
    directory = _data_directory(connection) if target.local else None
    if directory is None:
        return None, ""
    return shutil.disk_usage(directory).free / 1e6, f"in {directory}"


def _data_directory(connection: _Connection) -> Path | None:
    """Where a server on this machine has its data, as far as the role may know and the lab can look."""
    try:
        directory = Path(_value(connection, "SELECT current_setting('data_directory', true)") or "/nonexistent")
    except psycopg.errors.InsufficientPrivilege:
        return None
    try:
        return directory if directory.is_dir() else None
    except OSError:
        return None


def _value(connection: _Connection, query: str) -> Any:
    row = connection.execute(query.encode()).fetchone()
    return row[0] if row else None
