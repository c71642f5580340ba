"""The rehearsal's comparison of the answers of an arm's script, which are the rows that its statements return."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from pgtrial.model.records import Record


class OtherAnswer(Record):
    """The first draw of values for which an arm returned other rows than the baseline."""

    values: str = Field(
        description="The values that were drawn, for people: `id = 7`; empty if there are no variables."
    )
    statement: int | None = Field(
        description="The number of the statement among those that return rows, counted from 1; None for the last "
        "one, if the arms have different numbers of them."
    )
    baseline_rows: int
    rows: int


class ArmAnswers(Record):
    """The comparison of an arm's answers with those of the baseline."""

    draws: int = Field(0, description="The number of draws of values that were compared.")
    other: int = Field(0, description="The number of draws with which the rows differed from those of the baseline.")
    first: OtherAnswer | None = None
    counts_alone: bool = Field(
        False, description="True if only the numbers of rows were compared, because the values change by themselves."
    )
    obstacle: str | None = Field(
        None, description="The reason, as a clause, for which the answers could not be compared."
    )

    def as_facts(self) -> dict[str, Any]:
        """Returns the comparison as facts of an arm."""
        return self.model_dump(exclude_defaults=True)
