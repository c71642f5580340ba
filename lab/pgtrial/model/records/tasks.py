"""The type of a load point's tasks, as the plan stores them."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from pgtrial.model.records import Record
from pgtrial.model.records.kind import Measure, PointKind
from pgtrial.model.units import plural


class TaskLoad(PointKind, Record):
    """The tasks of a load point. All numbers of tasks, connections and rows are for one application."""

    key: ClassVar[str] = "tasks"
    repeats: ClassVar[bool] = False
    has_percentiles: ClassVar[bool] = False

    apps: int
    tasks: int
    arrival: str = Field(
        description="When the tasks of an application arrive: `at-once`, or a number of tasks per second, either "
        "`50` at equal distances or `poisson:50` at random."
    )
    pool: int = Field(description="The largest number of connections in the pool of an application.")
    pool_timeout_s: float = Field(
        description="The time in seconds after which a task that has not got a connection fails."
    )
    threads_in_table: int
    rows: int = Field(description="The number of rows for each thread_id in the table.")

    @property
    def label(self) -> str:
        """Returns the name of the tasks for reports: `3 x 5,000 tasks at once on pools of 100`."""
        when = "at once" if self.arrival == "at-once" else f"at {self.arrival.removeprefix('poisson:')}/s each"
        return f"{self.apps} x {self.tasks:,} tasks {when} on pools of {self.pool}"

    @property
    def measure(self) -> Measure:
        return "mean response time of tasks"

    @property
    def amount(self) -> str:
        return plural(self.apps * self.tasks, "task")

    @property
    def rows_made(self) -> int:
        return self.threads_in_table * self.rows

    def most_engines(self, clients: int) -> int:
        return min(self.pool, self.tasks)  # each engine has at least one connection of each pool

    @property
    def details(self) -> str:
        return f", {self.label}"

    def described(self, workload: str, data: str) -> str:
        return f"{workload}, {self.threads_in_table:,} x {self.rows:,} rows"

    def directory(self, workload: str, size: str) -> str:
        return f"{workload}-{self.apps}x{self.tasks}-p{self.pool}"
