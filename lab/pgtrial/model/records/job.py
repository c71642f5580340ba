"""The type of a load point's job, as the plan stores it."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from pgtrial.model.records import Record, added
from pgtrial.model.records.kind import Measure, PointKind
from pgtrial.model.units import plural


class BesideLoad(Record):
    """A pgbench load at a given rate that runs at the same time as a job. It begins before the job and ends after the
    job."""

    script: str = Field(
        description="The name of a built-in script of pgbench, or the file name of a script of the study."
    )
    clients: int
    rate: float = Field(description="The rate in transactions per second.")
    protocol: str

    @property
    def label(self) -> str:
        """Returns the load's name for reports: `beside orders.sql, 8 clients, 200/s`."""
        return f"beside {self.script}, {plural(self.clients, 'client')}, {self.rate:,.10g}/s"


class JobLoad(PointKind, Record):
    """The job of a load point: statements or a program, such as CREATE INDEX, that run once in a trial."""

    key: ClassVar[str] = "job"
    called: ClassVar[str] = "the job"
    noun: ClassVar[str] = "job"
    has_rate: ClassVar[bool] = False
    time_is_unknown: ClassVar[bool] = True
    repeats: ClassVar[bool] = False
    is_timed: ClassVar[bool] = True
    is_watched_beside: ClassVar[bool] = True
    reports_progress: ClassVar[bool] = True

    limit_s: float = Field(description="The time in seconds after which pgtrial ends the job and its trial fails.")
    command: str | None = added(None, "The program with its options; None if the job is an SQL file.")
    commands: dict[str, str] = added(
        {}, "The program of each arm with its options, by arm, if arms have programs of their own; otherwise empty."
    )
    beside: BesideLoad | None = added(
        None, "The load that runs at the same time as the job; None if the job runs alone."
    )

    @property
    def is_program(self) -> bool:
        """True if the job is a program, and not an SQL file."""
        return self.command is not None

    def command_of(self, arm: str) -> str | None:
        """Returns the program that is the job of an arm, with its options; None if the job is an SQL file."""
        return self.commands.get(arm, self.command)

    @property
    def measure(self) -> Measure:
        return "time of the job"

    @property
    def amount(self) -> str:
        return "one run of the job"

    @property
    def scripts_beside(self) -> list[str]:
        return [self.beside.script] if self.beside is not None else []

    @property
    def details(self) -> str:
        return f" {self.beside.label}" if self.beside is not None else ""

    def described(self, workload: str, data: str) -> str:
        return f"job {workload}{data}"

    def directory(self, workload: str, size: str) -> str:
        beside = "" if self.beside is None else f"-c{self.beside.clients}-r{self.beside.rate:.10g}"
        return f"job-{workload}-{size}{beside}"
