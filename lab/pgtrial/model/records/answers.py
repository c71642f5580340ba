"""Types for the comparison of answers in the rehearsal, which runs the load once on each arm before the study: whether
an arm's script returns the same rows as the baseline's."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from pgtrial.model.records import Record, added


class OtherAnswer(Record):
    """The first set of random values for the script's variables with which an arm returned other rows than the
    baseline."""

    values: str = Field(
        description="The random values of the script's variables, for people: `id = 7`; empty if the script has "
        "no variables."
    )
    statement: int | None = Field(
        description="The number of the statement with the different rows, among the statements that return rows, "
        "counted from 1. None if the arms have different numbers of such statements, so that only the last statement "
        "of each was compared."
    )
    baseline_rows: int
    rows: int
    script: str | None = added(
        None, "The script with the different rows, if the load has several scripts that all arms run."
    )


class ArmAnswers(Record):
    """The comparison of an arm's answers with those of the baseline."""

    draws: int = Field(
        0,
        description="The number of sets of random values for the script's variables with which pgtrial compared "
        "the rows of the arm with those of the baseline.",
    )
    other: int = Field(
        0,
        description="The number of sets of random values for the script's variables with which the arm returned "
        "other rows than the baseline.",
    )
    first: OtherAnswer | None = None
    counts_alone: bool = Field(
        False,
        description="True if pgtrial compared only the numbers of rows, because the same statement returns "
        "different values when it runs again.",
    )
    obstacle: str | None = Field(
        None,
        description="The reason why pgtrial could not compare the answers, as a part of a sentence; None if it "
        "compared them.",
    )

    def as_facts(self) -> dict[str, Any]:
        """Returns the comparison in the form in which the facts of an arm store it."""
        return self.model_dump(exclude_defaults=True)
