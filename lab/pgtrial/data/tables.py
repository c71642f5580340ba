"""The tables of the pgbench schema on a server: what is there, loading them, and their state before a trial."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Literal, Protocol

import psycopg
from psycopg import sql

from pgtrial.engine import initialise
from pgtrial.errors import ArmError

TABLES = ("pgbench_accounts", "pgbench_branches", "pgbench_history", "pgbench_tellers")
_MARK = "loaded by pgtrial: "
_Connection = psycopg.Connection[tuple[Any, ...]]


class Server(Protocol):
    """What is needed of a server to load it."""

    def environment(self) -> dict[str, str]:
        """PG* variables for the engine."""
        ...

    def connect(self) -> _Connection:
        """A connection of the lab."""
        ...


@dataclass(frozen=True)
class Contents:
    """What the tables hold; `fillfactor` in percent."""

    scale: int
    fillfactor: int
    foreign_keys: bool


@dataclass(frozen=True)
class Found:
    """Tables that are there; `ours` says whether pgtrial loaded them and may therefore replace them."""

    contents: Contents
    ours: bool
    where: str


def find_tables(connection: _Connection) -> Found | None:
    """The tables of this database's search path, or None if none of the four is there. Raises ArmError if some lack."""
    present = [name for name in TABLES if _value(connection, "SELECT to_regclass(%s)", name) is not None]
    if not present:
        return None
    database = str(_value(connection, "SELECT current_database()"))
    if len(present) < len(TABLES):
        missing = ", ".join(sorted(set(TABLES) - set(present)))
        raise ArmError(
            f"the database {database} has some of pgbench's tables but lacks {missing}: "
            "drop what is left of them, or name another database in the dsn"
        )
    comment = _value(connection, "SELECT obj_description(to_regclass('pgbench_accounts'), 'pg_class')")
    options = _value(connection, "SELECT reloptions FROM pg_class WHERE oid = to_regclass('pgbench_accounts')") or []
    fillfactor = next((int(item.split("=")[1]) for item in options if item.startswith("fillfactor=")), 100)
    keys = _value(
        connection,
        "SELECT count(*) FROM pg_constraint WHERE contype = 'f' AND conrelid = to_regclass('pgbench_accounts')",
    )
    scale = _value(connection, "SELECT count(*) FROM pgbench_branches")
    return Found(
        Contents(int(scale), fillfactor, bool(keys)), str(comment or "").startswith(_MARK), f"database {database}"
    )


def load_tables(server: Server, contents: Contents, on_progress: Callable[[str], None]) -> None:
    """Create and fill the tables by the engine, mark them as pgtrial's, freeze and analyse them. Raises ArmError."""
    initialise(
        server.environment(),
        contents.scale,
        fillfactor=contents.fillfactor,
        foreign_keys=contents.foreign_keys,
        on_line=on_progress,
    )
    with server.connect() as connection:
        mark = _MARK + json.dumps(asdict(contents))
        connection.execute(sql.SQL("COMMENT ON TABLE pgbench_accounts IS {}").format(sql.Literal(mark)))
        # hint bits and frozen rows are written now, not by the first reads of a trial
        connection.execute(f"VACUUM (FREEZE, ANALYZE) {', '.join(TABLES)}")


def reset_tables(connection: _Connection, how: Literal["vacuum", "none"]) -> None:
    """Bring the tables near their first state: an empty history, no dead rows; or leave them as they are."""
    if how == "vacuum":
        connection.execute("TRUNCATE pgbench_history")
        connection.execute(f"VACUUM (ANALYZE) {', '.join(TABLES)}")


def _value(connection: _Connection, query: str, *parameters: object) -> Any:
    row = connection.execute(query.encode(), parameters or None).fetchone()
    return row[0] if row else None
