"""Types for the content of verdict.json. Differences are shares (0.41 means 41% faster), times are in seconds, and
latencies in microseconds."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, model_validator

from pgtrial.model.records import FORMAT, Record, added
from pgtrial.model.records.claims import Claim, Estimate, Word, exit_status_of
from pgtrial.model.records.facts import Finding
from pgtrial.model.records.instructions import InstructionComparison
from pgtrial.model.records.interruptions import Interruption
from pgtrial.model.records.load_point import LoadPoint
from pgtrial.model.records.screens import Screen
from pgtrial.model.records.sweeps import Scaling, SizeCurve
from pgtrial.model.records.trial import Shape, TrialRegime
from pgtrial.model.records.where_it_ran import WhereItRan


class Spread(Record):
    """The median and the range of a quantity over the blocks."""

    median: float
    lowest: float
    highest: float


class Level(Record):
    """The performance of one arm at one load point. Each trial counts once. The level only describes the arm:
    comparisons between arms are made within blocks."""

    arm: str
    load_point: int
    trials: int = Field(description="The number of the arm's trials that have a result at this load point.")
    failed_trials: int
    tps: Spread | None = Field(
        description="The goodput, which is the number of committed transactions per second; for a study of "
        "capacity, the capacity."
    )
    tps_low: float | None = Field(
        description="The lower end of the interval that contains the median tps with a probability of at least "
        "95%, by order statistics; None for fewer than 6 blocks."
    )
    tps_high: float | None
    tps_before: Spread | None = added(
        None,
        "The tps before the speed changes within trials, if it does. `tps` is then None, because an "
        "average across the change describes neither level.",
    )
    tps_after: Spread | None = added(
        None, "The tps after the speed has changed within trials, if the trials then kept a level."
    )
    latency_us: dict[str, Spread | None] = Field(
        description="The mean, p50, p90, p95, p99 and p99.9 of the latencies, each as the median and the range "
        "over the trials. A percentile is None if a trial has fewer than 100 transactions that are "
        "slower."
    )
    quality: Spread | None = added(None, "The quality of the answers, such as the recall, if a pack measures one.")


class StatementErrors(Record):
    """The errors with one SQLSTATE that statements of a replay had on one arm, over all its trials, compared with the
    recorded errors."""

    template: int | None = Field(
        description="The number of the template (the recorded statements that differ only in their values); "
        "None for later statements, of any template, in transactions that an error had aborted "
        "(25P02)."
    )
    text: str = Field(description="The text of the template's statements; empty if `template` is None.")
    sqlstate: str
    recorded: int = Field(
        description="The number of the template's errors with this SQLSTATE that occurred as recorded."
    )
    new: int = Field(description="The number of the template's errors with this SQLSTATE that had not been recorded.")
    gone: int = Field(
        description="The number of the template's recorded errors with this SQLSTATE that did not occur in the replay."
    )
    consequences: int = Field(
        description="The number of later statements in transactions which these errors aborted that failed with "
        "25P02 and had not failed when they were recorded."
    )
    gone_consequences: int = Field(
        description="The number of later statements that failed with 25P02 when they were recorded and did not "
        "fail in the replay, because the recorded error did not occur."
    )


class Failures(Record):
    """The failures of one arm, over all its trials."""

    arm: str
    trials: int
    failed_trials: int
    transactions: int = Field(description="The number of the arm's committed transactions.")
    failed_transactions: int
    share: float = Field(
        description="The arm's share of failures: failed transactions / (failed + committed transactions)."
    )
    by_kind: dict[str, int] = Field(
        description="The number of the arm's failed transactions, by SQLSTATE or kind of failure."
    )
    aborted_clients: int
    statements: list[StatementErrors] = added(
        [], "The statements of a replay that had errors. Statements with errors that had not been recorded come first."
    )


class Steadiness(Record):
    """The steadiness of an arm, which says whether its tps still changed within the measured part."""

    arm: str
    state: Literal["steady", "rising", "falling", "unknown"]
    trend: float | None = Field(
        description="The relative change of the tps from the start to the end of the measured part, as a share: "
        "the median over the blocks."
    )
    blocks: int
    rising: int = Field(
        description="The number of blocks in which the tps rose by more than 1% from the start to the end of "
        "the measured part."
    )
    falling: int = Field(
        description="The number of blocks in which the tps fell by more than 1% from the start to the end of "
        "the measured part."
    )


class CellRegimes(Record):
    """The levels of speed, called regimes, that one arm went through at one load point, over all its trials."""

    arm: str
    load_point: int
    trials: int = Field(
        description="The number of trials that are long enough to show a change of the speed from one level to another."
    )
    shapes: dict[Shape, int] = Field(
        description="The number of trials by the shape of their timelines, such as `flat` (one level) or "
        "`collapse` (the speed falls and stays low)."
    )
    changes: bool = Field(
        description="True if the speed changes from one level to another in so many trials that the report "
        "gives no average over whole trials."
    )
    before: Spread | None = Field(
        description="The tps before the first change of level, in the trials whose speed changes."
    )
    after: Spread | None = Field(description="The tps after the last change of level, in the trials that then kept it.")
    changed_s: Spread | None = Field(
        description="The time from the start of the measured part to the first change of level, in seconds."
    )
    changed_committed: Spread | None = Field(
        description="The number of transactions that were committed from the start of the measured part to the "
        "first change of level. A limit such as burst credits is used up by work, so that this "
        "number varies less than the time."
    )
    settled_s: Spread | None = Field(
        description="The time from the start of the measured part to the beginning of the last level, in seconds."
    )
    not_flat: list[TrialRegime]


class FailedTrial(Record):
    """A trial that failed, and how the statistics treat it."""

    index: int
    block: int
    arm: str
    load_point: int
    reason: str
    void: bool = Field(
        description="True if the trial of the other arm in the same block failed too, so that the block does not "
        "count for this pair of arms."
    )


class Cost(Record):
    """The cost of a committed transaction on an arm, such as bytes of WAL: the cost in the median trial, and the
    difference from the baseline, which is computed from the ratios within the blocks."""

    what: str = Field(description="The name of the cost, such as `WAL` or `server CPU`.")
    unit: str = Field(description="The unit: `us`, `bytes`, `% of updates`, or empty for a count.")
    arm: str
    load_point: int | None = Field(
        description="The index of the load point in load_points; None for the mean of the ratios over all load points."
    )
    trials: int
    median: float | None = Field(
        description="The cost of a committed transaction in the median trial; None if the row is about the mean "
        "over load points."
    )
    low: float | None = Field(
        description="The lower end of the 95% interval of the median, by order statistics; None for fewer than "
        "6 trials."
    )
    high: float | None
    blocks: int = Field(description="The number of blocks from which the difference is computed.")
    difference: Estimate | None = Field(
        description="Cost of the arm / cost of the baseline - 1, with the interval of the study's statistical "
        "rule, at the last look (interim analysis). None for the baseline, before the first look, "
        "and if the cost is almost zero."
    )


class PlanDifference(Record):
    """A statement of the load whose plan on an arm differs from its plan on the baseline."""

    statement: str = Field(description="The text of the statement without values, or the name of a query of a suite.")
    arm: str
    baseline: str
    at_baseline: str = Field(
        description="The first node of the baseline's plan that differs from the arm's plan. If one arm has a plan "
        "for all values (generic) and the other a plan for the values of each execution (custom), the text begins "
        "with the kind of plan."
    )
    at_arm: str


class CarryOver(Record):
    """The change that another arm's slice makes to the speed of an arm in the next slice, compared with the speed that
    the arm would have if only its own slices followed each other."""

    arm: str
    preceding: str = Field(description="The other arm, whose slice came before.")
    load_point: int
    blocks: int = Field(description="The number of blocks from which the difference is computed.")
    difference: Estimate | None = Field(
        description="The relative difference of the arm's speed, with the interval of the study's statistical "
        "rule, at the last look (interim analysis). If it is negative, the arm is slower after a "
        "slice of the other arm. None before the first look."
    )


class CarryOverShift(Record):
    """The shift of a comparison by the carry-over between slices: its effect on the speed of the arm, relative to its
    effect on the speed of the baseline."""

    arm: str
    baseline: str
    load_point: int | None = Field(
        description="The index of the load point in load_points; None for the mean over all load points."
    )
    blocks: int = Field(description="The number of blocks from which the shift is computed.")
    difference: Estimate | None = Field(
        description="The shift with the interval of the statistical rule P8, at the last look (interim "
        "analysis). If it is positive, the arm appears faster than it would without carry-over. "
        "None before the first look."
    )


class Criterion(Record):
    """A row of the table of criteria in a study of tasks: the values of both arms, and which arm is better by the
    study's rule."""

    what: str = Field(
        description="The name of the criterion: failures, shortest, longest, mean, median, under 5 s, within 0.1 s, "
        "1 s, 10 s."
    )
    unit: Literal["s", "tasks"]
    better: Literal["less", "more"]
    arm: str
    baseline: str
    primary: bool = Field(
        description="True if the criterion is the primary claim of the study; all other criteria are secondary."
    )
    values: dict[str, float | None] = Field(
        description="The value of the criterion in the median trial, by arm; for failures, the sum over all "
        "trials. None if the value is not known."
    )
    verdict: Word
    within_margin: bool = Field(
        description="True if the whole interval of the difference lies within the margin, whatever the verdict is."
    )
    by: Literal["ratio", "difference"]
    difference: Estimate | None = Field(
        description="By how much the arm is better than the baseline. For times, it is the relative difference "
        "of speeds; for numbers of tasks, the difference as a share of all tasks. None before the "
        "first look (interim analysis)."
    )
    claims: int = Field(description="The number of claims that share the error of each look (interim analysis).")
    blocks: int

    @property
    def winner(self) -> str:
        """Returns the name of the better arm, or the reason why neither arm is better."""
        words = {"equivalent": "no difference", "withheld": "no verdict", "undecided": "undecided"}
        return words.get(self.verdict) or (self.arm if self.verdict == "better" else self.baseline)


class MetricClaim(Record):
    """A claim on a metric that the study declares: the comparison of an arm with the baseline in this metric."""

    metric: str = Field(description="The name of the metric in the study file, such as `p99`.")
    unit: str = Field(
        description="The unit of the values, such as `us`, or the unit that the study gives to its own metric; "
        "empty if there is none."
    )
    better: Literal["more", "less"]
    arm: str
    baseline: str
    primary: bool = Field(description="True if this is the primary claim of the study; all other claims are secondary.")
    values: dict[str, float | None] = Field(
        description="The value of the metric in the median trial, by arm; empty if the study has several load "
        "points. None if the value is not known."
    )
    verdict: Word
    within_margin: bool = Field(
        description="True if the whole interval of the difference lies within the margin, whatever the verdict is."
    )
    difference: Estimate | None = Field(
        description="The relative difference: of speeds for the metrics tps, response and time, and of the "
        "values for other metrics. None before the first look (interim analysis)."
    )
    claims: int = Field(description="The number of claims that share the error of each look (interim analysis).")
    blocks: int
    withheld: str | None = added(None, "The reason why a secondary claim has no verdict.")


class CurvePoint(Record):
    """The difference between an arm and the baseline in one percentile of the response times, at one rate."""

    percentile: str
    arm: str
    baseline: str
    load_point: int = Field(description="The index of the load point in load_points, counted from 0.")
    difference: Estimate | None = Field(
        description="The relative difference of the values, with the interval of the study's statistical rule, "
        "at the last look (interim analysis); None before the first look."
    )
    claims: int = Field(description="The number of percentiles that share the error of each look (interim analysis).")
    blocks: int


class StatementClaim(Record):
    """A claim on the statements of one template (the statements of a replay that differ only in their values): how long
    they take on both arms, and whether the arm is slower."""

    template: int = Field(
        description="The number of the template (the recorded statements that differ only in their values) in "
        "the capture."
    )
    text: str
    arm: str
    baseline: str
    statements: int = Field(description="The number of statements of the template in the median trial of both arms.")
    share: dict[str, float] = Field(
        description="The template's share of the time of all statements in the median trial, by arm. A template "
        "stands for the statements that differ only in their values."
    )
    mean_us: dict[str, float] = Field(
        description="The mean time of one of the template's statements in the median trial, in microseconds, by arm."
    )
    verdict: Word
    within_margin: bool = Field(
        description="True if the whole interval of the difference lies within the margin, whatever the verdict is."
    )
    difference: Estimate | None = Field(
        description="The relative difference of speed, with the interval of the study's statistical rule; None "
        "before the first look (interim analysis)."
    )
    claims: int = Field(description="The number of claims that share the error of each look (interim analysis).")
    blocks: int

    @property
    def is_slower(self) -> bool:
        """True if the arm is slower and the interval of the difference does not lie wholly within the margin."""
        return self.verdict == "worse" and not self.within_margin


class FailureClaim(Record):
    """A claim on whether an arm fails a larger share of its transactions than the baseline. For each arm it is the
    second primary claim, next to the claim on speed."""

    arm: str
    baseline: str
    shares: dict[str, float] = Field(description="The share of its ended transactions that failed, by arm.")
    verdict: Word = Field(
        description="`worse` if the arm fails a larger share of its transactions than the baseline, `better` if "
        "it fails a smaller one, otherwise `undecided`."
    )
    difference: Estimate | None = Field(
        description="The share of the arm's transactions that failed in a block, minus that share of the "
        "baseline; None before the first look (interim analysis)."
    )
    claims: int = Field(description="The number of claims that share the error of each look (interim analysis).")
    blocks: int


class QueryClaim(Record):
    """A claim on one query of a suite, or on the geometric mean over all queries: how long they take on both arms, and
    whether the times differ."""

    query: str | None = Field(
        description="The name of the query; None for the primary claim, which is about the geometric mean over all "
        "queries."
    )
    arm: str
    baseline: str
    time_us: dict[str, float | None] = Field(
        description="The time of the query in the median trial in microseconds, by arm; None if no trial has a time."
    )
    over_limit: dict[str, int] = Field(
        description="The number of runs of the query that pgtrial cancelled because they exceeded the time "
        "limit, over all trials, by arm."
    )
    failed: dict[str, int] = Field(description="The number of runs of the query that ended with an error, by arm.")
    verdict: Word
    within_margin: bool = Field(
        description="True if the whole interval of the difference lies within the margin, whatever the verdict is."
    )
    difference: Estimate | None = Field(
        description="The relative difference of speed, with the interval of the study's statistical rule; None "
        "before the first look (interim analysis)."
    )
    claims: int = Field(description="The number of claims that share the error of each look (interim analysis).")
    blocks: int
    more_blocks: int | None = added(
        None,
        "For an undecided query, a forecast of the number of further blocks that would decide it; "
        "None if no forecast is possible.",
    )

    @property
    def is_slower(self) -> bool:
        """True if the arm is slower and the interval of the difference does not lie wholly within the margin."""
        return self.verdict == "worse" and not self.within_margin


class PlannedLook(Record):
    """A row of the report's table of looks. A look is an interim analysis: after this number of blocks, pgtrial decides
    whether there is a verdict."""

    blocks: int = Field(
        description="The number of blocks after which the look takes place. If claims count pairs of "
        "deployments (servers of one product) in place of blocks, it is the number of these pairs."
    )
    alpha: float
    reached: bool
    primary_possible: bool = Field(
        description="True if the number of blocks at this look (interim analysis) can decide a primary claim at all."
    )
    secondary_possible: bool = Field(
        description="True if the number of blocks at this look (interim analysis) can decide a claim on a "
        "single load point."
    )


JUDGED_BLOCKS = {"voids", "noisy_blocks"}
"""Keys that older versions of pgtrial wrote to verdict.json. They are dropped when such a file is read."""


class StudyResult(Record):
    """The content of verdict.json: everything that the report says about the measurements. pgtrial computes it again
    from the study's files with the same result, bit for bit.

    `pgtrial.verdict` computes everything except `sentences`, `notes` and `moved`, which the report adds.
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
    notes: list[str] = Field([], description="Sentences that a reader needs to know in addition to the verdict.")
    withheld: list[str] = Field([], description="The reasons why the verdict is withheld; empty if there is a verdict.")
    findings: list[Finding] = Field([], description="The findings of the audit, the most serious one first.")
    primary: list[Claim]
    by_load_point: list[Claim]
    levels: list[Level]
    failures: list[Failures]
    failure_claims: list[FailureClaim] = added(
        [], "The claims on failures, for each comparison in which a transaction failed."
    )
    failures_lead: list[str] = Field(
        description="The arms that have so many failures, or so different ones, that the report shows the failures "
        "first."
    )
    failed_trials: list[FailedTrial]
    steadiness: list[Steadiness] = Field(
        description="Slow trends of the speed within the measured part, in trials whose speed does not jump "
        "from one level to another."
    )
    regimes: list[CellRegimes] = added(
        [],
        "The load points at which a trial did not keep one level; empty if all trials kept one, or if "
        "no trial was long enough to tell.",
    )
    looks: list[PlannedLook]
    left: dict[str, int] = added(
        {},
        "The arms that pgtrial has stopped measuring because all their claims were decided, each with "
        "the number of blocks in which it was measured.",
    )
    deployments: int = added(1, "The number of servers of one product, called deployments, that each arm names.")
    interruptions: list[Interruption] = added(
        [],
        "The interruptions of the study. The trials that were in progress then were run again; "
        "their first measurements count nowhere.",
    )
    costs: list[Cost] = added([], "The costs of a committed transaction; empty if they are not known.")
    plans: list[PlanDifference] = added([], "The statements of the load whose plans differ between arms.")
    instructions: list[InstructionComparison] = added(
        [], "The counted CPU instructions of a transaction on each arm, in comparison with the baseline."
    )
    moved: list[str] = added(
        [], "Sentences on those costs of a transaction for which the statistical rule has decided that the arms differ."
    )
    carry_over: list[CarryOver] = added(
        [],
        "The carry-over of each arm in a study whose trials alternate in slices: how much a slice "
        "of this arm changes the speed of the next slice.",
    )
    carry_over_shifts: list[CarryOverShift] = added(
        [],
        "How much the carry-over between slices shifts each comparison, in a study whose trials alternate in slices.",
    )

    criteria: list[Criterion] = added(
        [],
        "In a study of tasks, the table that compares the arms by several criteria, such as "
        "failures and the longest response time.",
    )
    curve: list[CurvePoint] = added(
        [],
        "In a study at given rates, the differences between the arms in each percentile of the "
        "response time that has enough transactions. They have no verdicts.",
    )
    metrics: list[MetricClaim] = added([], "The claims on the metrics that the study declares.")
    statements: list[StatementClaim] = added(
        [],
        "In a study of a replay, the claims on templates (the statements that differ only in their "
        "values) that take a notable share of the time.",
    )
    queries: list[QueryClaim] = added(
        [], "In a study of a suite, the claim on the geometric mean, followed by the claims on each query."
    )

    screen: Screen | None = added(None, "In a screening study: the winning set-up, and factors that interact.")
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
        """Returns the exit status. 0: no regression; 1: an arm is worse than the baseline and a loss of the margin or
        more is not excluded, or the arm fails a larger share of its transactions; 2: no verdict.

        If the speed changes within trials, an arm that is worse either before or after the change counts as worse. For
        a study of a single arm, the status is 0 if the arm's tps has an interval at each load point; it is 2 if an
        interval is missing, or if a finding of the audit withholds the result. For a screening study, it is 0 if a
        factor is decided, otherwise 2.
        """
        if self.screen is not None:
            return 0 if any(claim.verdict in ("better", "worse") for claim in self.primary) else 2
        if not self.primary:
            stands = not any(finding.severity == "withhold" for finding in self.findings)
            return 0 if stands and all(level.tps_low is not None for level in self.levels) else 2
        return 1 if any(claim.verdict == "worse" for claim in self.failure_claims) else exit_status_of(self.primary)

    def claims(self, arm: str) -> list[Claim]:
        """Returns the claims on one arm at each load point, in the order of the load points."""
        return [claim for claim in self.by_load_point if claim.arm == arm]
