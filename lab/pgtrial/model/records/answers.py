"""The rehearsal's comparison of the answers of an arm's script, which are the rows that its statements return."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from pgtrial.model.records import Record


class OtherAnswer(Record):
    """The first draw of values for which an arm returned other rows than the baseline."""

    values: str = Field(description="The values that were drawn, for people: `id = 7`; empty: there are no variables.")
    statement: int | None = Field(
        description="Which of the statements that return rows, counted from 1; None: the last one, since the arms have "
        "different numbers of them."
    )
    baseline_rows: int
    rows: int


class ArmAnswers(Record):
    """The comparison of an arm's answers with those of the baseline."""

    draws: int = Field(0, description="How many draws of values were compared.")
    other: int = Field(0, description="With how many of them the rows were not those of the baseline.")
    first: OtherAnswer | None = None
    counts_alone: bool = Field(
        False, description="Whether only the numbers of rows were compared, since the values change by themselves."
    )
    obstacle: str | None = Field(None, description="Why the answers could not be compared, a clause.")

    def as_facts(self) -> dict[str, Any]:
        """Returns the comparison as facts of an arm."""
        return self.model_dump(exclude_defaults=True)
