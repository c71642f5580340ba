"""Types for what pgtrial keeps about a machine from study to study: the certificate of its self-test, and its noise."""

from __future__ import annotations

from pydantic import ConfigDict, Field

from pgtrial.model.records import Record, added
from pgtrial.model.records.claims import Estimate, Word
from pgtrial.model.records.trial import Amount


class Planted(Record):
    """An arm that is made slower by a known share."""

    arm: str
    slower_by: float = Field(gt=0, lt=1, description="Share of the baseline's throughput that the arm lacks.")
    work: int = Field(ge=1, description="Rows that the server counts in each transaction, to be slower by that share.")
    low: float | None = added(None, "Lower end of the share that this work takes, with 95% by the calibration.")
    high: float | None = added(None, "Upper end of that share.")


class Selftest(Record):
    """selftest.json: how the arms of a self-test differ."""

    format: int = 1
    same: str = Field(description="The arm that is set up like the baseline.")
    planted: list[Planted]
    calibrated_work: int = Field(description="Rows counted in each transaction when the server was calibrated.")
    calibrated_slower_by: float = Field(description="Share of the throughput that this work took.")


class StudyRun(Record):
    """A study of two arms within the self-test: consecutive blocks, from the first to the look that decided."""

    blocks: int
    seconds: float = Field(description="Wall time of two arms in these blocks.")
    verdict: Word


class Found(Record):
    """The self-test's measurement of a planted difference."""

    planted: Planted
    difference: Estimate = Field(description="Of all blocks, with an exact 95% interval of these blocks alone.")
    studies: list[StudyRun]
    gap: Estimate | None = added(
        None, "Measured / planted - 1, with a 95% interval of both; None: the calibration has no interval."
    )

    @property
    def agrees(self) -> bool | None:
        """True if the interval of the measurement allows the planted difference; None if the calibration has no
        interval."""
        if self.gap is None or self.gap.low is None or self.gap.high is None:
            return None
        return self.gap.low <= 0 <= self.gap.high

    @property
    def hits(self) -> list[StudyRun]:
        """Returns the studies that called the arm worse."""
        return [study for study in self.studies if study.verdict == "worse"]


class Reach(Record):
    """The blocks and the time that studies of two arms need to find a difference with a power of 80%."""

    difference: float
    blocks: int
    seconds: float


class Certificate(Record):
    """certificate.json of a study: what the self-test of a machine found.

    It holds no connection strings and no passwords.
    """

    format: int = 1
    created: str = Field(description="When the self-test was planned: UTC, ISO 8601.")
    pgtrial: str
    host: str = Field(description="Name of the lab's machine.")
    cpus: int
    servers: list[str] = Field(description="Hosts of the servers, sorted; empty: all on the lab's machine.")
    postgres: str | None = Field(description="Version of the servers; None: not known.")
    load: str = Field(description="The load point.")
    slice_s: float | None = Field(description="Length of the slices in which trials alternate; None: no slices.")
    shared_server: bool = Field(description="Whether all arms were sessions of one server.")
    warmup_s: float
    duration_s: float = Field(description="Measured part of a trial, seconds.")
    blocks: int
    block_s: float = Field(description="Wall time of a block of two arms, mean.")
    spread: float = Field(description="Robust standard deviation of a block's log-ratio; of all arms the largest.")
    reach: list[Reach]
    same: list[StudyRun] = Field(description="A/A studies.")
    alike: Estimate | None = added(
        None, "Difference of the two arms that are alike, with a 95% interval of all blocks."
    )
    relabelled: int = added(
        0, "Orders drawn anew for the recorded blocks, in certificates of November 2026 and before."
    )
    relabelled_false: int = added(0, "Of these, orders under which the rule calls the arms different.")
    planted: list[Found]

    @property
    def false(self) -> list[StudyRun]:
        """Returns the A/A studies with a false verdict."""
        return [study for study in self.same if study.verdict in ("better", "worse")]


class Certificates(Record):
    """certificates.json of the state directory: the latest certificate for each set of servers."""

    format: int = 1
    certificates: list[Certificate] = Field([])


FEWEST_BLOCKS = 4
"""The fewest blocks from which the noise of a study is known well enough to be recorded."""


class Conditions(Record):
    """The conditions on which the noise of a block depends. Only studies under the same conditions predict each other's
    noise."""

    lab_host: str = Field(description="Name of the lab's machine.")
    servers: list[str] = Field(description="Hosts of the servers, sorted; empty: all on the lab's machine.")
    fleet: str | None = Field(None, description="Address of the fleet that makes the load; None: the lab's machine.")
    load_points: list[str] = Field(description="Workload, data, clients and rate of each, and its protocol; sorted.")
    arms: int
    duration_s: float = Field(
        ge=0, allow_inf_nan=False, description="Measured part of a trial; 0: as long as the load point's tasks take."
    )
    slice_s: float | None = added(None, "Length of the slices in which trials alternate; None: each runs by itself.")
    metric: str | None = added(None, "The declared metric of the primary claims; None: the measure of the load.")
    own: str | None = added(
        None,
        "SHA-256 of the study's own scripts, client programs, data and given servers; None: all are pgtrial's.",
    )


class Noise(Record):
    """The noise of one study. Keys of other versions are not read."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    study: str
    created: str = Field(description="When the study was planned: UTC, ISO 8601.")
    conditions: Conditions
    blocks: int = Field(ge=FEWEST_BLOCKS)
    spread: float = Field(
        ge=0,
        le=20,
        allow_inf_nan=False,
        description="Robust standard deviation of a block's log-ratio, the mean over the load points; of several "
        "comparisons the largest.",
    )
    within: Amount | None = added(
        None,
        "Of it, what comes from the seconds of its trials; None: they do not alternate, or the study has not ended.",
    )
    overhead_s: Amount | None = added(None, "Of a block's wall time, what is not load, seconds; None: not known.")


class NoiseRecord(Record):
    """noise.json of the state directory: the latest studies, in the order in which their noise became known."""

    format: int = 1
    studies: list[Noise] = Field([])


class Precision(Record):
    """The precision that a plan reaches with a probability of 80%, as shares."""

    difference: float = Field(description="The smallest difference that gets a verdict by the end of the plan.")
    margin: float = Field(description="The smallest margin that is established by then if the arms do not differ.")
    blocks: int = Field(description="Blocks at the last planned look.")
