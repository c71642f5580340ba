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
    against: str = Field(description="The commit that it was compared with.")
    attempt: int = Field(1, description="Which study of these two commits it is.")
    times: int = Field(1, description="How many times the time of one study it could take.")
    mark: Mark
    verdict: str = Field(description="The verdict of the study; of a commit that does not build, the reason.")
    difference: Estimate | None = Field(None, description="Of speed, as in verdict.json; None: no study, or no look.")
    study: str | None = Field(None, description="Its directory, beside this file; None: it does not build.")


class Bisection(Record):
    """The question of a bisection, fixed before the first study, and the steps so far."""

    format: int = FORMAT
    source: str = Field(description="The repository as a study names it, at GOOD.")
    good: str
    bad: str
    first_parent: bool = Field(description="Whether merges count as one commit.")
    commits: int = Field(description="Commits that may be the first with the difference.")
    studies: int = Field(description="Most studies that are run.")
    question: str = Field(description="SHA-256 of the frozen study.")
    steps: list[BisectionStep] = Field([])
