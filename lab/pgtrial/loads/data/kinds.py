"""Lists the kinds of data that a trial may need on its server, and finds the data that a load point needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

from pgtrial.loads.data.data import Data
from pgtrial.loads.data.order_entry_tables import OrderEntryTables
from pgtrial.loads.data.pack_tables import PackTables
from pgtrial.loads.data.pgbench_tables import PgbenchTables
from pgtrial.loads.data.restored_dump import RestoredDump
from pgtrial.loads.data.suite_tables import SuiteTables
from pgtrial.loads.data.sysbench_tables import SysbenchTables
from pgtrial.loads.data.task_table import TaskTable
from pgtrial.loads.load_makers import ENGINE_HERE, LoadMaker, OnLine
from pgtrial.loads.target import Session, Target
from pgtrial.model.records.load_point import LoadPoint
from pgtrial.model.study.own_data import name_of_data
from pgtrial.model.study.spec import StudySpec

KINDS: tuple[type[Data], ...] = (
    TaskTable,
    RestoredDump,
    SysbenchTables,
    OrderEntryTables,
    PackTables,
    SuiteTables,
    PgbenchTables,
)
"""The kinds of data, in the order in which pgtrial checks whether a load point needs them (`Data.needed`). The load
point gets the data of the first kind that it needs."""


def data_of(spec: StudySpec, point: LoadPoint, arm: str | None = None) -> Data:
    """Returns the data that a load point needs on the server of an arm. Without an arm, if arms have different data,
    these are the data of the baseline."""
    if spec.has_arm_data:
        spec = spec.for_arm(arm or spec.baseline)
        point = point.model_copy(update={"data": name_of_data(spec.load.data)})
    return next((data for kind in KINDS if (data := kind.needed(spec, point)) is not None), NO_TABLES)


@dataclass(frozen=True)
class NoTables(Data):
    """The data of a load that needs no tables of pgtrial: its scripts use tables of the user, or none."""

    marks: ClassVar[tuple[str, ...]] = ()
    label = "no tables"
    relations_made = "nothing"
    short_name = "s0"
    mb = 0
    digest = ""

    @classmethod
    def needed(cls, spec: StudySpec, point: LoadPoint) -> Self | None:
        return None

    def relations(self, connection: Session) -> str:
        return "false"

    @property
    def key(self) -> dict[str, Any]:
        return {"scale": 0}

    def find(self, connection: Session) -> bool:
        return True

    def make(self, server: Target, report: OnLine, maker: LoadMaker = ENGINE_HERE, *, in_steps: bool = False) -> None:
        """Makes nothing, since there are no tables."""


NO_TABLES = NoTables()
