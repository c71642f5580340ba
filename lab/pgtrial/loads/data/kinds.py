"""The kinds of data that a trial may need on its server, and which of them a load point needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from pgtrial.loads.data.pgbench_tables import PgbenchTables
from pgtrial.loads.data.sysbench_tables import SysbenchTables, preparing_threads
from pgtrial.loads.data.task_table import TaskTable
from pgtrial.loads.data_makers import ENGINE_HERE, Connection, DataMaker, Reset, Server
from pgtrial.model.records.study import LoadPoint
from pgtrial.model.study.spec import StudySpec
from pgtrial.model.study.sysbench import SYSBENCH_TESTS, is_sysbench, prepares


class Data(Protocol):
    """Data of one kind: what it takes, and how it is made on a server, found again and put back."""

    @property
    def label(self) -> str:
        """For people: `scale 20`, `sysbench, 250 x 450,000 rows`."""
        ...

    @property
    def short_name(self) -> str:
        """For directories."""
        ...

    @property
    def mb(self) -> int:
        """Megabytes of tables and indexes, roughly."""
        ...

    @property
    def key(self) -> dict[str, Any]:
        """Its part of a template's key."""
        ...

    def find(self, connection: Connection) -> bool:
        """Whether this very data is there, whole. Raises StudyError for somebody else's in its place."""
        ...

    def clear(self, connection: Connection) -> bool:
        """Drop what pgtrial made in its place, as far as the engine does not replace it; whether a load goes on."""
        ...

    def make(
        self,
        server: Server,
        on_progress: Callable[[str], None],
        maker: DataMaker = ENGINE_HERE,
        *,
        in_steps: bool = False,
    ) -> None:
        """Make it, mark it as pgtrial's, freeze and analyse it; `in_steps`: so that what breaks off can go on.

        Raises ArmError.
        """
        ...

    def reset(self, connection: Connection, how: Reset) -> None:
        """Bring it near its first state, or leave it."""
        ...


@dataclass(frozen=True)
class NoTables:
    """A server without tables."""

    label = "no tables"
    short_name = "s0"
    mb = 0

    @property
    def key(self) -> dict[str, Any]:
        """Its part of a template's key."""
        return {"scale": 0}

    def find(self, connection: Connection) -> bool:
        """Nothing is needed."""
        del connection
        return True

    def clear(self, connection: Connection) -> bool:
        """Nothing is in its place."""
        del connection
        return False

    def make(
        self,
        server: Server,
        on_progress: Callable[[str], None],
        maker: DataMaker = ENGINE_HERE,
        *,
        in_steps: bool = False,
    ) -> None:
        """Nothing is made."""

    def reset(self, connection: Connection, how: Reset) -> None:
        """Nothing changes."""


NO_TABLES = NoTables()


def data_of(spec: StudySpec, point: LoadPoint) -> Data:
    """What a load point finds on its server. Sysbench's own tests share their tables, all but bulk_insert."""
    if point.tasks is not None:
        return TaskTable(point.tasks.threads_in_table, point.tasks.rows)
    if not is_sysbench(point.workload):
        return PgbenchTables(point.scale, spec.load.fillfactor, spec.load.foreign_keys)
    native = point.workload in SYSBENCH_TESTS
    test = "oltp_read_write" if native and point.workload != "bulk_insert" else point.workload
    section = spec.load.sysbench
    if native:
        chosen = {name: value for name, value in section.options.items() if prepares(name)}
        section = section.model_copy(update={"options": chosen})
    tables, size = section.sizes(test)
    scripts = () if native else tuple(sorted(item for item in spec.scripts.items() if item[0].endswith(".lua")))
    threads = preparing_threads(test, point.clients)
    return SysbenchTables(test, tuple(section.arguments(test)), threads, tables, size, scripts)
