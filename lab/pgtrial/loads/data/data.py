"""Data that a trial needs on its server: what every kind of it is and does, and what it takes on disk."""

from __future__ import annotations

import abc
from typing import Any, ClassVar, Self

from pgtrial.loads.data_makers import ENGINE_HERE, DataMaker, OnLine, Reset, vacuum
from pgtrial.loads.target import Session, Target
from pgtrial.model.errors import StudyError
from pgtrial.model.records.plan import LoadPoint
from pgtrial.model.study.spec import StudySpec

CLUSTER_MB = 50
"""A cluster without tables, rounded up."""

SEGMENT_MB = 16
LOADING_WAL_MB = 1024
"""WAL that may stand around while loading, at most; see `max_wal_size` of the loading settings."""


class Data(abc.ABC):
    """Data of one kind. Two that are equal are the same on a server, and share a template."""

    relations: ClassVar[str]
    """SQL condition for its tables, of which pg_class is named `c`."""

    making_is_measured: ClassVar[bool] = False
    """Whether reports say how long it took to be made: then each study makes its own."""

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

    def objection(self, connection: Session) -> str | None:
        """Why a server cannot hold it, one sentence without a full stop; None if nothing is known against that."""
        return None

    @abc.abstractmethod
    def find(self, connection: Session) -> bool:
        """Whether this very data is there, complete. Raises StudyError for data of others in its place."""

    def clear(self, connection: Session) -> bool:
        """Drop what pgtrial made in its place and the engine does not replace; whether the next load resumes one."""
        return False

    @abc.abstractmethod
    def make(self, server: Target, report: OnLine, maker: DataMaker = ENGINE_HERE, *, in_steps: bool = False) -> None:
        """Make it, mark it as pgtrial's, freeze and analyse it. Raises ArmError.

        With `in_steps` a load that was interrupted can be resumed, where the kind supports that.
        """

    def reset(self, connection: Session, how: Reset) -> None:
        """Bring it near its first state: no dead rows. With `none`, leave it. Rows that trials wrote stay."""
        if how == "vacuum":
            vacuum(connection, self.table_names(connection))

    def table_names(self, connection: Session) -> list[str]:
        """The names of its tables on a server."""
        rows = connection.execute(
            "SELECT c.relname FROM pg_class c WHERE c.relkind IN ('r', 'p') AND pg_table_is_visible(c.oid) "
            f"AND {self.relations} ORDER BY c.relname".encode()
        ).fetchall()
        return [str(row[0]) for row in rows]


def prefilled_wal_mb(data: Data) -> int:
    """WAL segments kept ready in a template, as much as its data within 64 MB to 512 MB.

    New segments cost more than recycled ones; ready-made ones spare the first trials after initdb that cost.
    """
    return min(512, max(64, data.mb)) // SEGMENT_MB * SEGMENT_MB


def needed_mb(data: Data) -> int:
    """Megabytes to load and to run: the template, one copy of it, and the WAL of loading or of a trial."""
    once = CLUSTER_MB + data.mb + prefilled_wal_mb(data)
    return 2 * once + wal_mb(data)


def volume_bytes(data: Data) -> tuple[int, int]:
    """Bytes of a volume that holds one copy of the data and the WAL of a trial, and of one for such WAL alone."""
    wal = prefilled_wal_mb(data) + wal_mb(data)
    return (CLUSTER_MB + data.mb + wal) * 1_000_000, wal * 1_000_000


def wal_mb(data: Data) -> int:
    """Megabytes of WAL that loading or a trial leaves standing, as far as nothing is known of the server."""
    return min(LOADING_WAL_MB, max(64, data.mb))


def check_free(free_bytes: int, where: str, cure: str, data: Data, *, templates: int = 1, copies: int = 1) -> None:
    """Raise StudyError if the data does not fit so many bytes, with the figures.

    `templates` still have to be loaded, and so many `copies` are there at once.

    `cure` is what to do beside a lower scale and a tidier disk.
    """
    once = CLUSTER_MB + data.mb + prefilled_wal_mb(data)
    needed = needed_mb(data) + (templates + copies - 2) * once
    free = free_bytes / 1e6
    copied = "one copy" if copies == 1 else f"{copies} copies"
    if needed > free:
        raise StudyError(
            f"{data.label} does not fit the disk: it needs about {needed:,} MB in {where} "
            f"({data.mb:,} MB of tables, for the template, {copied} and WAL) and {free:,.0f} MB are "
            f"free; lower the scale, free some space, or {cure}"
        )
