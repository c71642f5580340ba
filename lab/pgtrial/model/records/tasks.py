"""What is stored of tasks on pools of connections: what was asked for, and what became of them in a trial."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from pgtrial.model.records import Record


class TaskLoad(Record):
    """The tasks of a load point; all numbers are of each application."""

    apps: int
    tasks: int
    arrival: str = Field(description="`at-once`, or tasks a second: `50` at equal distances, `poisson:50` at random.")
    pool: int = Field(description="Connections at most.")
    pool_timeout_s: float = Field(description="A task that waits longer for a connection has failed.")
    threads_in_table: int
    rows: int = Field(description="Of each thread in the table.")

    @property
    def label(self) -> str:
        """For people: `3 x 5,000 tasks at once on pools of 100`."""
        when = "at once" if self.arrival == "at-once" else f"at {self.arrival.removeprefix('poisson:')}/s each"
        return f"{self.apps} x {self.tasks:,} tasks {when} on pools of {self.pool}"


class TaskTimes(Record):
    """Times of tasks in one trial, microseconds."""

    mean: float
    min: float
    max: float
    median: float | None = Field(None, description="Of the response exact, else to three digits; None: not known.")
    p95: float | None = None


class TaskSummary(Record):
    """What became of a trial's tasks. Times are of the completed ones, but for those that say otherwise."""

    planned: int
    completed: int
    failed: int
    failures: dict[str, int] = Field(description="By SQLSTATE or kind; `pool-timeout`: no connection in time.")
    unfinished: int = Field(description="Neither, after an interrupt.")
    response_us: TaskTimes | None = Field(description="From the arrival to the end; None where none was completed.")
    queue_us: TaskTimes | None = Field(description="From the arrival until it had a connection.")
    service_us: TaskTimes | None = Field(description="From then to the end.")
    timeout_waited_us: TaskTimes | None = Field(description="Of those that got no connection; None: all got one.")
    failed_after_us: float | None = Field(description="Mean time from the arrival to the failure; None: none failed.")
    under_5_s: int = Field(description="Completed in less than five seconds.")
    classes: dict[str, int] = Field(
        description="Completed tasks by response time: up_to_0.1_s, longer but up_to_1_s, but up_to_10_s, longer."
    )

    @property
    def mean_us(self) -> float | None:
        """Mean response time of all tasks, a failed one with the time until it failed; None where none ended."""
        done = self.response_us.mean * self.completed if self.response_us else 0.0
        lost = self.failed_after_us * self.failed if self.failed_after_us is not None else 0.0
        ended = self.completed + self.failed
        return (done + lost) / ended if ended else None

    def within(self, limit: Literal["0.1_s", "1_s", "10_s"]) -> int:
        """Tasks that were completed within the limit."""
        names = ("up_to_0.1_s", "up_to_1_s", "up_to_10_s")
        return sum(self.classes[name] for name in names[: names.index(f"up_to_{limit}") + 1])
