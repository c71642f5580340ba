"""bisection.json: the question of a bisection, and what is known of its commits."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from pgtrial.model.records import FORMAT, Record
from pgtrial.model.records.claims import Estimate

Mark = Literal["good", "bad", "skip"]
"""The result for a commit: it is like GOOD, like BAD, or unknown because it does not build or its study decided
nothing."""

Part = Literal["ends", "search", "culprit"]
"""The purpose of a study: to compare GOOD with BAD, GOOD with a commit between them, or the found commit with its
parent."""


class BisectionStep(Record):
    """One commit that the bisection has tested."""

    part: Part
    commit: str
    subject: str
    against: str = Field(description="The commit with which it was compared.")
    attempt: int = Field(1, description="The number of the study among those of these two commits.")
    times: int = Field(
        1, description="The longest time that the study could take, as a multiple of the time of one study."
    )
    mark: Mark
    verdict: str = Field(description="The verdict of the study; for a commit that does not build, the reason.")
    difference: Estimate | None = Field(
        None, description="The difference of speed, as in verdict.json; None if there was no study or no look."
    )
    study: str | None = Field(
        None, description="The name of the study's directory, next to this file; None if the commit does not build."
    )


class Bisection(Record):
    """The question of a bisection, fixed before the first study, and the steps so far."""

    format: int = FORMAT
    source: str = Field(description="The repository at GOOD, as a study names it.")
    good: str
    bad: str
    first_parent: bool = Field(description="True if only the first parent of merge commits is followed.")
    commits: int = Field(description="The number of commits that may be the first one with the difference.")
    studies: int = Field(description="The largest number of studies that may be run.")
    question: str = Field(description="The SHA-256 of the frozen study file.")
    steps: list[BisectionStep] = Field([])
