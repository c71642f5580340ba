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
    low: float | None = Field(description="Lower end of the 95% interval of the median; None below six values.")
    high: float | None
    lowest: float
    highest: float


class Drift(Record):
    """A trend from run to run that is found within the arms, as shares."""

    each_run: float = Field(description="Change of the value from one run to the next.")
    by_arm: dict[str, float] = Field(description="Difference from the baseline that it makes by itself, by arm.")


class Judgement(Record):
    """The result of judging numbers of another harness: the conclusions that the numbers allow, and those that they do
    not allow. Differences are shares (0.01 is one percent), as in the verdict of a study."""

    format: int = FORMAT
    source: str
    column: str = Field(description="Name of the column with the values.")
    better: Better
    baseline: str
    arms: list[str]
    margin: float
    drawn: bool = Field(description="Whether the order within blocks was drawn at random, as the user states.")
    pattern: Pattern = Field(description="Rule that the arms follow in the order of the runs.")
    blocks: int | None = Field(description="Complete blocks; None: the runs form none.")
    blocks_planned: int | None = Field(description="Blocks that were planned before the first run.")
    runs_in_block: int | None = Field(description="Values of each arm in a block, whose mean is compared.")
    withheld: list[str] = Field(description="Why the numbers give no verdict; empty: they may.")
    cautions: list[str] = Field(description="What a reader has to know before using the verdict.")
    primary: list[Claim] = Field(description="The comparison of each arm with the baseline; empty: there is one arm.")
    levels: list[Level]
    scatter: float | None = Field(
        description="Standard deviation of the logarithm of a run among those of its arm; None: one run of each."
    )
    drift: Drift | None = Field(description="None: no trend is found within the arms.")
    precision: Precision | None = Field(
        description="What as many blocks in a drawn order can tell by this noise; None: the noise is not known."
    )
    blocks_to_tell: int | None = Field(
        description="Blocks in a drawn order that find a difference as large as the one seen, or establish the margin "
        "where it is smaller; None: not known, or more than can be run."
    )
    sentences: list[str] = Field([], description="The result in words.")

    @property
    def exit_status(self) -> int:
        """Returns the exit status: that of a study's verdict; of one arm alone 0 if its level has an interval, else
        2."""
        if self.primary:
            return exit_status_of(self.primary)
        return 0 if all(level.low is not None for level in self.levels) else 2
