"""What a verdict holds, as types: verdict.json. Differences are shares (0.41: 41% faster), times s, latencies us."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import Field, model_validator

from pgtrial.model.records import FORMAT, Record, added
from pgtrial.model.records.disturbances import Interruption
from pgtrial.model.records.facts import Finding
from pgtrial.model.records.plan import LoadPoint
from pgtrial.model.records.trial import Shape, TrialRegime
from pgtrial.model.records.where_it_ran import WhereItRan
from pgtrial.model.units import decimals_for

Word = Literal["better", "worse", "equivalent", "undecided", "withheld"]
"""A verdict in one word, about an arm against the baseline."""


class Estimate(Record):
    """A relative difference with its interval: speed(arm) / speed(baseline) - 1. None: not bounded by the data.

    The speed is the goodput, or at a given rate and of tasks the inverse of the mean response time. Of percentiles and
    costs that a study declares it is the difference of the values.
    """

    low: float | None
    value: float
    high: float | None

    @property
    def known(self) -> list[float]:
        """The estimate and its bounds, as far as the data bound it."""
        return [value for value in (self.low, self.value, self.high) if value is not None]

    def text(self, *, sign: bool = True) -> str:
        """The interval: `+35..+48%`, without `sign` `35..48%` and `-0.3..1.9%`, or that nothing is bounded yet."""
        if self.low is None or self.high is None:
            return "not bounded yet"
        places = decimals_for(self.known)
        low, high = (f"{bound * 100:{'+' if sign else ''}.{places}f}" for bound in (self.low, self.high))
        return f"{_no_minus_zero(low)}..{_no_minus_zero(high)}%"


def _no_minus_zero(text: str) -> str:
    return text.lstrip("-") if float(text) == 0 else text


class BlockRatio(Record):
    """One block's part in a claim."""

    block: int
    log_ratio: float | None = Field(
        description="ln(speed of the arm / speed of the baseline), of a percentile or cost ln(baseline / arm); "
        "None: void, both arms failed, or one of them has no speed in this regime."
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


When = Literal["before", "after"]
"""Before a trial's first change of regime (the burst), or on the level that it kept after the last (the sustained)."""

Side = Literal["below", "above"]
"""Of a cliff over the size of the data: the sizes up to it, with load points that have none, or those beyond."""

PARTS: Mapping[When | Side, str] = {
    "before": "before the change",
    "after": "after the change",
    "below": "below the cliff",
    "above": "above the cliff",
}
"""What the part of a claim speaks of, in words."""


Unit = Literal["block", "deployment"]
"""What a claim counts: blocks, or pairs of deployments with all their blocks."""


class Claim(Record):
    """One comparison of an arm with the baseline, and what the rule says about it.

    Where regimes change, `parts` holds the claims before and (if known) after the change; where throughput falls off a
    cliff over the sizes, those below and above it. The claim itself then has no estimate, for that would be an average
    across the change; its verdict is the parts' if they agree, else undecided.
    """

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
        None,
        description="Hodges-Lehmann estimate and sequential interval, of four to seven pairs of deployments the mean "
        "and its t interval; None before the first look.",
    )
    mean: Estimate | None = Field(
        None, description="Mean log-ratio of the same blocks with its 95% t interval, as a difference."
    )
    totals: float | None = Field(
        None, description="Difference of the committed transactions in total over the same blocks."
    )
    unstable: bool = Field(
        False, description="Whether mean and estimate differ by more than half the interval: rare odd blocks."
    )
    odd_blocks: list[int] = Field([], description="Blocks far from the estimate (modified z-score above 3.5).")
    changing: bool = Field(False, description="Whether a later look no longer carries the verdict.")
    running: float | None = Field(
        None, description="Estimate from all blocks so far, provisional ones too; no guarantee."
    )
    fewest_blocks: int = Field(description="Blocks below which nothing can be decided with so many claims.")
    more_blocks: int | None = Field(
        None, description="When undecided: blocks more that would decide, as a forecast; None: unknown."
    )
    more_s: float | None = Field(None, description="About how long they take.")
    more_chance: float | None = added(
        None, "Probability that they decide, if the difference is as estimated; None: unknown, or too few blocks."
    )
    established_margin: float | None = Field(None, description="The arms are already equivalent within this margin.")
    looks: list[LookReading] = Field([])
    ratios: list[BlockRatio] = Field([])
    unit: Unit = added("block", "What the numbers of blocks in this claim, its looks and ratios count.")
    regime: When | Side | None = added(
        None, "Of which regime, or of which side of a cliff, a part speaks; None: whole trials."
    )
    parts: list[Claim] = added([], "The claims by regime if it changes, or by side of a cliff.")

    @property
    def read(self) -> list[Claim]:
        """The claims to be read: the parts where there are some, else this one."""
        return self.parts or [self]


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
    tps_before: Spread | None = added(
        None, "Where the regime changes: the level before. There is no tps then, for it would average across."
    )
    tps_after: Spread | None = added(None, "The level after it, where one was kept.")
    latency_us: dict[str, Spread | None] = Field(
        description="mean, p50, p90, p95, p99, p99.9 of each trial; a percentile is None if a trial has under 100 "
        "slower transactions."
    )
    quality: Spread | None = added(None, "Of a pack that measures one: the quality of the answers, e.g. the recall.")


class StatementErrors(Record):
    """Errors of a replay's statements with one SQLSTATE on one arm, beside the recorded ones, over all its trials."""

    template: int | None = Field(
        description="None: later statements of transactions that an error had ended (25P02), of all templates."
    )
    text: str = Field(description="Of the template; empty without one.")
    sqlstate: str
    recorded: int = Field(description="Errors that occurred as recorded.")
    new: int = Field(description="Errors that were not recorded.")
    gone: int = Field(description="Recorded errors that did not occur.")
    consequences: int = Field(description="Later statements of the same transactions that failed anew with 25P02.")
    gone_consequences: int = Field(description="Such statements that failed when they were recorded, and do not.")


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
    statements: list[StatementErrors] = added([], "Of a replay: the statements with errors, the newest kinds first.")


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


class CellRegimes(Record):
    """The regimes of one arm at one load point, over its trials."""

    arm: str
    load_point: int
    trials: int = Field(description="Trials long enough for a regime to be detected.")
    shapes: dict[Shape, int] = Field(description="Trials of each class.")
    changes: bool = Field(description="Whether so many trials change that no average across the change is given.")
    before: Spread | None = Field(description="Level before the first change, tps, of the trials that change.")
    after: Spread | None = Field(description="Level after the last change, tps, where one was kept.")
    changed_s: Spread | None = Field(description="Second of the first change.")
    changed_committed: Spread | None = Field(description="Transactions committed by then: credits are spent by work.")
    settled_s: Spread | None = Field(description="Second from which the last level was kept.")
    not_flat: list[TrialRegime]


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


class Cost(Record):
    """What a committed transaction cost on an arm: the median trial, and the difference to the baseline by blocks."""

    what: str = Field(description="E.g. `WAL`, `server CPU`.")
    unit: str = Field(description="`us`, `bytes`, or empty for a count.")
    arm: str
    load_point: int | None = Field(description="Index into load_points; None: the mean of the ratios over all of them.")
    trials: int
    median: float | None = Field(description="Per committed transaction; None for the mean over load points.")
    low: float | None = Field(description="Interval of the median by order statistics; needs 6 trials.")
    high: float | None
    blocks: int = Field(description="Blocks on which the difference rests.")
    difference: Estimate | None = Field(
        description="Cost of the arm / cost of the baseline - 1 by the rule P8, at the last look; None for the "
        "baseline, and where there was no look or next to no cost."
    )


class CarryOver(Record):
    """How an arm does in slices after another arm's, against slices among its own alone."""

    arm: str
    preceding: str = Field(description="The arm of the slice before.")
    load_point: int
    blocks: int = Field(description="Blocks on which the difference rests.")
    difference: Estimate | None = Field(
        description="Relative difference of the arm's speed by the rule P8, at the last look; negative: it is slower "
        "after the other arm. None before the first look."
    )


class CarryOverShift(Record):
    """How far carry-over moves a comparison: what it does to the arm, against what it does to the baseline."""

    arm: str
    baseline: str
    load_point: int | None = Field(description="Index into load_points; None: the mean over all of them.")
    blocks: int = Field(description="Blocks on which the difference rests.")
    difference: Estimate | None = Field(
        description="By the rule P8, at the last look; positive: the arm appears faster than it would without "
        "carry-over. None before the first look."
    )


class Criterion(Record):
    """A row of the criteria of a comparison on tasks: what either arm has, and which of them wins by the rule P8."""

    what: str = Field(description="failures, shortest, longest, mean, median, under 5 s, within 0.1 s, 1 s, 10 s.")
    unit: Literal["s", "tasks"]
    better: Literal["less", "more"]
    arm: str
    baseline: str
    primary: bool = Field(description="Whether it is the study's primary claim; the others are secondary.")
    values: dict[str, float | None] = Field(
        description="By arm, of the median trial; of failures the sum over all trials. None: not known."
    )
    verdict: Word
    within_margin: bool = Field(description="Whether the whole interval lies within the margin, whatever the verdict.")
    by: Literal["ratio", "difference"]
    difference: Estimate | None = Field(
        description="How much better the arm is: of times the relative difference of speeds, of tasks the difference "
        "as a share of all tasks; None before the first look."
    )
    claims: int = Field(description="Number of claims that share the error of each look.")
    blocks: int

    @property
    def winner(self) -> str:
        """The better arm, or why there is none."""
        words = {"equivalent": "no difference", "withheld": "no verdict", "undecided": "undecided"}
        return words.get(self.verdict) or (self.arm if self.verdict == "better" else self.baseline)


class MetricClaim(Record):
    """A claim on a metric that the study declares."""

    metric: str = Field(description="As the study names it: `p99`.")
    unit: Literal["us", "bytes", "1/s", ""]
    better: Literal["more", "less"]
    arm: str
    baseline: str
    primary: bool = Field(description="Whether it is the primary claim; the others are secondary.")
    values: dict[str, float | None] = Field(
        description="By arm, of the median trial; empty with several load points. None: not known."
    )
    verdict: Word
    within_margin: bool = Field(description="Whether the whole interval lies within the margin, whatever the verdict.")
    difference: Estimate | None = Field(
        description="Of tps and response the relative difference of speeds, of others that of the values; None before "
        "the first look."
    )
    claims: int = Field(description="Number of claims that share the error of each look.")
    blocks: int
    withheld: str | None = added(None, "Why a secondary claim does not stand.")


class CurvePoint(Record):
    """A percentile of an arm's response times against the baseline's, at a rate."""

    percentile: str
    arm: str
    baseline: str
    load_point: int = Field(description="Index into load_points.")
    difference: Estimate | None = Field(
        description="Of the values, by the rule P8, at the last look; None before the first."
    )
    claims: int = Field(description="Number of percentiles that share the error of each look.")
    blocks: int


class StatementClaim(Record):
    """Statements of one template in a replay: what they take on both arms, and whether the arm is slower."""

    template: int = Field(description="Number in the capture.")
    text: str
    arm: str
    baseline: str
    statements: int = Field(description="In the median trial of both arms.")
    share: dict[str, float] = Field(description="By arm, share of the time of all statements, median trial.")
    mean_us: dict[str, float] = Field(description="By arm, mean time of a statement, median trial.")
    verdict: Word
    within_margin: bool = Field(description="Whether the whole interval lies within the margin, whatever the verdict.")
    difference: Estimate | None = Field(description="Of speed, by the rule P8; None before the first look.")
    claims: int = Field(description="Number of claims that share the error of each look.")
    blocks: int

    @property
    def is_slower(self) -> bool:
        """Whether it got slower by more than the margin may hide."""
        return self.verdict == "worse" and not self.within_margin


class Bounds(Record):
    """A quantity with its 95% interval. None: without limit on that side."""

    low: float | None
    value: float | None
    high: float | None


class Law(Record):
    """The universal scalability law of an arm: throughput over clients as g n / (1 + a (n - 1) + b n (n - 1))."""

    single: Bounds = Field(description="g: tps of one client.")
    serial: Bounds = Field(description="a: the part that is done one after the other, a share.")
    mutual: Bounds = Field(description="b: what clients cost each other; 0: the throughput falls nowhere.")
    peak_clients: Bounds = Field(description="Clients with the largest throughput; None: it falls nowhere.")
    highest: Bounds = Field(description="The largest tps within the tested numbers of clients.")
    tps: list[Bounds] = Field(description="The curve at each tested number of clients.")
    misfit: float = Field(description="Root of the mean square distance of the means from the curve, in ln tps.")
    noise: float = Field(description="Standard deviation of a block's ln tps about the means.")
    fits: bool = Field(
        description="Whether the misfit is at most twice the noise; else the curve is not to be believed."
    )


class Scaling(Record):
    """An arm over six or more numbers of clients."""

    arm: str
    load_points: list[int] = Field(description="Indexes into load_points, by number of clients.")
    clients: list[int]
    blocks: int = Field(description="Blocks, or deployments, without a failed trial of the arm at these load points.")
    left_out: int = Field(description="Blocks with a failed trial: the curve is drawn without them.")
    tps: list[float] = Field(description="Geometric mean at each number of clients; empty without blocks.")
    law: Law | None = Field(description="None: too few blocks, the regime changes, or no law comes near.")
    verdict: Word | None = Field(None, description="Of the peak against the baseline's; None: the arm is the baseline.")
    difference: Estimate | None = Field(
        None,
        description="Relative difference of the largest tps within the tested numbers, by the rule P8 over blocks.",
    )
    claims: int = Field(description="Number of peaks that share the error of each look.")


class Cliff(Record):
    """A size behind which the throughput of an arm falls by 20% or more while the size doubles."""

    scale: Bounds
    change: float = Field(description="Relative change of tps from there to twice the size.")
    reads: list[str] | None = Field(
        description="Which reads per transaction begin to rise there, `buffers read` or `device reads`; empty: none, "
        "so the cause is another; None: reads are not known."
    )


class SizeCurve(Record):
    """An arm over six or more sizes of its data."""

    arm: str
    load_points: list[int] = Field(description="Indexes into load_points, by scale.")
    scales: list[int]
    blocks: int = Field(description="Blocks, or deployments, without a failed trial of the arm at these load points.")
    left_out: int = Field(description="Blocks with a failed trial: the line is drawn without them.")
    line: list[tuple[float, float]] = Field(
        description="Scale and tps of the broken line at its ends, knots and sizes; empty: too few blocks, or the "
        "regime changes."
    )
    cliffs: list[Cliff]
    between: list[int] = Field(description="Scales that would narrow the first cliff, by bisection; empty: none.")
    verdict: Word | None = Field(
        None, description="Of the cliff's size against the baseline's: better is larger. None: not both have one."
    )
    difference: Estimate | None = Field(
        None, description="Relative difference of the size of the steepest fall, by the rule P8 over blocks."
    )
    claims: int = Field(description="Number of cliffs that share the error of each look.")


@dataclass(frozen=True)
class Comparison:
    """What one series of blocks says so far of an arm against the baseline: all that the loop of a study asks."""

    arm: str
    regime: When | Side | None
    decided: bool
    """Whether the rule has decided it at some look."""
    so_far: Estimate | None
    """Relative difference over all blocks so far, with the interval of a study that ends now; None before the first."""
    at_look: Estimate | None
    """The difference that the verdict shows, with the sequential interval of its look; None before the first look."""

    @property
    def name(self) -> str:
        """`off`, or of a part `off, before the change`."""
        return f"{self.arm}, {PARTS[self.regime]}" if self.regime else self.arm


class PlannedLook(Record):
    """A line of the table of looks."""

    blocks: int = Field(description="Or pairs of deployments, where those are the unit.")
    alpha: float
    reached: bool
    primary_possible: bool = Field(description="Whether so many blocks can decide a primary claim at all.")
    secondary_possible: bool = Field(description="The same for the claims per load point.")


JUDGED_BLOCKS = {"voids", "noisy_blocks"}
"""Keys of versions that judged blocks by canaries, and had notes on them; absent when there were none."""


class StudyResult(Record):
    """verdict.json: everything that the report says about the measurements, reproducible from the files bit for bit.

    The statistics compute it without `sentences`, `notes`, `withheld`, `findings` and `moved`, which the report adds.
    """

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
    sentences: list[str] = Field([], description="The verdict, one sentence for each arm but the baseline.")
    notes: list[str] = Field([], description="What a reader has to know beside the verdict.")
    withheld: list[str] = Field([], description="Why the verdict is withheld, if it is.")
    findings: list[Finding] = Field([], description="The audit's findings, the gravest first.")
    primary: list[Claim]
    by_load_point: list[Claim]
    levels: list[Level]
    failures: list[Failures]
    failures_lead: list[str] = Field(
        description="Arms whose failures are so many or so different that they come first."
    )
    failed_trials: list[FailedTrial]
    steadiness: list[Steadiness] = Field(description="Slow trends in the trials whose regime does not change.")
    regimes: list[CellRegimes] = added(
        [], "Load points at which some trial did not keep one level; empty: none did, or none was long enough."
    )
    looks: list[PlannedLook]
    left: dict[str, int] = added({}, "Arms that have left, all their claims being decided: after how many blocks.")
    deployments: int = added(1, "Given servers of one product that each arm names.")
    interruptions: list[Interruption] = added([], "Trials that a person ended; run again, and counted nowhere else.")
    costs: list[Cost] = added([], "What a committed transaction cost; empty: not known.")
    moved: list[str] = added([], "Which costs moved with a decided difference, in words.")
    carry_over: list[CarryOver] = added([], "Of an interleaved study: what arms leave behind for the next slice.")
    carry_over_shifts: list[CarryOverShift] = added([], "Of an interleaved study: what that does to each comparison.")

    criteria: list[Criterion] = added([], "Of a study on tasks: the table of criteria.")
    curve: list[CurvePoint] = added([], "At a rate: the percentiles that stand. They describe, and are no verdicts.")
    metrics: list[MetricClaim] = added([], "Of a study that declares metrics: the claims on them.")
    statements: list[StatementClaim] = added([], "Of a replay: the templates that take a share of the time.")

    scaling: list[Scaling] = added([], "Of six or more numbers of clients: the scalability law of each arm.")
    cliffs: list[SizeCurve] = added([], "Of six or more scales: where the throughput of each arm falls.")

    where: WhereItRan | None = added(None, "Which machine did what; None: everything ran on the lab's machine.")

    @model_validator(mode="before")
    @classmethod
    def _without_judged_blocks(cls, stored: Any) -> Any:
        return {key: stored[key] for key in stored if key not in JUDGED_BLOCKS} if isinstance(stored, dict) else stored

    @property
    def exit_status(self) -> int:
        """0: no regression; 1: an arm is worse than the baseline by more than the margin excludes; 2: no verdict.

        Worse in one regime is worse.
        """
        if any(part.verdict == "worse" and not part.within_margin for claim in self.primary for part in claim.read):
            return 1
        return 2 if any(claim.verdict in ("undecided", "withheld") for claim in self.primary) else 0

    def claims(self, arm: str) -> list[Claim]:
        """The claims per load point of one arm, in the order of the load points."""
        return [claim for claim in self.by_load_point if claim.arm == arm]
