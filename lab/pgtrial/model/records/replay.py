"""Types for what pgtrial stores about replays: the load, the results of its statements in a trial, and the plans of
statements that got slower."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from pgtrial.model.records import Record, added
from pgtrial.model.records.kind import Measure, PointKind
from pgtrial.model.units import Number, Whole, plural, three_digits

IN_FAILED_TRANSACTION = "25P02"
"""The SQLSTATE of a statement in a transaction that an earlier error has aborted."""


class ReplayFiles(Record):
    """The capture (the recorded sessions) and the dump of a study, as they were when the study was planned."""

    capture_sha256: str = Field(
        description="The SHA-256 over all files of the capture, which has the recorded sessions."
    )
    data_sha256: str
    data_bytes: Whole
    sessions: Whole = Field(description="The number of sessions in the capture, the recording that the study replays.")
    statements: Whole
    recorded_s: Number = Field(
        description="The time in seconds from the start of the first recorded statement to the end of the last "
        "one, in the capture (the recording)."
    )
    server_version: str | None = Field(
        None, description="The version of the server that wrote the recorded logs; None if the logs do not contain it."
    )
    doubts: list[str] = added(
        [],
        "Sentences from the summary of the capture (the recorded sessions), with counts: what the "
        "capture left out, what it added, and which statements may be wrong.",
    )


class ReplayLoad(PointKind, Record):
    """The replay of a load point: the capture, the data, and how fast and how often the recorded sessions run."""

    key: ClassVar[str] = "replay"
    repeats: ClassVar[bool] = False
    noun: ClassVar[str] = "statement"
    rate_unit: ClassVar[str] = "statements/s"
    knows_each_statement: ClassVar[bool] = True

    capture: str = Field(description="The name of the directory of the capture, which has the recorded sessions.")
    data: str = Field(description="The name of the dump that has the data of the replay.")
    capture_sha256: str
    data_sha256: str
    sessions: int = Field(description="The number of sessions in the capture, the recording that is replayed.")
    statements: int
    speed: float | None = Field(
        description="The number by which the recorded times are divided; None for a replay as fast as possible."
    )
    sample: float = Field(description="The share of the recorded sessions that is drawn at random and replayed.")
    copies: int = Field(description="How many copies of each recorded session run.")

    @property
    def label(self) -> str:
        """Returns the description of the replay for reports: `412 sessions at 4 times the recorded speed`."""
        sampled = f"a sample of {three_digits(self.sample)} of " if self.sample < 1 else ""
        copied = f" x {self.copies}" if self.copies > 1 else ""
        return f"{sampled}{plural(self.sessions, 'session')}{copied} {self.pace}"

    @property
    def pace(self) -> str:
        """Returns the speed of the replay for reports: `as fast as possible`, `at the recorded times`, `at 4 times the
        recorded speed`."""
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
    """The times of a template's statements in one trial, in microseconds. Each time is from sending a statement to its
    answer."""

    mean: float
    p50: float
    p90: float
    p99: float
    max: float


class TemplateResult(Record):
    """The results of one template in one trial. A template stands for all recorded statements that differ only in their
    values."""

    template: int = Field(
        description="The number of the template (the recorded statements that differ only in their values) in "
        "the capture."
    )
    text: str = Field(
        description="The text of the template's statements with `$1` in the place of values, cut after 200 characters."
    )
    statements: int
    rows: int = Field(description="The number of rows that the template's statements returned or changed.")
    rows_hash: str | None = added(
        None,
        "A hash of the values of all returned rows, in any order; None if the study does not "
        "compare the values of results.",
    )
    failures: dict[str, int] = Field(
        {}, description="The number of errors of the template's statements, by SQLSTATE, that had not been recorded."
    )
    missing: int = Field(
        0, description="The number of the template's recorded errors that did not occur in the replay."
    )
    expected: dict[str, int] = added(
        {}, "The number of errors of the template's statements, by SQLSTATE, that occurred as recorded."
    )
    missing_failures: dict[str, int] = added(
        {}, "The number of the template's recorded errors, by SQLSTATE, that did not occur in the replay."
    )
    consequences: dict[str, int] = added(
        {},
        "Errors of this template aborted transactions, in which later statements, of any template, "
        "then failed with 25P02 although no failure of these statements was recorded. The number of "
        "these later statements, by the SQLSTATE of the first error.",
    )
    missing_consequences: dict[str, int] = added(
        {},
        "Errors of this template that were recorded did not occur in the replay, so that later "
        "statements, of any template, did not fail with 25P02 as recorded. The number of these "
        "later statements, by the SQLSTATE of the recorded error.",
    )
    time_us: StatementTimes | None = Field(
        description="The times of the template's statements that had no unexpected errors; None if all "
        "statements failed."
    )

    @property
    def timed(self) -> int:
        """Returns the number of statements whose times `time_us` describes: all statements without an unexpected
        error."""
        return self.statements - sum(self.failures.values())

    @property
    def total_us(self) -> float:
        """Returns the time of all statements that `time_us` describes together, in microseconds."""
        return self.time_us.mean * self.timed if self.time_us is not None else 0.0


class ReplaySummary(Record):
    """The results of a replay in one trial."""

    statements: int = Field(
        description="The number of statements that the server answered, or that were cut off when their connection "
        "broke."
    )
    transactions: int = Field(description="The number of transactions that ended, by commit or otherwise.")
    rows: int
    sessions: dict[str, int] = Field(
        description="The number of sessions by what happened to them: `begun` (connected), `finished` (ran to "
        "their end), `refused` (the server refused the connection), `lost` (the connection broke), "
        "`begun_before` and `left_open` (the recording lacks the beginning of the first "
        "transaction, or the end of the last one)."
    )
    expected_failures: dict[str, int] = Field(
        {}, description="The number of errors of the whole replay, by SQLSTATE, that occurred as recorded."
    )
    unexpected_failures: dict[str, int] = Field(
        {}, description="The number of errors of the whole replay, by SQLSTATE, that had not been recorded."
    )
    missing_failures: dict[str, int] = Field(
        {}, description="The number of recorded errors, by SQLSTATE, that did not occur in the whole replay."
    )
    templates: list[TemplateResult]
    others: int = Field(
        0,
        description="The number of statements that are not in `templates`, because only the first templates are "
        "counted one by one.",
    )


class StatementPlan(Record):
    """The plan that EXPLAIN shows for one recorded statement of a template on one arm."""

    arm: str
    template: int
    plan: list[str] = Field(description="The lines of the plan; empty if EXPLAIN rejects the statement.")
    refusal: str | None = added(None, "The server's error message, if EXPLAIN rejects the statement; empty otherwise.")


class StatementPlans(Record):
    """The content of statement_plans.json: the plans of the statements that got slower, on a fresh copy of the data."""

    blocks: int = Field(
        description="The number of blocks that were complete when pgtrial asked the server for the plans."
    )
    plans: list[StatementPlan]
