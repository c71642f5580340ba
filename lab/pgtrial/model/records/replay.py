"""Types for what is stored of replays: the load, the outcome of its statements in a trial, and plans of statements."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from pgtrial.model.records import Record, added
from pgtrial.model.records.kind import Measure, PointKind
from pgtrial.model.units import plural, three_digits

IN_FAILED_TRANSACTION = "25P02"
"""The SQLSTATE of a statement in a transaction that an earlier error has aborted."""


class ReplayFiles(Record):
    """The capture and the dump of a study, as they were when it was planned."""

    capture_sha256: str = Field(description="The SHA-256 over all files of the capture.")
    data_sha256: str
    data_bytes: int
    sessions: int = Field(description="The number of sessions in the capture.")
    statements: int
    recorded_s: float = Field(
        description="The recorded time from the first start of a statement to the last end, in seconds."
    )
    server_version: str | None = Field(
        None, description="The version of the server that wrote the logs, if the logs have it."
    )
    doubts: list[str] = added([], "What the capture left out, added or doubts, with its counts, as its summary says.")


class ReplayLoad(PointKind, Record):
    """The replay of a load point: the capture, the data, and how fast and how often its sessions run."""

    key: ClassVar[str] = "replay"
    repeats: ClassVar[bool] = False
    noun: ClassVar[str] = "statement"
    rate_unit: ClassVar[str] = "statements/s"
    knows_each_statement: ClassVar[bool] = True

    capture: str = Field(description="The name of the capture's directory.")
    data: str = Field(description="The name of the dump.")
    capture_sha256: str
    data_sha256: str
    sessions: int = Field(description="The number of sessions in the capture.")
    statements: int
    speed: float | None = Field(
        description="The number by which the recorded times are divided; None for a replay as fast as possible."
    )
    sample: float = Field(description="The share of the sessions that is drawn.")
    copies: int = Field(description="The number of copies of each session that run.")

    @property
    def label(self) -> str:
        """Returns the replay's name for reports: `412 sessions at 4 times the recorded speed`."""
        sampled = f"a sample of {three_digits(self.sample)} of " if self.sample < 1 else ""
        copied = f" x {self.copies}" if self.copies > 1 else ""
        return f"{sampled}{plural(self.sessions, 'session')}{copied} {self.pace}"

    @property
    def pace(self) -> str:
        """Returns the speed for reports: `as fast as possible`, `at the recorded times`, `at 4 times the recorded
        speed`."""
        if self.speed is None:
            return "as fast as possible"
        return "at the recorded times" if self.speed == 1 else f"at {self.speed:g} times the recorded speed"

    @property
    def measure(self) -> Measure:
        return "goodput" if self.speed is None else "mean response time"

    @property
    def amount(self) -> str:
        return "one replay"

    @property
    def details(self) -> str:
        return f", {self.label}"

    def described(self, workload: str, data: str) -> str:
        return f"replay of {self.capture}"

    def directory(self, workload: str, size: str) -> str:
        return workload


class StatementTimes(Record):
    """Times of a template's statements in one trial, from sending to the answer, microseconds."""

    mean: float
    p50: float
    p90: float
    p99: float
    max: float


class TemplateResult(Record):
    """The statements of one template in one trial."""

    template: int = Field(description="The number of the template in the capture.")
    text: str = Field(description="The text with `$1` in the place of values, cut after 200 characters.")
    statements: int
    rows: int = Field(description="The number of rows that the statements returned or changed.")
    rows_hash: str | None = added(
        None, "A hash of the values of all returned rows, in any order; None if hashes were not asked for."
    )
    failures: dict[str, int] = Field({}, description="The errors that were not recorded, by SQLSTATE.")
    missing: int = Field(0, description="The number of recorded errors that did not occur.")
    expected: dict[str, int] = added({}, "The errors that occurred as recorded, by SQLSTATE.")
    missing_failures: dict[str, int] = added({}, "The recorded errors that did not occur, by SQLSTATE.")
    consequences: dict[str, int] = added(
        {},
        "The later statements of any template that failed with 25P02, which was not recorded, because an "
        "error of this template had aborted their transaction; by the SQLSTATE of that error.",
    )
    missing_consequences: dict[str, int] = added(
        {},
        "The later statements for which 25P02 was recorded and did not occur, because an error of this "
        "template did not occur; by the SQLSTATE of that error.",
    )
    time_us: StatementTimes | None = Field(
        description="The times of the statements without unexpected errors; None if all statements failed."
    )

    @property
    def timed(self) -> int:
        """Returns the number of statements that the times describe."""
        return self.statements - sum(self.failures.values())

    @property
    def total_us(self) -> float:
        """Returns the time of all statements together, microseconds."""
        return self.time_us.mean * self.timed if self.time_us is not None else 0.0


class ReplaySummary(Record):
    """The outcome of a replay in one trial."""

    statements: int = Field(
        description="The statements that the server answered, or that were cut off with their connection."
    )
    transactions: int = Field(description="The transactions that ended, by commit or otherwise.")
    rows: int
    sessions: dict[str, int] = Field(
        description="The numbers of sessions by outcome: begun, finished, refused, lost, begun_before, left_open."
    )
    expected_failures: dict[str, int] = Field({}, description="The errors that occurred as recorded, by SQLSTATE.")
    unexpected_failures: dict[str, int] = Field({}, description="The errors that were not recorded, by SQLSTATE.")
    missing_failures: dict[str, int] = Field({}, description="The recorded errors that did not occur, by SQLSTATE.")
    templates: list[TemplateResult]
    others: int = Field(0, description="The number of statements of templates that are not counted one by one.")


class StatementPlan(Record):
    """The plan that EXPLAIN shows for one recorded statement of a template on one arm."""

    arm: str
    template: int
    plan: list[str] = Field(description="The lines of the plan; empty if EXPLAIN rejects the statement.")
    refusal: str | None = added(None, "The server's message if there is no plan.")


class StatementPlans(Record):
    """statement_plans.json: plans of the statements that got slower, on a fresh copy of the data."""

    blocks: int = Field(description="The number of blocks after which the plans were taken.")
    plans: list[StatementPlan]
