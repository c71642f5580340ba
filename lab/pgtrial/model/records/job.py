"""The job of a load point, as it is frozen in the plan."""

from __future__ import annotations

from pydantic import Field

from pgtrial.model.records import Record, added
from pgtrial.model.units import plural


class BesideLoad(Record):
    """A load of pgbench at a rate, from before the start of a job to after its end."""

    script: str = Field(description="A script of pgbench's own, or the file name of one of the study's.")
    clients: int
    rate: float = Field(description="Transactions per second.")
    protocol: str

    @property
    def label(self) -> str:
        """`beside orders.sql, 8 clients, 200/s`."""
        return f"beside {self.script}, {plural(self.clients, 'client')}, {self.rate:,.10g}/s"


class JobLoad(Record):
    """The job of a load point, which runs once in a trial."""

    limit_s: float = Field(description="A job that takes longer has failed, seconds.")
    command: str | None = added(None, "The program with its options; None: a file of SQL.")
    beside: BesideLoad | None = added(None, "The load that runs beside it; None: it is alone.")

    @property
    def slugs(self) -> tuple[str, str]:
        """What stands before and after the name of the file and the size, for directory names."""
        return "job-", "" if self.beside is None else f"-c{self.beside.clients}-r{self.beside.rate:.10g}"
