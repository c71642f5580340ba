"""What disturbed a study, as types: canaries and interruptions."""

from __future__ import annotations

from pydantic import ConfigDict, Field

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


class Canary(Record):
    """canaries/NNNN.json: one canary. What earlier versions judged by it is not read."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    format: int = FORMAT
    number: int
    next_block: int | None = Field(description="The block that begins after it; None: all blocks are complete.")
    reading: CanaryReading


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
