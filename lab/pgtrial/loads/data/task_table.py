"""Makes and finds table_a, the table of the workload app-tasks, on a server."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import ClassVar, Self

import psycopg
from psycopg import sql

from pgtrial.loads.client_processes import count_clients
from pgtrial.loads.data.data import Data, freeze, tables_of_others
from pgtrial.loads.load_makers import ENGINE_HERE, DataOrder, LoadMaker, OnLine, noticing
from pgtrial.loads.made_objects import drop_marked
from pgtrial.loads.marks import Mark, mark_on, marked_by
from pgtrial.loads.names import qualified
from pgtrial.loads.target import Session, Target
from pgtrial.model.errors import StudyError
from pgtrial.model.records.load_point import LoadPoint
from pgtrial.model.study.spec import StudySpec

_TABLE = "table_a"
_INDEX = "table_a_thread_id"
_MADE = "pgtrial tasks: "
"""The beginning of the comment by which the engine marks the table as complete."""
_UNFINISHED = "pgtrial tasks, unfinished: "

_ROWS = "g"
"""The step of making the table that several engines can share: generating its rows."""
_CREATED = "made in "
_CREATED_MS = re.compile(r"rows created in (\d+) ms")
_BYTES_PER_ROW = 50
"""The size of a row in bytes: 36 with its line pointer, and its share of an index in which equal keys share an
entry."""


@dataclass(frozen=True)
class TaskTable(Data):
    """The table table_a: `threads` is the number of distinct values of thread_id, and `rows` the number of rows with
    each value. The tasks update rows, but change neither number."""

    marks: ClassVar[tuple[str, ...]] = (_MADE, _UNFINISHED)
    making_is_measured: ClassVar[bool] = True

    threads: int
    rows: int

    @classmethod
    def needed(cls, spec: StudySpec, point: LoadPoint) -> Self | None:
        return None if point.tasks is None else cls(point.tasks.threads_in_table, point.tasks.rows)

    def relations(self, connection: Session) -> str:
        return marked_by(_MADE, connection)

    @property
    def label(self) -> str:
        return f"{_TABLE}, {self.threads:,} x {self.rows:,} rows"

    @property
    def relations_made(self) -> str:
        return _TABLE

    @property
    def names(self) -> tuple[str, ...]:
        return _TABLE, _INDEX

    @property
    def digest(self) -> str:
        return f"{_TABLE} {self.threads} x {self.rows}"

    @property
    def mb(self) -> int:
        return round(self.threads * self.rows * _BYTES_PER_ROW / 1e6)

    @property
    def short_name(self) -> str:
        return f"{_TABLE}-{self.threads}x{self.rows}"

    def make(self, server: Target, report: OnLine, maker: LoadMaker = ENGINE_HERE, *, in_steps: bool = False) -> None:
        """Makes the table with the engine in the same steps as the published benchmark that the workload app-tasks
        repeats, freezes its rows, and stores the time that creating the table and its rows took, without VACUUM, as a
        comment on its index.

        With several engines the time is not stored: it could not be compared with the published time, which is for one
        connection. If making the table fails, the incomplete table is dropped. Raises ArmError if the engine fails, and
        StudyError if a table of the same name was not created by pgtrial.
        """
        created: list[str] = []

        def on_line(line: str) -> None:
            created.extend(_CREATED_MS.findall(line))
            report(line)

        with server.connect() as connection:
            self.find(connection)  # raises StudyError if a table of this name exists that pgtrial did not create
            clients = count_clients(connection)
        try:
            for steps in ("t", _ROWS, "v") if maker.engines > 1 else ("tgv",):
                most_parts = self.threads if steps == _ROWS else 1
                order = table_a_order(server.environment(), self.threads, self.rows, steps, most_parts=most_parts)
                maker.make(order, on_line)
        except BaseException:
            _drop_unfinished(server)
            raise
        with server.connect() as connection:
            table, index = qualified(connection, [_TABLE, _INDEX])
            freeze(connection, [table], clients)
            if created:
                comment = sql.Literal(f"{_CREATED}{created[-1]} ms")
                connection.execute(sql.SQL("COMMENT ON INDEX {} IS {}").format(sql.SQL(index), comment))

    def find(self, connection: Session) -> bool:
        """True if the server already has exactly this table. Raises StudyError if a table of this name was not created
        by pgtrial."""
        mark = mark_on(connection, _TABLE)
        if mark is not None and not mark.is_ours(self.marks):
            raise tables_of_others(connection, f"a {_TABLE}", "rename it", copied=mark.is_copy(self.marks))
        return mark == Mark(f"{_MADE}{self.threads} x {self.rows}")


def table_a_order(env: Mapping[str, str], threads: int, rows: int, steps: str, *, most_parts: int = 1) -> DataOrder:
    """Returns the command of the engine that carries out `steps` of making the table, as a DataOrder: `t` creates the
    table, `g` generates its rows, and `v` runs VACUUM and marks the table as complete. Several engines can share the
    step `g` if it is the only one."""
    shape = [f"--threads-in-table={threads}", f"--rows={rows}"]
    command = ["tasks", "--initialize-only", f"--init-steps={steps}", *shape]
    return DataOrder("making table_a", command, noticing(env), most_parts)


def _drop_unfinished(server: Target) -> None:
    with suppress(psycopg.Error, StudyError), server.connect() as connection:
        drop_marked(connection, (_UNFINISHED,))


def creation_s(connection: Session) -> float | None:
    """Returns the time, in seconds, that creating the table and its rows took, without VACUUM, as it was stored in a
    comment on the table's index; None if no time is stored."""
    comment = mark_on(connection, _INDEX)
    match = re.fullmatch(rf"{_CREATED}(\d+) ms", comment.text) if comment else None
    return int(match[1]) / 1000 if match else None
