"""Types for what pgtrial remembers about a machine from study to study: the certificate, which is the result of the
machine's self-test, and the noise, which is the spread of the differences between blocks."""

from __future__ import annotations

from pydantic import ConfigDict, Field

from pgtrial.model.records import Record, added
from pgtrial.model.records.claims import Estimate, Word
from pgtrial.model.records.trial import Amount


class Planted(Record):
    """An arm of a self-test that pgtrial makes slower by a known share of its throughput."""

    arm: str
    slower_by: float = Field(
        gt=0, lt=1, description="The share of the baseline's throughput by which the arm is slower."
    )
    work: int = Field(
        ge=1,
        description="The number of rows that the server additionally counts in each transaction, which makes the "
        "arm slower by `slower_by`.",
    )
    low: float | None = added(
        None,
        "The lower end of the 95% interval of `slower_by`, as the calibration of the self-test measured it.",
    )
    high: float | None = added(
        None, "The upper end of the 95% interval of `slower_by`, as the calibration of the self-test measured it."
    )


class Selftest(Record):
    """The content of selftest.json: how the arms of a self-test differ. One arm is equal to the baseline, and others
    are made slower by known shares."""

    format: int = 1
    same: str = Field(description="The name of the arm that is equal to the baseline.")
    planted: list[Planted]
    calibrated_work: int = Field(
        description="The number of rows that were counted in each transaction when the server was calibrated."
    )
    calibrated_slower_by: float = Field(
        description="The share of the throughput that counting `calibrated_work` rows cost."
    )


class StudyRun(Record):
    """Consecutive blocks of a self-test that pgtrial evaluates as if they were a study of two arms, from its first
    block to the interim analysis that decided it."""

    blocks: int
    seconds: float = Field(
        description="The wall time in seconds that the trials of the two arms took in the blocks of this study."
    )
    verdict: Word


class Found(Record):
    """The result of a self-test about a planted difference, which is an arm that pgtrial made slower by a known
    share."""

    planted: Planted
    difference: Estimate = Field(
        description="The difference over all blocks, with a 95% interval. The interval is exact for one "
        "evaluation of all blocks; it is not the sequential interval of a study, which is evaluated "
        "several times."
    )
    studies: list[StudyRun]
    gap: Estimate | None = added(
        None,
        "How far the measured slowdown is from the planted one: the ratio of the two shares of "
        "throughput, minus 1, with a 95% interval that includes the uncertainty of both. None if "
        "the calibration has no interval.",
    )

    @property
    def agrees(self) -> bool | None:
        """True if the measured slowdown agrees, within its interval, with the slowdown that pgtrial planted; None if
        the calibration has no interval."""
        if self.gap is None or self.gap.low is None or self.gap.high is None:
            return None
        return self.gap.low <= 0 <= self.gap.high

    @property
    def hits(self) -> list[StudyRun]:
        """Returns the studies that found the arm to be worse."""
        return [study for study in self.studies if study.verdict == "worse"]


class Reach(Record):
    """The number of blocks and the time that studies of two arms need to find a difference with a power of 80%."""

    difference: float
    blocks: int
    seconds: float


class Certificate(Record):
    """The content of certificate.json in a study directory: the result of the self-test of a machine.

    It holds no connection strings and no passwords.
    """

    format: int = 1
    created: str = Field(description="The time at which the self-test was planned: UTC, ISO 8601.")
    pgtrial: str
    host: str = Field(description="The name of the machine on which pgtrial ran.")
    cpus: int
    servers: list[str] = Field(
        description="The hosts of the servers, sorted; empty if all servers ran on the machine of pgtrial."
    )
    postgres: str | None = Field(description="The version of the servers; None if it is not known.")
    load: str = Field(description="The workload, data, clients and rate of the load point.")
    slice_s: float | None = Field(
        description="The length in seconds of the slices in which trials alternated; None if there were no slices."
    )
    shared_server: bool = Field(description="True if all arms were sessions of one server.")
    warmup_s: float
    duration_s: float = Field(description="The length of the measured part of a trial, in seconds.")
    blocks: int
    block_s: float = Field(description="The mean wall time of a block of two arms, in seconds.")
    spread: float = Field(
        description="The robust standard deviation of the log-ratio of a block, for the arm in which it is largest."
    )
    reach: list[Reach]
    same: list[StudyRun] = Field(description="The studies that compared equal arms (A/A studies).")
    alike: Estimate | None = added(None, "The difference of the two equal arms, with a 95% interval over all blocks.")
    relabelled: int = added(
        0,
        "Only in certificates of November 2026 and before: how many random orders pgtrial drew again "
        "for the recorded blocks.",
    )
    relabelled_false: int = added(
        0,
        "Only in certificates of November 2026 and before: with how many of the random orders that "
        "were drawn again the statistical rule calls the equal arms different.",
    )
    planted: list[Found]

    @property
    def false(self) -> list[StudyRun]:
        """Returns the A/A studies whose verdict is wrong, since it calls the equal arms different."""
        return [study for study in self.same if study.verdict in ("better", "worse")]


class Certificates(Record):
    """The content of certificates.json in the state directory: the latest certificate for each set of servers."""

    format: int = 1
    certificates: list[Certificate] = Field([])


FEWEST_BLOCKS = 4
"""The smallest number of blocks from which the noise of a study is known well enough to be recorded."""


class Conditions(Record):
    """The conditions on which the noise of a block depends. The noise of one study predicts the noise of another study
    only under the same conditions."""

    lab_host: str = Field(description="The name of the machine on which pgtrial ran.")
    servers: list[str] = Field(
        description="The hosts of the servers, sorted; empty if all servers ran on the machine of pgtrial."
    )
    fleet: str | None = Field(
        None,
        description="The address of the fleet, the machines that made the load together; None if the machine of "
        "pgtrial made it.",
    )
    load_points: list[str] = Field(
        description="The workload, data, clients, rate and protocol of each load point, sorted."
    )
    arms: int
    duration_s: float = Field(
        ge=0,
        allow_inf_nan=False,
        description="The length of the measured part of a trial in seconds; 0 if the measured part ends when all "
        "tasks of the load point are done.",
    )
    slice_s: float | None = added(
        None, "The length in seconds of the slices in which trials alternate; None if each trial runs by itself."
    )
    metric: str | None = added(
        None, "The declared metric of the primary claims; None for the usual measure of the load."
    )
    own: str | None = added(
        None,
        "The SHA-256 of the user's own parts of the study: scripts, client programs, data and "
        "servers that the user runs; None if the study has no such parts.",
    )


class Noise(Record):
    """The noise of one study, which is the spread of the differences between its blocks. Keys that other versions of
    pgtrial wrote are ignored."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    study: str
    created: str = Field(description="The time at which the study was planned: UTC, ISO 8601.")
    conditions: Conditions
    blocks: int = Field(ge=FEWEST_BLOCKS)
    spread: float = Field(
        ge=0,
        le=20,
        allow_inf_nan=False,
        description="The robust standard deviation of the log-ratio of a block, as the mean over the load points. "
        "If the study has several comparisons, it is the largest of their values.",
    )
    within: Amount | None = added(
        None,
        "The part of `spread` that comes from changes of speed within trials; None if the trials do not "
        "alternate in slices, or if the study has not ended.",
    )
    overhead_s: Amount | None = added(
        None, "The part of a block's wall time that is not load, in seconds; None if it is not known."
    )


class NoiseRecord(Record):
    """The content of noise.json in the state directory: the latest studies, in the order in which their noise became
    known."""

    format: int = 1
    studies: list[Noise] = Field([])


class Precision(Record):
    """The differences and margins that a plan can establish with a probability of 80%, as shares."""

    difference: float = Field(
        description="The smallest difference that gets a verdict by the end of the plan with a probability of 80%."
    )
    margin: float = Field(
        description="The smallest margin within which equal arms are shown to be equivalent by the end of the "
        "plan, with a probability of 80%."
    )
    blocks: int = Field(description="The number of blocks at the last planned look (interim analysis) of the plan.")
