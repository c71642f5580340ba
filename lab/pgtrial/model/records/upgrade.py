"""Types for upgrade.json: what a rehearsal of an upgrade has found about each statement on the old and the new
version."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from pgtrial.model.records import Moment, Record
from pgtrial.model.records.claims import Word

ArmName = Literal["restored", "pg_upgraded", "pg_upgraded, analysed"]
"""The way in which the new version got its data: restored from the dump, or upgraded by pg_upgrade. With `analysed`,
ANALYZE ran after pg_upgrade."""


class UpgradedArm(Record):
    """An arm of the new version, by the way in which it got its data."""

    name: ArmName
    failure: str | None = Field(
        None, description="The reason why the new version did not get its data in this way; None if it did."
    )
    is_absent: bool = Field(
        False,
        description="True if the way was not tried, since something for it is missing here. Its failure then says "
        "nothing about the upgrade.",
    )


class NewError(Record):
    """An error on the new version in a statement that runs on the old one."""

    sqlstate: str | None = Field(
        description="The SQLSTATE of the error; None if the server ended the connection without one."
    )
    message: str


class OtherRows(Record):
    """The rows of a statement that differ between the versions."""

    old_rows: int = Field(description="The number of rows that the statement returned or changed on the old version.")
    new_rows: int
    old_columns: list[str] = Field([], description="The names of the columns, if the versions return other columns.")
    new_columns: list[str] = Field([])
    column: str | None = Field(
        None, description="The column of the first value that differs; None if the rows differ in another way."
    )
    old_value: str | None = Field(None, description="The first value that differs; None for NULL.")
    new_value: str | None = None
    row: str | None = Field(
        None,
        description="A row that only one of the versions returned, if every row of the other version has an equal one.",
    )


class OtherPlan(Record):
    """The plans of a statement that differ in their shape."""

    at_old: str = Field(description="The first node of the plan on the old version that differs.")
    at_new: str
    old: list[str] = Field(description="The lines of EXPLAIN on the old version, without costs.")
    new: list[str]


class OnNew(Record):
    """The differences of a statement on one arm of the new version. A field that is None, or false, says that the old
    version showed the same."""

    error: NewError | None = None
    over_limit: bool = Field(
        False, description="True if the statement was cancelled at the limit, within which it ends on the old version."
    )
    rows: OtherRows | None = None
    plan: OtherPlan | None = None


class RehearsedStatement(Record):
    """A statement of the rehearsal, with its differences on each arm of the new version."""

    name: str = Field(description="The name of the statement's file, without `.sql`.")
    text: str
    executions: int | None = Field(
        None, description="The number of times that the log has the statement; None if it is not known."
    )
    not_compared: str | None = Field(
        None, description="The reason why the statement was not compared, as a clause; None if it was compared."
    )
    rows_vary: bool = Field(
        False,
        description="True if two executions on one version returned different rows, so that their values were not "
        "compared.",
    )
    on: dict[ArmName, OnNew] = Field({}, description="The differences on each arm of the new version.")


class TimedStatement(Record):
    """The times of a statement on both versions, from the study that measured it."""

    name: str
    old_us: float | None = Field(description="The time in microseconds in the median trial; None if no trial has one.")
    new_us: float | None
    verdict: Word
    is_slower: bool = Field(
        description="True if the new version is slower, and not only by less than the margin of the study."
    )
    factor: str = Field(description="The comparison of the two times in words, such as `2 times as long`.")


class TimedStatements(Record):
    """The study that measured some of the statements: those whose plans differ, or those with the same plans."""

    directory: str = Field(description="The name of the study's directory within that of the rehearsal.")
    plans_differ: bool
    statements: list[TimedStatement]


class Upgrade(Record):
    """A rehearsal of an upgrade."""

    created: Moment
    pgtrial: str = Field(description="The version of pgtrial.")
    old: str = Field(description="The old version, as PostgreSQL prints it.")
    new: str
    data: list[str] = Field(description="The dump or the files of SQL with the data.")
    source: str = Field(description="The origin of the statements, as a phrase.")
    limit_s: float = Field(description="The time in seconds after which a statement was cancelled.")
    arms: list[UpgradedArm]
    statements: list[RehearsedStatement]
    left_out: list[str] = Field(
        [], description="The statements of the source that were left out, and the reasons, as phrases."
    )
    times: list[TimedStatements] = Field([])
    times_asked: bool = Field(True, description="False if the user has asked that no times are measured.")
    no_times: str | None = Field(
        None,
        description="The reason why not all times were measured, although that was asked; None if all were measured.",
    )
