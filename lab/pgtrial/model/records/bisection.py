"""Types for bisection.json, which holds the question of a bisection and the results so far. A bisection searches the
commits between GOOD and BAD, which the user names, for the first one that changed the speed."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from pgtrial.model.records import FORMAT, Record
from pgtrial.model.records.claims import Estimate

Mark = Literal["good", "bad", "skip"]
"""The result for a commit: `good` if it is as fast as the commit GOOD that the user named, `bad` if it is as fast as
the commit BAD, and `skip` if that is unknown because it does not build or its study gave no verdict."""

Part = Literal["ends", "search", "culprit"]
"""The purpose of a study in a bisection between the commits GOOD and BAD that the user named: to compare GOOD with BAD
(`ends`), GOOD with a commit between them (`search`), or the commit that the search found with its parent (`culprit`).
"""


class BisectionStep(Record):
    """One commit that the bisection has tested."""

    part: Part
    commit: str
    subject: str
    against: str = Field(description="The commit with which the study compared the tested commit.")
    attempt: int = Field(
        1, description="The number of the study, counted from 1, among all studies that compared the same two commits."
    )
    times: int = Field(
        1,
        description="The budget of this study divided by the usual budget of one study of the bisection, for "
        "example 2 if it was doubled.",
    )
    mark: Mark
    verdict: str = Field(
        description="The verdict of the study; for a commit that does not build, the reason why it does not."
    )
    difference: Estimate | None = Field(
        None,
        description="The difference of speed, as in verdict.json; None if there was no study, or if the study "
        "ended before its first look (planned interim analysis).",
    )
    study: str | None = Field(
        None,
        description="The name of the study's directory, which is next to bisection.json; None if the commit "
        "does not build.",
    )


class Bisection(Record):
    """The question of a bisection, which is fixed before the first study, and the steps that it has taken so far."""

    format: int = FORMAT
    source: str = Field(
        description="The source of the server at the commit GOOD, as a study file writes it: `git:PATH@COMMIT`."
    )
    good: str
    bad: str
    first_parent: bool = Field(description="True if the bisection follows only the first parent of merge commits.")
    commits: int = Field(
        description="The number of commits from GOOD to BAD among which the bisection searched for the one that "
        "changed the speed."
    )
    studies: int = Field(description="The largest number of studies that the bisection may run.")
    question: str = Field(
        description="The SHA-256 of the study file that all studies of the bisection have in common, with every "
        "default written out."
    )
    steps: list[BisectionStep] = Field([])
