"""table_a of the workload app-tasks on a server: making it, finding it again, and its state before a trial."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import sql

from pgtrial.loads.data_makers import ENGINE_HERE, Connection, DataMaker, Reset, Server, table_a_order, vacuum
from pgtrial.model.errors import StudyError

_TABLE = "table_a"
_INDEX = "table_a_thread_id"
_MADE = "pgtrial tasks: "
"""With which the engine's comment on a table of its own begins."""
_UNFINISHED = "pgtrial tasks, unfinished: "

_ROWS = "g"
"""The step that engines can share."""
_CREATED = "made in "
_CREATED_MS = re.compile(r"rows created in (\d+) ms")
_BYTES_PER_ROW = 50
"""A row of 36 bytes with its line pointer, and its part of an index in which equal keys share an entry."""


@dataclass(frozen=True)
class TaskTable:
    """The shape of the table: values of thread_id, and rows of each."""

    threads: int
    rows: int

    @property
    def label(self) -> str:
        """For people: `table_a, 10 x 100,000 rows`."""
        return f"{_TABLE}, {self.threads:,} x {self.rows:,} rows"

    @property
    def digest(self) -> str:
        """All that the table depends on."""
        return f"{_TABLE} {self.threads} x {self.rows}"

    @property
    def mb(self) -> int:
        """Megabytes of table and index, roughly."""
        return round(self.threads * self.rows * _BYTES_PER_ROW / 1e6)

    @property
    def short_name(self) -> str:
        """For directories: `table_a-10x100000`."""
        return f"{_TABLE}-{self.threads}x{self.rows}"

    @property
    def key(self) -> dict[str, Any]:
        return {"scale": 0, "prepared": self.digest}

    def make(
        self,
        server: Server,
        on_progress: Callable[[str], None],
        maker: DataMaker = ENGINE_HERE,
        *,
        in_steps: bool = False,
    ) -> None:
        """Have the engine make the table as published, freeze its rows, and note how long it took.

        How long it takes several engines is not noted: published is the time of one connection. What breaks off is
        dropped. Raises ArmError, and StudyError for somebody else's table.
        """
        created: list[str] = []

        def hear(line: str) -> None:
            created.extend(_CREATED_MS.findall(line))
            on_progress(line)

        with server.connect() as connection:
            self.find(connection)  # what is there already is ours, or this is as far as we go
        try:
            for steps in ("t", _ROWS, "v") if maker.engines > 1 else ("tgv",):
                most_parts = self.threads if steps == _ROWS else 1
                order = table_a_order(server.environment(), self.threads, self.rows, steps, most_parts=most_parts)
                maker.make(order, hear)
        except BaseException:
            _drop_unfinished(server)
            raise
        with server.connect() as connection:
            # hint bits and frozen rows are written now, not by the first reads of a trial
            vacuum(connection, [_TABLE], freeze=True)
            if created:
                comment = sql.Literal(f"{_CREATED}{created[-1]} ms")
                connection.execute(sql.SQL("COMMENT ON INDEX {} IS {}").format(sql.Identifier(_INDEX), comment))

    def find(self, connection: Connection) -> bool:
        """Whether this very table is there. Raises StudyError for somebody else's in its place."""
        there = connection.execute("SELECT to_regclass(%s)", (_TABLE,)).fetchone()
        if there is None or there[0] is None:
            return False
        comment = _comment(connection)
        if not comment.startswith((_MADE, _UNFINISHED)):
            raise StudyError(
                f"the database {connection.info.dbname} already holds a {_TABLE} that pgtrial did not make and will "
                "not replace; rename it, or name another database in the dsn"
            )
        return comment == f"{_MADE}{self.threads} x {self.rows}"

    def clear(self, connection: Connection) -> bool:
        """Leave what is there to the engine, which replaces a table of its own."""
        del connection
        return False

    def reset(self, connection: Connection, how: Reset) -> None:
        """Leave no dead rows, or all as it is. What is written stays as many rows, of the same values."""
        if how == "vacuum":
            vacuum(connection, [_TABLE])


def _drop_unfinished(server: Server) -> None:
    with suppress(psycopg.Error), server.connect() as connection:
        if _comment(connection).startswith(_UNFINISHED):
            connection.execute(f"DROP TABLE IF EXISTS {_TABLE}".encode())


def creation_s(connection: Connection) -> float | None:
    """How long the table took to be made, seconds; None if that was not noted."""
    found = re.fullmatch(rf"{_CREATED}(\d+) ms", _comment(connection, _INDEX))
    return int(found[1]) / 1000 if found else None


def _comment(connection: Connection, name: str = _TABLE) -> str:
    row = connection.execute("SELECT obj_description(to_regclass(%s), 'pg_class')", (name,)).fetchone()
    return str((row and row[0]) or "")
