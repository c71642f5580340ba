"""Types for what is said of numbers that were measured without pgtrial."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from pgtrial.model.records import FORMAT, Record
from pgtrial.model.records.claims import Claim, exit_status_of
from pgtrial.model.records.machine import Precision

Better = Literal["more", "less"]
"""The direction in which a value is better: larger values (`more`) or smaller ones (`less`)."""

Pattern = Literal["one arm", "one after the other", "in turn", "back and forth", "no rule"]
"""The rule that the arms follow in the order of the runs: all runs of an arm before those of the next, the same order
in each block, or each block in the reverse order of the one before."""


class Level(Record):
    """The values of an arm."""

    arm: str
    runs: int
    median: float
    low: float | None = Field(
        description="The lower end of the 95% interval of the median; None for fewer than six values."
    )
    high: float | None
    lowest: float
    highest: float


class Drift(Record):
    """A trend from run to run that is found within the arms, as shares."""

    each_run: float = Field(description="The change of the value from one run to the next.")
    by_arm: dict[str, float] = Field(description="The difference from the baseline that the drift alone makes, by arm.")


class Judgement(Record):
    """The result of judging numbers of another harness: the conclusions that the numbers allow, and those that they do
    not allow. Differences are shares (0.01 is one percent), as in the verdict of a study."""

    format: int = FORMAT
    source: str
    column: str = Field(description="The name of the column with the values.")
    better: Better
    baseline: str
    arms: list[str]
    margin: float
    drawn: bool = Field(description="True if the user states that the order within blocks was drawn at random.")
    pattern: Pattern = Field(description="The rule that the arms follow in the order of the runs.")
    blocks: int | None = Field(description="The number of complete blocks; None if the runs form no blocks.")
    blocks_planned: int | None = Field(description="The number of blocks that were planned before the first run.")
    runs_in_block: int | None = Field(
        description="The number of values of each arm in a block. Their means are compared."
    )
    withheld: list[str] = Field(
        description="The reasons for which the numbers give no verdict; empty if they give one."
    )
    cautions: list[str] = Field(description="Sentences that a reader has to know before using the verdict.")
    primary: list[Claim] = Field(description="The comparison of each arm with the baseline; empty if there is one arm.")
    levels: list[Level]
    scatter: float | None = Field(
        description="The standard deviation of the logarithm of a run among the runs of its arm; None if each "
        "arm has one run."
    )
    drift: Drift | None = Field(description="The trend within the arms; None if none is found.")
    precision: Precision | None = Field(
        description="The differences that as many blocks in a drawn order could find at this noise; None if the "
        "noise is not known."
    )
    blocks_to_tell: int | None = Field(
        description="The number of blocks in a drawn order that would find a difference as large as this one or, "
        "if it is smaller than the margin, establish the margin; None if it is not known, or is more "
        "than can be run."
    )
    sentences: list[str] = Field([], description="The result in words.")

    @property
    def exit_status(self) -> int:
        """Returns the exit status: that of a study's verdict; of one arm alone 0 if its level has an interval, else
        2."""
        if self.primary:
            return exit_status_of(self.primary)
        return 0 if all(level.low is not None for level in self.levels) else 2
