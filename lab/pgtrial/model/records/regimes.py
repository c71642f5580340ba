"""The levels that a trial went through, as types."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from pgtrial.model.records import Record

Shape = Literal["flat", "warm-up", "slow-down", "collapse", "recovery", "cyclic", "no steady state"]
"""The class of a trial's timeline. Only the first keeps one level from start to end."""


class Segment(Record):
    """A part of a trial in which it kept one level. Seconds count from the start of the measured part."""

    start_s: int
    end_s: int
    tps: float = Field(description="Median second.")
    committed: int = Field(description="Transactions committed up to the end: the work done when the level changed.")


class Regime(Record):
    """The levels that one trial went through."""

    shape: Shape
    settled: bool = Field(description="Whether the last level is one that the trial kept.")
    segments: list[Segment]


class TrialRegime(Record):
    """A trial that did not keep one level."""

    index: int
    block: int
    regime: Regime
