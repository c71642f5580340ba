"""Data that a trial needs on its server: what every kind of it is and does."""

from __future__ import annotations

import abc
from typing import Any, ClassVar, Self

from pgtrial.loads.data_makers import ENGINE_HERE, Connection, DataMaker, OnLine, Reset, Server, vacuum
from pgtrial.model.records.study import LoadPoint
from pgtrial.model.study.spec import StudySpec


class Data(abc.ABC):
    """Data of one kind. Two that are equal are the same on a server, and share a template."""

    relations: ClassVar[str]
    """SQL condition for its tables, of which pg_class is named `c`."""

    @classmethod
    @abc.abstractmethod
    def needed(cls, spec: StudySpec, point: LoadPoint) -> Self | None:
        """The data of this kind that a load point needs; None if it needs another kind."""

    @property
    @abc.abstractmethod
    def label(self) -> str:
        """For people: `scale 20`, `sysbench, 250 x 450,000 rows`."""

    @property
    @abc.abstractmethod
    def short_name(self) -> str:
        """For directories: `s20`, `sysbench-1a2b3c4d`, `table_a-10x100000`."""

    @property
    @abc.abstractmethod
    def mb(self) -> int:
        """Megabytes of tables and indexes, roughly; 0 if unknown."""

    @property
    @abc.abstractmethod
    def digest(self) -> str:
        """Everything that the data depends on. A text that begins with a word and a space names the kind by it."""

    @property
    def key(self) -> dict[str, Any]:
        """Its part of a template's key."""
        return {"scale": 0, "prepared": self.digest}

    @abc.abstractmethod
    def find(self, connection: Connection) -> bool:
        """Whether this very data is there, complete. Raises StudyError for data of others in its place."""

    def clear(self, connection: Connection) -> bool:
        """Drop what pgtrial made in its place and the engine does not replace; whether the next load resumes one."""
        del connection
        return False

    @abc.abstractmethod
    def make(self, server: Server, report: OnLine, maker: DataMaker = ENGINE_HERE, *, in_steps: bool = False) -> None:
        """Make it, mark it as pgtrial's, freeze and analyse it. Raises ArmError.

        With `in_steps` a load that was interrupted can be resumed, where the kind supports that.
        """

    def reset(self, connection: Connection, how: Reset) -> None:
        """Bring it near its first state: no dead rows. With `none`, leave it. Rows that trials wrote stay."""
        if how == "vacuum":
            vacuum(connection, self.table_names(connection))

    def table_names(self, connection: Connection) -> list[str]:
        """The names of its tables on a server."""
        rows = connection.execute(
            "SELECT c.relname FROM pg_class c WHERE c.relkind IN ('r', 'p') AND pg_table_is_visible(c.oid) "
            f"AND {self.relations} ORDER BY c.relname".encode()
        ).fetchall()
        return [str(row[0]) for row in rows]
