"""The type of a load point: the load that its trials run, and what claims at this load point compare."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from pgtrial.model.records import Record, added
from pgtrial.model.records.capacity import CapacityLoad
from pgtrial.model.records.job import JobLoad
from pgtrial.model.records.kind import Measure, PointKind
from pgtrial.model.records.pack import PackLoad, Weight
from pgtrial.model.records.programs import ClientPrograms
from pgtrial.model.records.replay import ReplayLoad
from pgtrial.model.records.suite import SuiteLoad
from pgtrial.model.records.tasks import TaskLoad
from pgtrial.model.records.transactions import CapacitySearch, Transactions
from pgtrial.model.units import plural, slug


class LoadPoint(Record):
    """One combination of workload, scale, clients and rate. Tests of sysbench have the size of their tables instead of
    a scale."""

    workload: str = Field(
        description="The name of the workload: a built-in workload, the file name of a script of the study, or "
        "a pack (a workload in a folder of SQL files) with the name of its mix of scripts."
    )
    scale: int | float = Field(
        description="The scale of the tables of pgbench, a pack or a suite. Scales of suites can have decimals. "
        "It is 1 for tests of sysbench and replays."
    )
    sysbench: bool = added(False, "True if the workload is a test of sysbench.")
    tables: int | None = added(None, "The number of tables of a test of sysbench; None for the default of the test.")
    table_size: int | None = added(
        None, "The number of rows of each of these tables; None for the default of the test."
    )
    tasks: TaskLoad | None = added(None, "The tasks, if the workload is app-tasks.")
    mix: dict[str, Weight] = added(
        {}, "The weights of the scripts, if they have weights. The workload then consists of all these scripts."
    )
    of_arms: dict[str, str] = added(
        {}, "The name of each arm's script, by arm, if arms have scripts of their own; otherwise empty."
    )
    data: str | None = added(None, "A description of the user's own data; None if pgtrial makes the tables.")
    without_tables: bool = added(
        False,
        "True if pgtrial does not make pgbench's tables on the servers of this load point, because "
        "no script names one of them.",
    )
    pack: PackLoad | None = added(None, "The pack, if the workload is a pack.")
    replay: ReplayLoad | None = added(None, "The replay, if the workload is a replay.")
    suite: SuiteLoad | None = added(None, "The suite, if the workload is a suite.")
    job: JobLoad | None = added(
        None,
        "The job, if the workload is a job, such as CREATE INDEX. The workload is then the name of "
        "the job's file or program.",
    )
    programs: bool = added(False, "True if the client programs of the arms make the load.")
    clients: int = Field(description="The number of clients; for tasks and replays, the largest number of connections.")
    protocol: str
    rate: float | None = added(None, "The rate in transactions per second; None if each client runs as fast as it can.")
    capacity: CapacityLoad | None = added(
        None,
        "In a study of capacity, the promise that the highest rate has to keep: a limit for the "
        "response time and for failures. None in other studies.",
    )

    def __hash__(self) -> int:
        """Returns a hash, so that load points can be keys of dictionaries."""
        return hash((self.workload, self.scale, self.clients, self.rate))

    @property
    def script_names(self) -> list[str]:
        """Returns the names of the scripts: the workload itself or, if the workload consists of several scripts, the
        name of each of them once."""
        return list(dict.fromkeys(self.of_arms.values())) or list(self.mix) or [self.workload]

    def for_arm(self, arm: str) -> LoadPoint:
        """Returns the load point as this arm runs it: with its own script, where arms have scripts of their own."""
        if not self.of_arms:
            return self
        return self.model_copy(update={"workload": self.of_arms[arm], "of_arms": {}})

    @property
    def whole_scale(self) -> int:
        """Returns the scale as an integer. Only the scale of a suite can have decimals, so code that makes other tables
        uses this property."""
        return int(self.scale)

    @property
    def kind(self) -> PointKind:
        """Returns the kind of the load. Within `model/records` only this method lists all kinds."""
        own = self.tasks or self.replay or self.suite or self.job
        if own is not None:
            return own
        if self.programs:
            return ClientPrograms()
        if self.capacity is not None:
            return CapacitySearch(self.clients, self.rate, promise=self.capacity)
        return Transactions(self.clients, self.rate)

    @property
    def label(self) -> str:
        """Returns the load point's name for reports: `tpcb-like, scale 20, 8 clients`, with a rate `tpcb-like, scale
        20, 8 clients, 500/s`."""
        return f"{self.load}{self.kind.details}"

    @property
    def load(self) -> str:
        """Returns workload and data for reports: `tpcb-like, scale 20`, `oltp_write_only, 250 x 450,000 rows`."""
        return self.kind.described(self.workload, self._of_data)

    @property
    def _of_data(self) -> str:
        if self.data is not None:
            return f" on {self.data}"
        if self.sysbench and self.table_size is not None:
            return f", {f'{self.tables:,} x ' if self.tables else ''}{self.table_size:,} rows"
        if self.sysbench:
            return "" if self.tables is None else f", {plural(self.tables, 'table')}"
        return f", scale {self.scale}" if self.kind.has_scale and not self.without_tables else ""

    @property
    def slug(self) -> str:
        """Returns the load point's name in the names of directories: `tpcb-like-s20-c8`, with a rate
        `tpcb-like-s20-c8-r500`."""
        return self.kind.directory(slug(self.workload), self._size)

    @property
    def _size(self) -> str:
        """Returns the text that stands for the size of the data in names of directories; empty for a test of sysbench
        that decides the size itself."""
        if self.sysbench:
            size = "x".join(str(part) for part in (self.tables, self.table_size) if part is not None)
            return size and f"t{size}"
        return "own" if self.data is not None else "no-tables" if self.without_tables else f"s{self.scale}"


def kind_of(points: Sequence[LoadPoint]) -> PointKind:
    """Returns the kind of load that all load points of a study have."""
    return points[0].kind if points else Transactions()


def rate_unit(points: Sequence[LoadPoint]) -> str:
    """Returns the unit of the load's throughput: `tps`, or another unit where the load does not consist of
    transactions."""
    return kind_of(points).rate_unit


def measure_of(points: Sequence[LoadPoint]) -> Measure:
    """Returns what claims compare unless the study declares metrics: the amount of work done or, where the load fixes
    that amount, the time that the work takes."""
    return kind_of(points).measure
