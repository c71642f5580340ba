"""The tasks of a load point, as they are frozen in the plan."""

from __future__ import annotations

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
