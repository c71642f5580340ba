"""Types for bisection.json, which holds the question of a bisection and the results for the commits tested so far."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from pgtrial.model.records import FORMAT, Record
from pgtrial.model.records.claims import Estimate

Mark = Literal["good", "bad", "skip"]
"""The result for a commit: it is as fast as GOOD, as fast as BAD, or unknown because it does not build or its study
gave no verdict (`skip`)."""

Part = Literal["ends", "search", "culprit"]
"""The purpose of a study in a bisection: to compare GOOD with BAD (`ends`), GOOD with a commit between them (`search`),
or the commit that was found with its parent (`culprit`)."""


class BisectionStep(Record):
    """One commit that the bisection has tested."""

    part: Part
    commit: str
    subject: str
    against: str = Field(description="The commit with which this commit was compared.")
    attempt: int = Field(
        1, description="The number of this study among the studies that compared these two commits, counted from 1."
    )
    times: int = Field(
        1,
        description="By which factor the budget of this study was larger than the budget of one study of the "
        "bisection.",
    )
    mark: Mark
    verdict: str = Field(description="The verdict of the study; for a commit that does not build, the reason.")
    difference: Estimate | None = Field(
        None,
        description="The difference of speed, as in verdict.json; None if there was no study, or if the study "
        "reached no look.",
    )
    study: str | None = Field(
        None, description="The name of the study's directory, next to this file; None if the commit does not build."
    )


class Bisection(Record):
    """The question of a bisection, fixed before the first study, and the steps so far."""

    format: int = FORMAT
    source: str = Field(
        description="The source of the server at the commit GOOD, as a study file writes it: `git:PATH@COMMIT`."
    )
    good: str
    bad: str
    first_parent: bool = Field(description="True if the bisection follows only the first parent of merge commits.")
    commits: int = Field(description="The number of commits that may be the first one with the difference.")
    studies: int = Field(description="The largest number of studies that may be run.")
    question: str = Field(description="The SHA-256 of the frozen study file of the bisection's studies.")
    steps: list[BisectionStep] = Field([])
