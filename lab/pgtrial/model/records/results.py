"""Types for the content of verdict.json. Differences are shares (0.41: 41% faster), times are in seconds, latencies in
microseconds."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, model_validator

from pgtrial.model.records import FORMAT, Record, added
from pgtrial.model.records.claims import Claim, Estimate, Word, exit_status_of
from pgtrial.model.records.facts import Finding
from pgtrial.model.records.interruptions import Interruption
from pgtrial.model.records.load_point import LoadPoint
from pgtrial.model.records.sweeps import Scaling, SizeCurve
from pgtrial.model.records.trial import Shape, TrialRegime
from pgtrial.model.records.where_it_ran import WhereItRan


class Spread(Record):
    """The median and the range of a quantity over the blocks."""

    median: float
    lowest: float
    highest: float


class Level(Record):
    """The performance of one arm at one load point, where each trial counts once. It is descriptive, since comparisons
    are made within blocks."""

    arm: str
    load_point: int
    trials: int = Field(description="The number of trials with a result.")
    failed_trials: int
    tps: Spread | None = Field(
        description="The goodput, which is the number of committed transactions per second; for a study of "
        "capacity, the capacity."
    )
    tps_low: float | None = Field(
        description="The lower end of the interval of the median tps by order statistics, at least 95%. It needs "
        "6 blocks."
    )
    tps_high: float | None
    tps_before: Spread | None = added(
        None,
        "The tps before the regime changes, if it does. `tps` is then None, because an average across the "
        "change describes neither level.",
    )
    tps_after: Spread | None = added(None, "The tps after the change, if the trials kept a level then.")
    latency_us: dict[str, Spread | None] = Field(
        description="The mean, p50, p90, p95, p99 and p99.9 of the trials. A percentile is None if a trial has "
        "fewer than 100 slower transactions."
    )
    quality: Spread | None = added(None, "The quality of the answers, such as the recall, if a pack measures one.")


class StatementErrors(Record):
    """Errors of a replay's statements with one SQLSTATE on one arm, beside the recorded ones, over all its trials."""

    template: int | None = Field(
        description="The number of the template; None for later statements, of any template, in transactions "
        "that an error had aborted (25P02)."
    )
    text: str = Field(description="The text of the template; empty if there is none.")
    sqlstate: str
    recorded: int = Field(description="The number of errors that occurred as recorded.")
    new: int = Field(description="The number of errors that were not recorded.")
    gone: int = Field(description="The number of recorded errors that did not occur.")
    consequences: int = Field(
        description="The number of later statements in the same transactions that failed with 25P02 and had not "
        "failed when they were recorded."
    )
    gone_consequences: int = Field(
        description="The number of later statements that failed with 25P02 when they were recorded, and did not "
        "fail now."
    )


class Failures(Record):
    """The failures of one arm, over all its trials."""

    arm: str
    trials: int
    failed_trials: int
    transactions: int = Field(description="The number of committed transactions.")
    failed_transactions: int
    share: float = Field(description="The share of failures: failed / (failed + committed) transactions.")
    by_kind: dict[str, int] = Field(description="The failed transactions by SQLSTATE or kind.")
    aborted_clients: int
    statements: list[StatementErrors] = added(
        [], "The statements of a replay with errors. Those with errors that were not recorded come first."
    )


class Steadiness(Record):
    """The steadiness of an arm: whether its tps still changed within the measured part."""

    arm: str
    state: Literal["steady", "rising", "falling", "unknown"]
    trend: float | None = Field(
        description="The change from the start to the end of the measured part, as a share: the median over the blocks."
    )
    blocks: int
    rising: int = Field(description="The number of blocks with a trend above 1%.")
    falling: int = Field(description="The number of blocks with a trend below -1%.")


class CellRegimes(Record):
    """The regimes of one arm at one load point, over its trials."""

    arm: str
    load_point: int
    trials: int = Field(description="The number of trials that are long enough to detect a regime.")
    shapes: dict[Shape, int] = Field(description="The number of trials of each class.")
    changes: bool = Field(description="True if so many trials change that no average across the change is given.")
    before: Spread | None = Field(description="The tps before the first change, in the trials that change.")
    after: Spread | None = Field(description="The tps after the last change, in the trials that kept a level then.")
    changed_s: Spread | None = Field(description="The second of the first change.")
    changed_committed: Spread | None = Field(
        description="The number of transactions committed up to the change. Burst credits are used up by work "
        "and not by time."
    )
    settled_s: Spread | None = Field(description="The second from which the last level was kept.")
    not_flat: list[TrialRegime]


class FailedTrial(Record):
    """A trial that failed, and how the analysis treats it."""

    index: int
    block: int
    arm: str
    load_point: int
    reason: str
    void: bool = Field(
        description="True if the other arm of the comparison failed there too, so that the block does not count "
        "for this pair."
    )


class Cost(Record):
    """The cost of a committed transaction on an arm: that of the median trial, and the difference to the baseline by
    blocks."""

    what: str = Field(description="The name of the cost, such as `WAL` or `server CPU`.")
    unit: str = Field(description="The unit: `us`, `bytes`, `% of updates`, or empty for a count.")
    arm: str
    load_point: int | None = Field(
        description="The index of the load point in load_points; None for the mean of the ratios over all of them."
    )
    trials: int
    median: float | None = Field(
        description="The cost for each committed transaction; None for the mean over load points."
    )
    low: float | None = Field(
        description="The lower end of the interval of the median by order statistics. It needs 6 trials."
    )
    high: float | None
    blocks: int = Field(description="The number of blocks on which the difference rests.")
    difference: Estimate | None = Field(
        description="Cost of the arm / cost of the baseline - 1, by the rule of the study, at the last look. "
        "None for the baseline, before the first look, and if the cost is almost zero."
    )


class PlanDifference(Record):
    """A statement of the load whose plan on an arm differs from the plan on the baseline."""

    statement: str = Field(description="The text of the statement without values, or the name of a query of a suite.")
    arm: str
    baseline: str
    at_baseline: str = Field(
        description="The first node of the baseline's plan in which the plans differ. If one arm has a plan for "
        "all values and the other one a plan for the values of each execution, the text begins with "
        "the kind of plan."
    )
    at_arm: str


class CarryOver(Record):
    """The speed of an arm in slices that follow another arm's slice, relative to its speed among its own slices
    alone."""

    arm: str
    preceding: str = Field(description="The arm of the slice before.")
    load_point: int
    blocks: int = Field(description="The number of blocks on which the difference rests.")
    difference: Estimate | None = Field(
        description="The relative difference of the arm's speed by the rule of the study, at the last look. If "
        "it is negative, the arm is slower after the other arm. None before the first look."
    )


class CarryOverShift(Record):
    """How much carry-over between slices shifts a comparison: its effect on the speed of the arm, relative to its
    effect on the speed of the baseline."""

    arm: str
    baseline: str
    load_point: int | None = Field(
        description="The index of the load point in load_points; None for the mean over all of them."
    )
    blocks: int = Field(description="The number of blocks on which the difference rests.")
    difference: Estimate | None = Field(
        description="The shift by the rule P8, at the last look. If it is positive, the arm appears faster than "
        "it would without carry-over. None before the first look."
    )


class Criterion(Record):
    """A row of the table of criteria in a comparison on tasks: the values of both arms, and which arm wins by the
    study's rule."""

    what: str = Field(
        description="The name of the criterion: failures, shortest, longest, mean, median, under 5 s, within 0.1 "
        "s, 1 s, 10 s."
    )
    unit: Literal["s", "tasks"]
    better: Literal["less", "more"]
    arm: str
    baseline: str
    primary: bool = Field(description="True if it is the primary claim of the study; the others are secondary.")
    values: dict[str, float | None] = Field(
        description="The value of the median trial, by arm; for failures the sum over all trials. None if it is "
        "not known."
    )
    verdict: Word
    within_margin: bool = Field(
        description="True if the whole interval lies within the margin, whatever the verdict is."
    )
    by: Literal["ratio", "difference"]
    difference: Estimate | None = Field(
        description="How much better the arm is: for times the relative difference of speeds, for numbers of "
        "tasks the difference as a share of all tasks. None before the first look."
    )
    claims: int = Field(description="The number of claims that share the error of each look.")
    blocks: int

    @property
    def winner(self) -> str:
        """Returns the better arm, or in words why there is none."""
        words = {"equivalent": "no difference", "withheld": "no verdict", "undecided": "undecided"}
        return words.get(self.verdict) or (self.arm if self.verdict == "better" else self.baseline)


class MetricClaim(Record):
    """A claim on a metric that the study declares."""

    metric: str = Field(description="The metric, as the study names it: `p99`.")
    unit: str = Field(
        description="The unit of its values, such as `us`, or the one that the study gives; empty for none."
    )
    better: Literal["more", "less"]
    arm: str
    baseline: str
    primary: bool = Field(description="True if it is the primary claim; the others are secondary.")
    values: dict[str, float | None] = Field(
        description="The value of the median trial, by arm; empty with several load points. None if it is not known."
    )
    verdict: Word
    within_margin: bool = Field(
        description="True if the whole interval lies within the margin, whatever the verdict is."
    )
    difference: Estimate | None = Field(
        description="The relative difference: of speeds for tps, response and time, and of the values for other "
        "metrics. None before the first look."
    )
    claims: int = Field(description="The number of claims that share the error of each look.")
    blocks: int
    withheld: str | None = added(None, "The reason for which a secondary claim does not stand.")


class CurvePoint(Record):
    """A percentile of an arm's response times against the baseline's, at a rate."""

    percentile: str
    arm: str
    baseline: str
    load_point: int = Field(description="The index of the load point in load_points.")
    difference: Estimate | None = Field(
        description="The relative difference of the values, by the rule of the study, at the last look; None "
        "before the first look."
    )
    claims: int = Field(description="The number of percentiles that share the error of each look.")
    blocks: int


class StatementClaim(Record):
    """The statements of one template in a replay: the times that they take on both arms, and whether the arm is
    slower."""

    template: int = Field(description="The number of the template in the capture.")
    text: str
    arm: str
    baseline: str
    statements: int = Field(description="The number of statements in the median trial of both arms.")
    share: dict[str, float] = Field(description="The share of the time of all statements in the median trial, by arm.")
    mean_us: dict[str, float] = Field(description="The mean time of a statement in the median trial, by arm.")
    verdict: Word
    within_margin: bool = Field(
        description="True if the whole interval lies within the margin, whatever the verdict is."
    )
    difference: Estimate | None = Field(
        description="The relative difference of speed, by the rule of the study; None before the first look."
    )
    claims: int = Field(description="The number of claims that share the error of each look.")
    blocks: int

    @property
    def is_slower(self) -> bool:
        """True if the arm is slower, and its interval does not lie wholly within the margin."""
        return self.verdict == "worse" and not self.within_margin


class FailureClaim(Record):
    """A claim on whether an arm fails a larger share of its transactions than the baseline. It is the second primary
    claim on the arm."""

    arm: str
    baseline: str
    shares: dict[str, float] = Field(description="The failed transactions as a share of those that ended, by arm.")
    verdict: Word = Field(
        description="`worse` if the arm fails more, `better` if it fails less, otherwise `undecided`."
    )
    difference: Estimate | None = Field(
        description="The share of the arm minus the share of the baseline in a block; None before the first look."
    )
    claims: int = Field(description="The number of claims that share the error of each look.")
    blocks: int


class QueryClaim(Record):
    """A claim on one query of a suite, or on the geometric mean over all queries: the times on both arms, and whether
    they differ."""

    query: str | None = Field(
        description="The name of the query; None for all queries together, which is the primary claim."
    )
    arm: str
    baseline: str
    time_us: dict[str, float | None] = Field(
        description="The time in the median trial, by arm; None if it is not known of any trial."
    )
    over_limit: dict[str, int] = Field(
        description="The number of runs that were cancelled at the limit, over all trials, by arm."
    )
    failed: dict[str, int] = Field(description="The number of runs that ended with an error, by arm.")
    verdict: Word
    within_margin: bool = Field(
        description="True if the whole interval lies within the margin, whatever the verdict is."
    )
    difference: Estimate | None = Field(
        description="The relative difference of speed, by the rule of the study; None before the first look."
    )
    claims: int = Field(description="The number of claims that share the error of each look.")
    blocks: int
    more_blocks: int | None = added(
        None,
        "For an undecided query, a forecast of the number of further blocks that would decide it; None if it "
        "is not known.",
    )

    @property
    def is_slower(self) -> bool:
        """True if the arm is slower, and its interval does not lie wholly within the margin."""
        return self.verdict == "worse" and not self.within_margin


class PlannedLook(Record):
    """A row of the report's table of looks."""

    blocks: int = Field(description="The number of blocks, or of pairs of deployments if these are the unit.")
    alpha: float
    reached: bool
    primary_possible: bool = Field(description="True if this number of blocks can decide a primary claim at all.")
    secondary_possible: bool = Field(description="True if this number of blocks can decide a claim on a load point.")


JUDGED_BLOCKS = {"voids", "noisy_blocks"}
"""The keys that versions which judged blocks by canaries wrote to verdict.json. They are dropped when such a file is
read."""


class StudyResult(Record):
    """verdict.json: everything that the report says about the measurements, reproducible from the files bit for bit.

    The statistics compute it without `sentences`, `notes`, `withheld`, `findings` and `moved`, which the report adds.
    """

    format: int = FORMAT
    name: str
    pgtrial: str = Field(description="The version of pgtrial that planned the study.")
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
    block_s: float = Field(description="The wall time of one block with all trials and phases, in seconds.")
    identical_arms: bool = Field(
        description="True if the study declares no difference between the arms (an A/A study)."
    )
    sentences: list[str] = Field([], description="The verdict, with a sentence for each arm except the baseline.")
    notes: list[str] = Field([], description="Sentences that a reader has to know in addition to the verdict.")
    withheld: list[str] = Field([], description="The reasons for which the verdict is withheld; empty if it is not.")
    findings: list[Finding] = Field([], description="The findings of the audit, the most serious one first.")
    primary: list[Claim]
    by_load_point: list[Claim]
    levels: list[Level]
    failures: list[Failures]
    failure_claims: list[FailureClaim] = added(
        [], "The claims on failures, for each comparison in which a transaction failed."
    )
    failures_lead: list[str] = Field(
        description="The arms whose failures are so many or so different that the report shows them first."
    )
    failed_trials: list[FailedTrial]
    steadiness: list[Steadiness] = Field(description="Slow trends in the trials whose regime does not change.")
    regimes: list[CellRegimes] = added(
        [], "The load points at which a trial did not keep one level; empty if all did, or if no trial was long enough."
    )
    looks: list[PlannedLook]
    left: dict[str, int] = added(
        {},
        "The arms that have left because all their claims were decided, each with the number of blocks after "
        "which it left.",
    )
    deployments: int = added(1, "The number of given servers of one product that each arm names.")
    interruptions: list[Interruption] = added(
        [], "The trials that a person interrupted. They were run again, and count nowhere else."
    )
    costs: list[Cost] = added([], "The costs of a committed transaction; empty if they are not known.")
    plans: list[PlanDifference] = added([], "The statements of the load whose plans differ between arms.")
    moved: list[str] = added([], "The costs that differ by a decided amount, in words.")
    carry_over: list[CarryOver] = added(
        [], "The effect of each arm's slices on the next slice, in an interleaved study."
    )
    carry_over_shifts: list[CarryOverShift] = added(
        [], "The effect of carry-over on each comparison, in an interleaved study."
    )

    criteria: list[Criterion] = added([], "The table of criteria, in a study of tasks.")
    curve: list[CurvePoint] = added(
        [], "The percentiles at a rate that have enough transactions. They are a description and have no verdicts."
    )
    metrics: list[MetricClaim] = added([], "The claims on the metrics that the study declares.")
    statements: list[StatementClaim] = added(
        [], "The claims on statement templates that take a share of the time, in a study of a replay."
    )
    queries: list[QueryClaim] = added(
        [], "The claim on the geometric mean and then those on each query, in a study of a suite."
    )

    scaling: list[Scaling] = added([], "The scalability law of each arm, if there are six or more numbers of clients.")
    cliffs: list[SizeCurve] = added(
        [], "The sizes at which the throughput of each arm falls, if there are six or more scales."
    )

    where: WhereItRan | None = added(
        None, "The machines and what each of them did; None if everything ran on the machine of pgtrial."
    )

    @model_validator(mode="before")
    @classmethod
    def _without_judged_blocks(cls, stored: Any) -> Any:
        return {key: stored[key] for key in stored if key not in JUDGED_BLOCKS} if isinstance(stored, dict) else stored

    @property
    def exit_status(self) -> int:
        """Returns the exit status. 0: no regression; 1: an arm is worse than the baseline by more than the margin
        excludes, or it fails a larger share of its transactions; 2: no verdict.

        An arm that is worse in one regime counts as worse. A study of one arm alone has 0 if each of its levels has an
        interval, and 2 if one has none or a finding withholds the result.
        """
        if not self.primary:
            stands = not any(finding.severity == "withhold" for finding in self.findings)
            return 0 if stands and all(level.tps_low is not None for level in self.levels) else 2
        return 1 if any(claim.verdict == "worse" for claim in self.failure_claims) else exit_status_of(self.primary)

    def claims(self, arm: str) -> list[Claim]:
        """Returns one arm's claims per load point, in the order of the load points."""
        return [claim for claim in self.by_load_point if claim.arm == arm]
