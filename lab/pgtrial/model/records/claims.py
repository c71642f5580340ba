"""Types for one comparison of an arm with the baseline: its verdict, its interval, its looks (interim analyses) and its
blocks.

Differences are shares: 0.41 means 41% faster.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from pydantic import Field

from pgtrial.model.records import Record, added
from pgtrial.model.units import TWICE, decimals_for, times_between

Word = Literal["better", "worse", "equivalent", "undecided", "withheld"]
"""A verdict in one word, about an arm against the baseline. `better` and `worse`: the arm is faster or slower.
`equivalent`: the difference is smaller than the margin. `undecided`: the blocks are too few to tell. `withheld`:
pgtrial gives no verdict, because the comparison is unfair or the measurement is spoilt."""


class Estimate(Record):
    """A relative difference with its interval: speed(arm) / speed(baseline) - 1. A bound is None if the data do not
    bound the difference on that side.

    The speed is the goodput. For tasks, and for loads with a given rate, it is the inverse of the mean response time.
    For percentiles and costs that a study declares as metrics, the difference is the relative difference of the values.
    """

    low: float | None
    value: float
    high: float | None

    @property
    def known(self) -> list[float]:
        """Returns the estimate and those of its bounds that are not None."""
        return [value for value in (self.low, self.value, self.high) if value is not None]

    def text(self, *, sign: bool = True) -> str:
        """Returns the interval for reports: `+35..+48%`, or without `sign` `35..48%`. From a doubling on, returns
        ratios, `48..50 times`. With a single known bound, returns for example `at least +5%`, and with none `not
        bounded yet`."""
        if self.low is None or self.high is None:
            return self._one_bound()
        if self.value >= TWICE:
            return f"{'..'.join(times_between(1 + self.low, 1 + self.value, 1 + self.high))} times"
        decimals = decimals_for(self.known)
        low, high = (f"{bound * 100:{'+' if sign else ''}.{decimals}f}" for bound in (self.low, self.high))
        return f"{_no_minus_zero(low)}..{_no_minus_zero(high)}%"

    def _one_bound(self) -> str:
        decimals = decimals_for(self.known)
        if self.low is not None:
            return f"at least {_no_minus_zero(f'{self.low * 100:+.{decimals}f}')}%"
        if self.high is not None:
            return f"at most {_no_minus_zero(f'{self.high * 100:+.{decimals}f}')}%"
        return "not bounded yet"


def _no_minus_zero(text: str) -> str:
    return text.lstrip("-") if float(text) == 0 else text


class BlockRatio(Record):
    """The contribution of one block to a claim, which is the ratio between the arm and the baseline in this block."""

    block: int
    log_ratio: float | None = Field(
        description="ln(speed of the arm / speed of the baseline); for a percentile or a cost, ln(baseline / "
        "arm). None if both arms failed, or if one of them has no speed in the part of the trial "
        "that the claim is about, before or after a change of speed."
    )
    cut: list[str] = added(
        [],
        "The arms whose value in the block is only a bound: the true value may be worse. The block cannot "
        "show that such an arm is better than the other arm, or equal to it.",
    )
    counted: bool = Field(
        description="True if this block and all blocks before it are complete. The ratio of any other block is "
        "provisional."
    )
    failed: list[str] = Field(
        description="The arms with a failed trial in the block. Such a trial has the worst possible rank."
    )
    order: list[str] = Field(
        description="The arms in the random order of the block; empty for a mean over load points."
    )


class LookReading(Record):
    """The result that one claim had at one look. Looks are the interim analyses of a study, after numbers of blocks
    that were fixed before the first block."""

    blocks: int
    alpha: float = Field(
        description="The part of the error of 5% (the probability of a wrong verdict in a study of equal arms) "
        "that all claims of the family together may spend at this look."
    )
    claim_alpha: float = Field(description="The part of the look's error that this single claim may spend.")
    difference: Estimate
    verdict: Word


When = Literal["before", "after"]
"""The part of a trial that a claim is about: the time before the speed first changed to another level (the burst), or
the level that the trial kept after the last such change (the sustained level)."""

Side = Literal["below", "above"]
"""The load points that a claim is about, in a study over several sizes of the data. `below`: sizes up to the cliff, or
all sizes if there is no cliff. `above`: sizes beyond the cliff."""

SIDES: tuple[Side, ...] = get_args(Side)

PARTS: Mapping[When | Side, str] = {
    "before": "before the change",
    "after": "after the change",
    "below": "below the cliff",
    "above": "above the cliff",
}
"""The name of each part of a claim (see `When` and `Side`), for reports."""

Unit = Literal["block", "deployment"]
"""The unit that a claim (a comparison of an arm with the baseline) counts as one observation: a block or, if each arm
names several servers of one product (deployments), a pair of deployments with all of its blocks."""


class Claim(Record):
    """One comparison of an arm with the baseline, and the conclusion that the statistical rule draws from it.

    If the speed changes from one level to another within trials, `parts` holds a claim on the time before the change
    and, if it is known, one on the time after it. If the throughput falls off a cliff over the sizes of the data,
    `parts` holds a claim on the sizes below the cliff and one on the sizes above it. The claim itself then has no
    estimate, because an average across the change describes neither part. Its verdict is that of its parts if they
    agree, otherwise undecided.
    """

    arm: str
    baseline: str
    load_point: int | None = Field(
        description="The index of the load point in load_points; None for the primary claim, which is about the "
        "mean over all load points."
    )
    family: int = Field(description="The number of claims that share the error of each look (interim analysis).")
    verdict: Word
    within_margin: bool = Field(
        description="True if the whole interval of the difference lies within the margin, whatever the verdict is."
    )
    not_worse: bool = added(
        False, "In a one-sided study, true if a loss of the margin or more is excluded, whatever the verdict is."
    )
    blocks: int = Field(
        description="The number of blocks from which the interval is computed. They are the blocks up to the "
        "last look (interim analysis) that has the verdict."
    )
    difference: Estimate | None = Field(
        None,
        description="The difference: the Hodges-Lehmann estimate with the sequential interval, which is valid "
        "at all looks (interim analyses) together. For four to seven pairs of deployments it is the "
        "mean with its t interval. None before the first look.",
    )
    mean: Estimate | None = Field(
        None,
        description="The mean of the log-ratios of the same blocks with its 95% t interval, converted to a "
        "relative difference.",
    )
    totals: float | None = Field(
        None,
        description="The difference between the total numbers of transactions that the arm and the baseline "
        "committed in the blocks of the interval.",
    )
    unstable: bool = Field(
        False,
        description="True if the mean log-ratio and the Hodges-Lehmann estimate differ by more than half the "
        "interval, because a few blocks are unusual.",
    )
    odd_blocks: list[int] = Field(
        [], description="The numbers of the blocks whose ratios are far from the estimate (modified z-score above 3.5)."
    )
    changing: bool = Field(
        False,
        description="True if a look (interim analysis) after the one that gave the verdict would no longer give it.",
    )
    running: float | None = Field(
        None,
        description="The estimate from all blocks so far, including provisional ones. Its interval is not valid "
        "at any time, in contrast to that of `difference`.",
    )
    fewest_blocks: int = Field(
        description="The number of blocks below which no verdict is possible, since the claim shares the error "
        "with the other claims of its family."
    )
    more_blocks: int | None = Field(
        None,
        description="If the claim is undecided, a forecast of the number of further blocks that would decide it; "
        "None if it is not known.",
    )
    more_s: float | None = Field(None, description="The time that `more_blocks` blocks would take, in seconds.")
    more_chance: float | None = added(
        None,
        "The probability that `more_blocks` blocks decide the claim, if the true difference is the "
        "estimated one; None if it is not known, or if there are too few blocks for a forecast.",
    )
    established_margin: float | None = Field(
        None,
        description="The smallest margin with which the interval would have the verdict `equivalent`; None if "
        "there is none.",
    )
    looks: list[LookReading] = Field([])
    ratios: list[BlockRatio] = Field([])
    unit: Unit = added(
        "block",
        "What the numbers of blocks in this claim, its looks and its ratios count: blocks, or pairs of deployments.",
    )
    regime: When | Side | None = added(
        None,
        "The part of the comparison that this claim is about, if it is one of the `parts` of "
        "another claim: before or after a change of speed within trials, or the sizes of the data "
        "on one side of a cliff. None for a claim on whole trials.",
    )
    parts: list[Claim] = added(
        [],
        "The claims on the parts of a comparison: before and after a change of speed within trials, "
        "or on both sides of a cliff.",
    )

    @property
    def read(self) -> list[Claim]:
        """Returns the claims that a reader should see: the parts if there are any, else this claim itself."""
        return self.parts or [self]


def exit_status_of(claims: Sequence[Claim]) -> int:
    """Returns the exit status of primary claims. 0: no regression; 1: an arm is worse than the baseline, and a loss of
    the margin or more is not excluded; 2: no verdict on some arm."""
    parts = [part for claim in claims for part in claim.read]
    if any(part.verdict == "worse" and not (part.within_margin or part.not_worse) for part in parts):
        return 1
    withheld = any(claim.verdict == "withheld" for claim in claims)
    return 2 if withheld or any(claim.verdict == "undecided" and not claim.not_worse for claim in claims) else 0


@dataclass(frozen=True)
class Comparison:
    """The result so far of comparing an arm with the baseline in one series of blocks. It has everything that pgtrial
    needs to decide whether a running study continues."""

    arm: str
    regime: When | Side | None
    decided: bool
    """True if a look, which is an interim analysis planned before the first block, has decided the comparison or, in a
    one-sided study, excluded that the arm is worse by the margin or more."""
    so_far: float | None
    """The difference over all blocks so far; None before the first block. It has no interval, since pgtrial's intervals
    are valid only at the planned interim analyses (looks)."""
    at_look: Estimate | None
    """The difference that the verdict shows, with the sequential interval of the interim analysis (look) that gave it;
    None before the first look."""

    @property
    def name(self) -> str:
        """Returns the arm's name, such as `off`, or for a part of the comparison `off, before the change`."""
        return f"{self.arm}, {PARTS[self.regime]}" if self.regime else self.arm
