"""Types for the result of judging numbers that the user measured without pgtrial."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from pgtrial.model.records import FORMAT, Record
from pgtrial.model.records.claims import Claim, exit_status_of
from pgtrial.model.records.machine import Precision

Better = Literal["more", "less"]
"""The values that are better: larger ones (`more`) or smaller ones (`less`)."""

Pattern = Literal["one arm", "one after the other", "in turn", "back and forth", "no rule"]
"""The rule that the arms follow in the order of the runs. `one arm`: there is nothing to order. `one after the other`:
all runs of an arm come before those of the next arm. `in turn`: each block has the same order. `back and forth`: each
block has the reverse order of the block before. `no rule`: any other order."""


class Level(Record):
    """A summary of the values of one arm: the number of runs, the median with its interval, and the range."""

    arm: str
    runs: int
    median: float
    low: float | None = Field(
        description="The lower end of the 95% interval of the median; None if there are fewer than six values."
    )
    high: float | None
    lowest: float
    highest: float


class Drift(Record):
    """A trend from run to run within the arms, as shares (0.01 is one percent)."""

    each_run: float = Field(description="The change of the value from one run to the next.")
    by_arm: dict[str, float] = Field(
        description="For each arm, the difference from the baseline that the drift alone would cause."
    )


class Judgement(Record):
    """The result of judging numbers of another benchmark program: the conclusions that the numbers allow, and the
    reasons why they allow no others. Differences are shares (0.01 is one percent), as in the verdict of a study."""

    format: int = FORMAT
    source: str
    column: str = Field(description="The name of the column that has the values.")
    better: Better
    baseline: str
    arms: list[str]
    margin: float
    drawn: bool = Field(description="True if the user states that the order within each block was drawn at random.")
    pattern: Pattern = Field(description="The rule that the arms follow in the order of the runs.")
    blocks: int | None = Field(description="The number of complete blocks; None if the runs form no blocks.")
    blocks_planned: int | None = Field(description="The number of blocks that were planned before the first run.")
    runs_in_block: int | None = Field(
        description="The number of values that each arm has in a block, whose mean is compared; None if the "
        "blocks have different numbers of them."
    )
    withheld: list[str] = Field(description="The reasons why the numbers give no verdict; empty if they give one.")
    cautions: list[str] = Field(description="Sentences that a reader needs to know before using the verdict.")
    primary: list[Claim] = Field(
        description="The comparison of each arm with the baseline; empty if there is a single arm."
    )
    levels: list[Level]
    scatter: float | None = Field(
        description="The standard deviation of the logarithms of values among the runs of one arm; None if each arm "
        "has a single run."
    )
    drift: Drift | None = Field(description="The trend within the arms; None if no trend is found.")
    precision: Precision | None = Field(
        description="The differences that the same number of blocks in a drawn order could find with this noise; "
        "None if the noise is not known."
    )
    blocks_to_tell: int | None = Field(
        description="The number of blocks in a drawn order that would find a difference as large as this one. If "
        "the difference is smaller than the margin, the number of blocks that would establish the margin. None if "
        "the number is not known, or is larger than anybody can run."
    )
    sentences: list[str] = Field(
        [], description="The result in words: a text for each comparison, or one for a single arm."
    )

    @property
    def exit_status(self) -> int:
        """Returns the exit status, which is the same as that of a study with this verdict. For a single arm, it is 0 if
        the median has an interval, otherwise 2."""
        if self.primary:
            return exit_status_of(self.primary)
        return 0 if all(level.low is not None for level in self.levels) else 2
