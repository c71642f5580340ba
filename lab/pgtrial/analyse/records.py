"""What a verdict holds, as types: verdict.json. Differences are shares (0.41: 41% faster), times s, latencies us."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from pgtrial.store.records import FORMAT, Finding, LoadPoint, Record

Word = Literal["better", "worse", "equivalent", "undecided", "withheld"]
"""A verdict in one word, about an arm against the baseline."""


class Estimate(Record):
    """A relative difference with its interval: speed(arm) / speed(baseline) - 1. None: not bounded by the data.

    The speed is the goodput, or at a given rate the inverse of the mean response time.
    """

    low: float | None
    value: float
    high: float | None


class BlockRatio(Record):
    """One block's part in a claim."""

    block: int
    log_ratio: float | None = Field(
        description="ln(speed of the arm / speed of the baseline); None: void, both arms failed."
    )
    counted: bool = Field(description="False: provisional, the block or one before it is not complete.")
    failed: list[str] = Field(description="Arms with a failed trial in it: they take the worst possible rank.")
    order: list[str] = Field(description="The arms as the coin ordered them; empty for a mean over load points.")


class LookReading(Record):
    """What one planned look said about a claim."""

    blocks: int
    alpha: float = Field(description="Error that the look may spend on all claims of the family together.")
    claim_alpha: float = Field(description="Error that this claim may spend.")
    difference: Estimate
    verdict: Word


class Claim(Record):
    """One comparison of an arm with the baseline, and what the rule says about it."""

    arm: str
    baseline: str
    load_point: int | None = Field(
        description="Index into load_points; None: the mean over all of them, the primary claim."
    )
    family: int = Field(description="Number of claims that share the error of each look.")
    verdict: Word
    within_margin: bool = Field(description="Whether the whole interval lies within the margin, whatever the verdict.")
    blocks: int = Field(
        description="Blocks on which the interval rests: those of the last look that carries the verdict."
    )
    difference: Estimate | None = Field(
        description="Hodges-Lehmann estimate and sequential interval; None before the first look."
    )
    mean: Estimate | None = Field(
        description="Mean log-ratio of the same blocks with its 95% t interval, as a difference."
    )
    totals: float | None = Field(description="Difference of the committed transactions in total over the same blocks.")
    unstable: bool = Field(
        description="Whether mean and estimate differ by more than half the interval: rare odd blocks."
    )
    odd_blocks: list[int] = Field(description="Blocks far from the estimate (modified z-score above 3.5).")
    changing: bool = Field(description="Whether a later look no longer carries the verdict.")
    running: float | None = Field(description="Estimate from all blocks so far, provisional ones too; no guarantee.")
    fewest_blocks: int = Field(description="Blocks below which nothing can be decided with so many claims.")
    more_blocks: int | None = Field(
        description="When undecided: blocks more that would decide, as a forecast; None: unknown."
    )
    more_s: float | None = Field(description="About how long they take.")
    established_margin: float | None = Field(description="The margin within which the arms are already equivalent.")
    looks: list[LookReading]
    ratios: list[BlockRatio]


class Spread(Record):
    """A quantity over the blocks."""

    median: float
    lowest: float
    highest: float


class Level(Record):
    """How one arm did at one load point, each trial counting once. Descriptive: comparisons are made within blocks."""

    arm: str
    load_point: int
    trials: int = Field(description="Trials that delivered something.")
    failed_trials: int
    tps: Spread | None = Field(description="Goodput, committed transactions per second.")
    tps_low: float | None = Field(
        description="Interval of the median tps by order statistics, at least 95%; needs 6 blocks."
    )
    tps_high: float | None
    latency_us: dict[str, Spread | None] = Field(
        description="mean, p50, p90, p95, p99, p99.9 of each trial; None if a trial has under 100 slower transactions."
    )


class Failures(Record):
    """What went wrong on one arm, over all its trials."""

    arm: str
    trials: int
    failed_trials: int
    transactions: int = Field(description="Committed.")
    failed_transactions: int
    share: float = Field(description="Failed / (failed + committed) transactions.")
    by_kind: dict[str, int] = Field(description="Failed transactions by SQLSTATE or kind.")
    aborted_clients: int


class Steadiness(Record):
    """Whether an arm's tps still moved within the measured part."""

    arm: str
    state: Literal["steady", "rising", "falling", "unknown"]
    trend: float | None = Field(
        description="Median over blocks of the change from start to end of the measured part, a share."
    )
    blocks: int
    rising: int = Field(description="Blocks with a trend above 1%.")
    falling: int = Field(description="Blocks with a trend below -1%.")


class FailedTrial(Record):
    """A trial that failed, with what became of it in the analysis."""

    index: int
    block: int
    arm: str
    load_point: int
    reason: str
    void: bool = Field(
        description="Whether the other arm of a comparison failed there too: that block says nothing about the pair."
    )


class PlannedLook(Record):
    """A line of the table of looks."""

    blocks: int
    alpha: float
    reached: bool
    primary_possible: bool = Field(description="Whether so many blocks can decide a primary claim at all.")
    secondary_possible: bool = Field(description="The same for the claims per load point.")


class StudyResult(Record):
    """verdict.json: everything that the report says about the measurements, reproducible from the files bit for bit."""

    format: int = FORMAT
    name: str
    pgtrial: str = Field(description="Version of the lab that planned the study.")
    baseline: str
    arms: list[str]
    load_points: list[LoadPoint]
    margin: float
    scope: str
    seed: int
    blocks_complete: int
    blocks_planned: int
    trials_stored: int
    trials_planned: int
    block_s: float = Field(description="Wall time of one block, all trials and phases.")
    identical_arms: bool = Field(description="Whether the study declares no difference: an A/A study.")
    sentences: list[str] = Field(description="The verdict, one sentence for each arm but the baseline.")
    notes: list[str] = Field(description="What a reader has to know beside the verdict.")
    withheld: list[str] = Field(description="Why the verdict is withheld, if it is.")
    findings: list[Finding] = Field(description="The audit's findings, the gravest first.")
    primary: list[Claim]
    by_load_point: list[Claim]
    levels: list[Level]
    failures: list[Failures]
    failures_lead: list[str] = Field(
        description="Arms whose failures are so many or so different that they come first."
    )
    failed_trials: list[FailedTrial]
    steadiness: list[Steadiness]
    looks: list[PlannedLook]

    @property
    def decided(self) -> bool:
        """Whether every primary claim has been decided by the measurements, withheld or not."""
        return bool(self.primary) and all(
            any(reading.verdict != "undecided" for reading in claim.looks) for claim in self.primary
        )

    @property
    def exit_status(self) -> int:
        """0: no regression; 1: an arm is worse than the baseline by more than the margin excludes; 2: no verdict."""
        if any(claim.verdict == "worse" and not claim.within_margin for claim in self.primary):
            return 1
        return 2 if any(claim.verdict in ("undecided", "withheld") for claim in self.primary) else 0

    def claims(self, arm: str) -> list[Claim]:
        """The claims per load point of one arm, in the order of the load points."""
        return [claim for claim in self.by_load_point if claim.arm == arm]
