"""The tables of the pgbench schema on a server: what is there, loading them, and their state before a trial."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Literal, Protocol

import psycopg
from psycopg import sql

from pgtrial.loads.data_makers import ENGINE_HERE, DataMaker, tables_order
from pgtrial.model.errors import ArmError

TABLES = ("pgbench_accounts", "pgbench_branches", "pgbench_history", "pgbench_tellers")
_MARK = "loaded by pgtrial: "
_UNFINISHED = "being loaded by pgtrial: "
_ROWS = "g"
_PHASES = ("dt", _ROWS, "v", "p", "f")
"""pgbench's steps: the tables, their rows, vacuum, primary keys, foreign keys."""
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
    """Tables that are there; `ours` says whether pgtrial loaded them and may therefore replace them.

    `missing` are the phases that are left to do of a load that broke off; () when all is there.
    """

    contents: Contents
    ours: bool
    where: str
    missing: tuple[str, ...] = ()


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
    comment = str(_value(connection, "SELECT obj_description(to_regclass('pgbench_accounts'), 'pg_class')") or "")
    if comment.startswith(_UNFINISHED):
        told = json.loads(comment.removeprefix(_UNFINISHED))
        left = tuple(told.pop("missing"))
        return Found(Contents(**told), ours=True, where=f"database {database}", missing=left)
    options = _value(connection, "SELECT reloptions FROM pg_class WHERE oid = to_regclass('pgbench_accounts')") or []
    fillfactor = next((int(item.split("=")[1]) for item in options if item.startswith("fillfactor=")), 100)
    keys = _value(
        connection,
        "SELECT count(*) FROM pg_constraint WHERE contype = 'f' AND conrelid = to_regclass('pgbench_accounts')",
    )
    scale = _value(connection, "SELECT count(*) FROM pgbench_branches")
    return Found(Contents(int(scale), fillfactor, bool(keys)), comment.startswith(_MARK), f"database {database}")


def load_tables(
    server: Server, contents: Contents, on_progress: Callable[[str], None], maker: DataMaker = ENGINE_HERE
) -> None:
    """Create and fill the tables by the engine, mark them as pgtrial's, freeze and analyse them. Raises ArmError."""
    phases = _phases(contents)
    # one engine alone freezes the rows as they come in, since it makes the tables in the same run
    for steps in phases if maker.engines > 1 else ["".join(phases)]:
        _carry_out(server, contents, steps, on_progress, maker)
    _finish(server, contents)


def load_in_phases(
    server: Server,
    contents: Contents,
    missing: tuple[str, ...],
    on_progress: Callable[[str], None],
    maker: DataMaker = ENGINE_HERE,
) -> None:
    """As load_tables, each phase marked when it is done, so that what breaks off goes on with the phase it was in.

    `missing` are the phases that are left, () for all. Raises ArmError.
    """
    if missing:
        _undo_constraints(server, "f" if missing[0] == "f" else "pf" if missing[0] == "p" else "")
    left = missing or _phases(contents)
    while left:
        _carry_out(server, contents, left[0], on_progress, maker)
        left = left[1:]
        if left:
            _mark(server, _UNFINISHED + json.dumps({**asdict(contents), "missing": left}))
    _finish(server, contents)


def _phases(contents: Contents) -> tuple[str, ...]:
    return _PHASES if contents.foreign_keys else _PHASES[:-1]


def _carry_out(
    server: Server, contents: Contents, steps: str, on_progress: Callable[[str], None], maker: DataMaker
) -> None:
    """Some of pgbench's steps; the rows alone by as many engines as there are."""
    engines = maker.engines if steps == _ROWS else 1
    if engines > 1:
        # an engine that shares the rows leaves what is there: a load that broke off, and what the others write
        with server.connect() as connection:
            connection.execute(f"TRUNCATE {', '.join(TABLES)}")
    environment = server.environment()
    order = tables_order(environment, contents.scale, steps, fillfactor=contents.fillfactor, engines=engines)
    maker.make(order, on_progress)


def _undo_constraints(server: Server, kinds: str) -> None:
    """Drop the keys of the kinds `p` and `f` that a phase which broke off has made already.

    The server carries the statement to its end that an engine was killed in: the lock waits for that.
    """
    with server.connect() as connection, connection.transaction():
        connection.execute(f"LOCK TABLE {', '.join(TABLES)}")
        rows = connection.execute(
            "SELECT conrelid::regclass::text, conname FROM pg_constraint WHERE contype::text = ANY (%s) "
            "AND conrelid = ANY (SELECT to_regclass(name) FROM unnest(%s::text[]) AS name) ORDER BY contype",
            (list(kinds), list(TABLES)),
        ).fetchall()
        for table, name in rows:
            connection.execute(f"ALTER TABLE {table} DROP CONSTRAINT {sql.Identifier(name).as_string()}".encode())


def _finish(server: Server, contents: Contents) -> None:
    with server.connect() as connection:
        # hint bits and frozen rows are written now, not by the first reads of a trial
        connection.execute(f"VACUUM (FREEZE, ANALYZE) {', '.join(TABLES)}")
    _mark(server, _MARK + json.dumps(asdict(contents)))


def _mark(server: Server, mark: str) -> None:
    with server.connect() as connection:
        connection.execute(sql.SQL("COMMENT ON TABLE pgbench_accounts IS {}").format(sql.Literal(mark)))


def reset_tables(connection: _Connection, how: Literal["vacuum", "none"]) -> None:
    """Bring the tables near their first state: an empty history, no dead rows; or leave them as they are."""
    if how == "vacuum":
        connection.execute("TRUNCATE pgbench_history")
        connection.execute(f"VACUUM (ANALYZE) {', '.join(TABLES)}")


def _value(connection: _Connection, query: str, *parameters: object) -> Any:
    row = connection.execute(query.encode(), parameters or None).fetchone()
    return row[0] if row else None
