"""What disturbed a study, as types: canaries and the judgement of a block, blocks set aside, interruptions."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from pgtrial.model.records import FORMAT, Moment, Record


class CanaryReading(Record):
    """What one canary measured: a fixed piece of work that has nothing to do with any arm. None: not known here."""

    taken: str = Field(description="UTC, ISO 8601.")
    cpu_per_s: float | None = Field(None, description="MiB hashed by all CPUs together, a second.")
    flushes_per_s: float | None = Field(None, description="Flushes of 8 kB to the volume of the state directory.")
    select1_per_s: float | None = Field(None, description="Transactions of one client of the engine's null server.")
    mhz: float | None = Field(None, description="Mean frequency of the CPUs.")
    steal_share: float | None = Field(
        None, description="CPU time stolen since the canary before, of all; None for the first since the lab started."
    )
    pressure: dict[str, float] = Field(
        {},
        description="Share of the time since the canary before for which some process waited for cpu, io or memory, or "
        "all did (memory_full).",
    )


class Deviation(Record):
    """One probe of one canary that is far from the study's usual."""

    canary: int
    probe: str
    value: float
    usual: float = Field(description="Median of all canaries until then.")
    tolerated: float = Field(description="Deviation from there that would have been tolerated: a factor, less one.")


class Judgement(Record):
    """What the canaries before and after a block say about it; made once, when the block ends."""

    block: int
    attempt: int = Field(description="From 1; a voided block is run again.")
    before: int = Field(description="Number of the canary before the block; the one after it carries the judgement.")
    outcome: Literal["kept", "void", "noisy"] = Field(
        description="noisy: off as well, but kept, since as many blocks as are allowed are void already."
    )
    off: list[Deviation] = Field([], description="Probes that are far from the usual.")
    reason: str = Field("", description="Why it is off, one sentence.")
    spent_s: float = Field(0.0, description="Wall time of the block's trials.")
    failed: dict[str, int] = Field({}, description="Failed trials of the block by arm, noted after the decision.")


class Canary(Record):
    """canaries/NNNN.json: one canary, and the judgement of the block that it ends."""

    format: int = FORMAT
    number: int
    role: Literal["reference", "before", "after"]
    next_block: int | None = Field(description="The block that may begin after it; None: all blocks are complete.")
    reading: CanaryReading
    judged: Judgement | None = None


class DisturbedBlock(Record):
    """A block for which the canary was off."""

    block: int
    attempt: int = Field(description="From 1; a voided block is run again with the same order.")
    reason: str
    failed: dict[str, int] = Field(description="Failed trials in it, by arm.")


class Void(Record):
    """voided/bNN-K/void.json: why a block was set aside, beside its trials."""

    format: int = FORMAT
    reason: str
    judgement: Judgement
    canaries: list[Canary] = Field(description="Before and after the block.")


class InterruptedTrial(Record):
    """A trial that was under way. It is run again, and does not count."""

    index: int
    block: int
    arm: str
    load_point: int = Field(description="Index into Plan.load_points.")
    under_way_s: float | None = Field(None, description="Since its start; None: the lab was killed.")
    tps: float | None = Field(None, description="In the measured part until then; None: it had not begun, or unknown.")


class Interruption(Record):
    """interruptions/0001.json: one interruption; of trials that alternate all were under way."""

    format: int = FORMAT
    number: int = Field(description="From 1, in the order of time.")
    noted: Moment
    how: str = Field(description="SIGINT (Ctrl-C), SIGTERM, SIGHUP, or `killed`, which the next start noticed.")
    trials: list[InterruptedTrial]
