"""What a study directory holds, as types: the plan, the trials and the facts. All times in seconds, latencies in us."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

FORMAT = 1
"""Version of the directory's format; a reader refuses a higher one."""


class Record(BaseModel):
    """Base: unknown keys are an error, so that a damaged or foreign file is noticed."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class LoadPoint(Record):
    """One cell of workload x scale x clients."""

    workload: str
    scale: int
    clients: int
    protocol: str

    @property
    def label(self) -> str:
        """For people: `tpcb-like, scale 20, 8 clients`."""
        return f"{self.workload}, scale {self.scale}, {self.clients} client{'s' if self.clients != 1 else ''}"

    @property
    def slug(self) -> str:
        """For directory names: `tpcb-like-s20-c8`."""
        return f"{self.workload}-s{self.scale}-c{self.clients}"


class PlannedTrial(Record):
    """One trial of the plan. `index` counts from 0 in the order of execution, `block` from 0."""

    index: int
    block: int
    load_point: int = Field(description="Index into Plan.load_points.")
    arm: str
    seed: int = Field(description="Random seed of the engine: the same for all arms at this load point of this block.")


class Plan(Record):
    """plan.json: frozen before the first trial. The order is drawn for `max_blocks` blocks at once."""

    format: int = FORMAT
    name: str
    created: str = Field(description="UTC, ISO 8601.")
    pgtrial: str = Field(description="Version of the lab that planned.")
    seed: int
    baseline: str
    arms: list[str]
    load_points: list[LoadPoint]
    max_blocks: int
    looks: list[int] = Field(description="Planned looks up to max_blocks, in blocks.")
    margin: float
    stop_early: bool
    warmup_s: float
    duration_s: float
    trial_estimate_s: float = Field(description="Expected wall time of one trial, all phases.")
    declared: dict[str, list[str]] = Field(description="Per arm, the keys in which the study says that it differs.")
    scope: str = Field(description="What the verdict speaks of, e.g. `this host, data directory swapped every trial`.")
    trials: list[PlannedTrial]


class Latency(Record):
    """Latency of one trial's committed transactions, microseconds."""

    mean: float
    stddev: float
    min: float
    p50: float
    p90: float
    p95: float
    p99: float
    p999: float
    max: float


class Phase(Record):
    """What the engine measured in one phase (warm-up or measured part)."""

    duration_s: float
    transactions: int = Field(description="Committed transactions.")
    failures: dict[str, int] = Field(description="Failed transactions by SQLSTATE or kind.")
    tps: float = Field(description="Committed transactions per second of the phase: the goodput.")
    latency_us: Latency | None = Field(description="None when nothing was committed.")


class ClientUse(Record):
    """What the engine itself used in the measured part."""

    cpu_user_s: float
    cpu_system_s: float
    busiest_thread_share: float = Field(description="CPU time of the busiest thread / wall time.")


class Trial(Record):
    """trial.json: the outcome of one trial. A failed trial is kept, and counts as the worst possible rank."""

    format: int = FORMAT
    index: int
    block: int
    arm: str
    load_point: LoadPoint
    seed: int
    status: Literal["completed", "failed"]
    reason: str | None = Field(None, description="Why it failed, one sentence.")
    started: str = Field(description="UTC, ISO 8601.")
    ended: str
    phases_s: dict[str, float] = Field(description="Wall time of restore, start, warm, load, collect, stop.")
    checkpoint_s: float | None = Field(None, description="Duration of the lab's CHECKPOINT at half of the warm-up.")
    warmup: Phase | None = None
    measured: Phase | None = None
    aborted_clients: int = 0
    client: ClientUse | None = None
    server_deltas: dict[str, dict[str, float]] = Field(
        {}, description="Counter changes over the measured part by view: database, wal, checkpointer, bgwriter."
    )
    relations: dict[str, dict[str, float]] = Field(
        {}, description="After the run, per table: bytes_table, bytes_indexes, live_tuples, dead_tuples."
    )
    notes: list[str] = Field([], description="What a reader should know, e.g. a checkpoint inside the measured part.")


class TimelineRow(Record):
    """One row of timeline.parquet: one second of one phase."""

    phase: Literal["warmup", "measure"]
    second: int
    transactions: int
    failures: int
    mean_us: float | None
    p50_us: float | None
    p95_us: float | None
    p99_us: float | None
    max_us: float | None


class Facts(Record):
    """facts/ARM.json: what an arm is. Keys are dotted names grouped by room, values plain JSON."""

    format: int = FORMAT
    arm: str
    collected: str
    facts: dict[str, dict[str, Any]] = Field(
        description="group -> name -> value; groups: cpu, memory, os, storage, server, settings, client. "
        "An unknown value is null, never guessed."
    )


class Finding(Record):
    """One word of the audit."""

    rule: str
    severity: Literal["info", "warning", "withhold"]
    arms: list[str]
    message: str = Field(description="What was found, one sentence.")
    cure: str = Field(description="What to do about it, one sentence.")


class Audit(Record):
    """facts/audit.json: what the facts say about fairness."""

    format: int = FORMAT
    findings: list[Finding]
