"""A load point: what runs in a trial, and what its claims compare."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from pgtrial.model.records import Record, added
from pgtrial.model.records.capacity import CapacityLoad
from pgtrial.model.records.job import JobLoad
from pgtrial.model.records.pack import PackLoad, Weight
from pgtrial.model.records.replay import ReplayLoad
from pgtrial.model.records.suite import SuiteLoad
from pgtrial.model.records.tasks import TaskLoad
from pgtrial.model.units import plural, slug


class LoadPoint(Record):
    """One cell of workload x scale x clients x rate; tests of sysbench have the size of their tables for the scale."""

    workload: str = Field(
        description="A built-in workload, the file name of a script of the study's own, or a pack with its mix."
    )
    scale: int | float = Field(
        description="Of pgbench's tables, a pack's or a suite's, the last with decimals; 1 for tests of sysbench and "
        "replays."
    )
    sysbench: bool = added(False, "Whether it is a test of sysbench.")
    tables: int | None = added(None, "Tables of a test of sysbench; None: its own.")
    table_size: int | None = added(None, "Rows of each of them; None: the test's own.")
    tasks: TaskLoad | None = added(None, "Of the workload app-tasks: what runs.")
    mix: dict[str, Weight] = added(
        {}, "Of scripts with weights: how often each is chosen; the workload is all of them."
    )
    of_arms: dict[str, str] = added({}, "Where arms run scripts of their own: by arm, the name of its script.")
    data: str | None = added(None, "The user's own data, for people; None: tables that pgtrial makes.")
    without_tables: bool = added(
        False, "Of scripts that name none of pgbench's tables, on a server that pgtrial makes: it has no tables."
    )
    pack: PackLoad | None = added(None, "Of a workload that is a pack: what runs.")
    replay: ReplayLoad | None = added(None, "Of a replay: what runs.")
    suite: SuiteLoad | None = added(None, "Of a suite: what runs.")
    job: JobLoad | None = added(None, "Of a job: what runs; the workload is the name of its file or program.")
    programs: bool = added(False, "Whether the load is what the arms' client programs do.")
    clients: int = Field(description="Of tasks and replays the connections that there may be.")
    protocol: str
    rate: float | None = added(None, "Transactions per second; None: a closed loop.")
    capacity: CapacityLoad | None = added(None, "Where the highest rate is looked for: the promise that it keeps.")

    def __hash__(self) -> int:
        """Load points are keys of dictionaries, and dictionaries have no hash of their own."""
        return hash((self.workload, self.scale, self.clients, self.rate))

    @property
    def script_names(self) -> list[str]:
        """The workload, or where it is made of several scripts their names, each once."""
        return list(dict.fromkeys(self.of_arms.values())) or list(self.mix) or [self.workload]

    def for_arm(self, arm: str) -> LoadPoint:
        """Returns the load point as this arm runs it: with its own script, where arms have scripts of their own."""
        if not self.of_arms:
            return self
        return self.model_copy(update={"workload": self.of_arms[arm], "of_arms": {}})

    @property
    def whole_scale(self) -> int:
        """The scale of tables that are not a suite's."""
        return int(self.scale)

    @property
    def label(self) -> str:
        """For people: `tpcb-like, scale 20, 8 clients`, with a rate `tpcb-like, scale 20, 8 clients, 500/s`."""
        if self.job is not None:
            return f"{self.load} {self.job.beside.label}" if self.job.beside is not None else self.load
        to_its_end = self.tasks or self.replay or self.suite
        if to_its_end is not None:
            return f"{self.load}, {to_its_end.label}"
        if self.programs:
            return self.load
        rate = f", {self.rate:,.10g}/s" if self.rate is not None else ""
        rate += f", {self.capacity.label}" if self.capacity is not None else ""
        return f"{self.load}, {self.clients} client{'s' if self.clients != 1 else ''}{rate}"

    @property
    def load(self) -> str:
        """Workload and data, for people: `tpcb-like, scale 20`, `oltp_write_only, 250 x 450,000 rows`."""
        if self.tasks is not None:
            return f"{self.workload}, {self.tasks.threads_in_table:,} x {self.tasks.rows:,} rows"
        if self.replay is not None:
            return f"replay of {self.replay.capture}"
        name = f"job {self.workload}" if self.job is not None else self.workload
        if self.data is not None or self.without_tables:
            return f"{name} on {self.data}" if self.data is not None else name
        if not self.sysbench and (self.suite is None or self.suite.data is not None):
            return f"{name}, scale {self.scale}"
        if self.table_size is not None:
            return f"{self.workload}, {f'{self.tables:,} x ' if self.tables else ''}{self.table_size:,} rows"
        return self.workload if self.tables is None else f"{self.workload}, {plural(self.tables, 'table')}"

    @property
    def slug(self) -> str:
        """For directory names: `tpcb-like-s20-c8`, with a rate `tpcb-like-s20-c8-r500`."""
        if self.tasks is not None:
            return f"{slug(self.workload)}-{self.tasks.apps}x{self.tasks.tasks}-p{self.tasks.pool}"
        if self.replay is not None:
            return slug(self.workload)
        if self.suite is not None:
            size = "own" if self.suite.data is None else f"s{self.scale}"
            return f"{slug(self.workload)}-{size}-{self.suite.cache}"
        rate = f"-r{self.rate:.10g}" if self.rate is not None else ""
        if self.sysbench:
            size = "x".join(str(part) for part in (self.tables, self.table_size) if part is not None)
            return f"{slug(self.workload)}{size and f'-t{size}'}-c{self.clients}{rate}"
        size = "own" if self.data is not None else "no-tables" if self.without_tables else f"s{self.scale}"
        if self.job is not None or self.programs:
            before, after = self.job.slugs if self.job is not None else ("", "")
            return f"{before}{slug(self.workload)}-{size}{after}"
        return f"{slug(self.workload)}-{size}-c{self.clients}{rate}"


def rate_unit(points: Sequence[LoadPoint]) -> str:
    """Returns the unit of what a load does in a second: `tps`, or of what is no transaction its own name."""
    if any(point.programs for point in points):
        return "operations/s"
    return "statements/s" if any(point.replay is not None for point in points) else "tps"


Measure = Literal[
    "goodput",
    "mean response time",
    "mean response time of tasks",
    "geometric mean of query times",
    "time of the job",
]


def measure_of(points: Sequence[LoadPoint]) -> Measure:
    """What claims compare unless the study says otherwise: how much is done, or where that is fixed, how soon."""
    if any(point.tasks is not None for point in points):
        return "mean response time of tasks"
    if any(point.suite is not None for point in points):
        return "geometric mean of query times"
    if any(point.job is not None for point in points):
        return "time of the job"
    if any(point.replay is not None and point.replay.speed is not None for point in points):
        return "mean response time"
    return "goodput" if all(point.rate is None for point in points) else "mean response time"
