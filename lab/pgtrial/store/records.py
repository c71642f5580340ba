"""What a study directory holds, as types: the plan, the trials and the facts. All times in seconds, latencies in us."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from pgtrial.store.files import slug

FORMAT = 1
"""Version of the directory's format; a reader refuses a higher one."""


class Record(BaseModel):
    """Base: unknown keys are an error, so that a damaged or foreign file is noticed."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class LoadPoint(Record):
    """One cell of workload x scale x clients x rate."""

    workload: str = Field(description="A built-in workload, or the file name of a script of the study's own.")
    scale: int
    clients: int
    protocol: str
    rate: float | None = Field(
        None, exclude_if=lambda rate: rate is None, description="Transactions per second; None: a closed loop."
    )

    @property
    def label(self) -> str:
        """For people: `tpcb-like, scale 20, 8 clients`, with a rate `tpcb-like, scale 20, 8 clients, 500/s`."""
        rate = f", {self.rate:,.10g}/s" if self.rate is not None else ""
        return f"{self.workload}, scale {self.scale}, {self.clients} client{'s' if self.clients != 1 else ''}{rate}"

    @property
    def slug(self) -> str:
        """For directory names: `tpcb-like-s20-c8`, with a rate `tpcb-like-s20-c8-r500`."""
        rate = f"-r{self.rate:.10g}" if self.rate is not None else ""
        return f"{slug(self.workload)}-s{self.scale}-c{self.clients}{rate}"


Measure = Literal["goodput", "mean response time"]


def measure_of(points: Sequence[LoadPoint]) -> Measure:
    """What claims compare: how much is done, or where the rate fixes that, how soon."""
    return "goodput" if all(point.rate is None for point in points) else "mean response time"


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
    allow_busy_client: bool = Field(False, description="Whether trials in which the client was a limit may decide.")
    warmup_s: float
    duration_s: float
    trial_estimate_s: float = Field(description="Expected wall time of one trial, all phases.")
    declared: dict[str, list[str]] = Field(description="Per arm, the keys in which the study says that it differs.")
    scope: str = Field(description="What the verdict speaks of, e.g. `this host, data directory swapped every trial`.")
    scripts: dict[str, str] = Field({}, description="SHA-256 of each script of the study's own, by its name.")
    trials: list[PlannedTrial]

    @property
    def measure(self) -> Measure:
        """What the study's claims compare."""
        return measure_of(self.load_points)


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


class ClientWarning(Record):
    """What the engine has to say against its own measurement."""

    kind: str = Field(description="`client-busy` or `schedule-lag`.")
    message: str = Field(description="One sentence.")


class ClientUse(Record):
    """What the engine itself used in the measured part."""

    cpu_user_s: float
    cpu_system_s: float
    busiest_thread_share: float = Field(description="CPU time of the busiest thread / wall time.")
    cpu_per_transaction_us: float | None = Field(
        None,
        description="CPU time of the load threads by transaction; None: nothing was measured, or the trial is older "
        "than the engine's self-check.",
    )
    warnings: list[ClientWarning] = Field(
        [], description="Why the client may have been a limit; empty too for trials older than the engine's self-check."
    )


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
        {},
        description="Counter changes over the measured part by view: database, wal, checkpointer, bgwriter, "
        "maintenance (of autovacuum) and host (seconds of the lab's own machine).",
    )
    relations_before: dict[str, dict[str, float]] = Field(
        {}, description="As relations, before the load; empty for trials older than this record."
    )
    relations: dict[str, dict[str, float]] = Field(
        {}, description="After the run, per table: bytes_table, bytes_indexes, live_tuples, dead_tuples."
    )
    huge_pages: dict[str, dict[str, int]] = Field(
        {},
        exclude_if=lambda pages: not pages,
        description="Of an arm with huge pages: the kernel's counters `before`, `during` and `after` the trial.",
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
        description="group -> name -> value; groups: hardware, cpu, memory, limits, os, storage, network, server, "
        "settings, defaults, sources, client, probes. An unknown value is null, never guessed."
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
