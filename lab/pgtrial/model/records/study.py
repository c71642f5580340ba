"""What a study directory holds, as types: the plan, the trials and the facts. All times in seconds, latencies in us."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from pgtrial.model.records import Record, added
from pgtrial.model.records.course import EarlierTry, Extension, Interleaving
from pgtrial.model.records.packs import PackLoad
from pgtrial.model.records.tasks import TaskLoad, TaskSummary
from pgtrial.model.records.where_it_ran import MachineShare, ServerHost
from pgtrial.model.units import slug

FORMAT = 1
"""Version of the directory's format; a reader refuses a higher one."""


class LoadPoint(Record):
    """One cell of workload x scale x clients x rate; tests of sysbench have the size of their tables for the scale."""

    workload: str = Field(
        description="A built-in workload, the file name of a script of the study's own, or a pack with its mix."
    )
    scale: int = Field(description="Of pgbench's tables or a pack's; 1 for tests of sysbench.")
    sysbench: bool = added(False, "Whether it is a test of sysbench.")
    tables: int | None = added(None, "Tables of a test of sysbench; None: its own.")
    table_size: int | None = added(None, "Rows of each of them; None: the test's own.")
    tasks: TaskLoad | None = added(None, "Of the workload app-tasks: what runs.")
    pack: PackLoad | None = added(None, "Of a workload that is a pack: what runs.")
    clients: int = Field(description="Of tasks the connections that there may be.")
    protocol: str
    rate: float | None = added(None, "Transactions per second; None: a closed loop.")

    @property
    def label(self) -> str:
        """For people: `tpcb-like, scale 20, 8 clients`, with a rate `tpcb-like, scale 20, 8 clients, 500/s`."""
        if self.tasks is not None:
            return f"{self.load}, {self.tasks.label}"
        rate = f", {self.rate:,.10g}/s" if self.rate is not None else ""
        return f"{self.load}, {self.clients} client{'s' if self.clients != 1 else ''}{rate}"

    @property
    def load(self) -> str:
        """Workload and data, for people: `tpcb-like, scale 20`, `oltp_write_only, 250 x 450,000 rows`."""
        if self.tasks is not None:
            return f"{self.workload}, {self.tasks.threads_in_table:,} x {self.tasks.rows:,} rows"
        if not self.sysbench:
            return f"{self.workload}, scale {self.scale}"
        if self.tables is None and self.table_size is None:
            return self.workload
        tables = "" if self.tables is None else f"{self.tables:,} table{'s' if self.tables != 1 else ''}"
        if self.table_size is None:
            return f"{self.workload}, {tables}"
        return f"{self.workload}, {f'{self.tables:,} x ' if self.tables else ''}{self.table_size:,} rows"

    @property
    def slug(self) -> str:
        """For directory names: `tpcb-like-s20-c8`, with a rate `tpcb-like-s20-c8-r500`."""
        if self.tasks is not None:
            return f"{slug(self.workload)}-{self.tasks.apps}x{self.tasks.tasks}-p{self.tasks.pool}"
        rate = f"-r{self.rate:.10g}" if self.rate is not None else ""
        if self.sysbench:
            size = "x".join(str(part) for part in (self.tables, self.table_size) if part is not None)
            return f"{slug(self.workload)}{size and f'-t{size}'}-c{self.clients}{rate}"
        return f"{slug(self.workload)}-s{self.scale}-c{self.clients}{rate}"


Measure = Literal["goodput", "mean response time", "mean response time of tasks"]


def measure_of(points: Sequence[LoadPoint]) -> Measure:
    """What claims compare: how much is done, or where that is fixed, how soon."""
    if any(point.tasks is not None for point in points):
        return "mean response time of tasks"
    return "goodput" if all(point.rate is None for point in points) else "mean response time"


DrawnPlace = Annotated[
    int | None,
    Field(
        exclude_if=lambda place: place is None,
        description="The place that was drawn, from 0: which of those that the arm's storage lists, which of the kept "
        "copies of the data, or which of the arm's deployments; None: nothing to draw.",
    ),
]


class PlannedTrial(Record):
    """One trial of the plan. `index` counts from 0 in the order of execution, `block` from 0."""

    index: int
    block: int
    load_point: int = Field(description="Index into Plan.load_points.")
    arm: str
    seed: int = Field(description="Random seed of the engine: the same for all arms at this load point of this block.")
    place: DrawnPlace = None


class Plan(Record):
    """plan.json: frozen before the first trial; an extension adds to it and changes nothing.

    The order is drawn for `max_blocks` blocks at once.
    """

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
    drop_decided: bool = added(False, "Whether an arm leaves at the look at which all its claims are decided.")
    allow_busy_client: bool = Field(False, description="Whether trials in which the client was a limit may decide.")
    warmup_s: float
    duration_s: float
    trial_estimate_s: float = Field(description="Expected wall time of one trial, all phases.")
    declared: dict[str, list[str]] = Field(description="Per arm, the keys in which the study says that it differs.")
    scope: str = Field(description="What the verdict speaks of, e.g. `this host, data directory swapped every trial`.")
    deployments: int = added(
        1,
        "Given servers of one product that each arm names. With several, all trials of a block run on "
        "those of one number, their place.",
    )
    hosts: dict[str, list[ServerHost]] = added(
        {}, "Per arm where its server is, one for each deployment; empty where all are on the lab's machine."
    )
    scripts: dict[str, str] = Field({}, description="SHA-256 of each script of the study's own, by its name.")
    interleaving: Interleaving | None = added(None, "How trials alternate; None: each runs by itself.")
    earlier: list[EarlierTry] = added(
        [], "Studies of the same question in the same results directory, the oldest first."
    )
    left: dict[str, int] = added({}, "Arms that have left: after how many blocks, all their claims being decided.")
    extensions: list[Extension] = added([], "How the study went on after its end, in order.")
    trials: list[PlannedTrial]

    @property
    def shares_server(self) -> bool:
        """Whether all arms are sessions of one server."""
        return self.interleaving is not None and self.interleaving.shared_server

    @property
    def server_hosts(self) -> list[str]:
        """Hosts of the servers, sorted; empty: all on the lab's machine."""
        return sorted({host.label for hosts in self.hosts.values() for host in hosts})

    @property
    def end(self) -> int:
        """Blocks after which the study ends at the latest: an extension may ask for fewer than are planned."""
        return self.extensions[-1].end if self.extensions else self.max_blocks

    @property
    def wanted(self) -> list[PlannedTrial]:
        """The planned trials without those of arms that have left before."""
        return [each for each in self.trials if each.block < self.left.get(each.arm, self.max_blocks)]

    @property
    def due(self) -> list[PlannedTrial]:
        """The wanted trials up to the end."""
        return [planned for planned in self.wanted if planned.block < self.end]

    @property
    def measure(self) -> Measure:
        """What the study's claims compare."""
        return measure_of(self.load_points)


Count = Annotated[int, Field(ge=0)]
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]
"""What was counted or measured is not negative, and is a number."""


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


class ServiceTime(Record):
    """Time of one trial's committed transactions from their actual start, microseconds: the server's part."""

    p50: float
    p90: float
    p95: float
    p99: float
    p999: float


class Phase(Record):
    """What the engine measured in one phase (warm-up or measured part)."""

    duration_s: Amount = Field(
        description="Its length; of interleaved trials without the others' slices: the mean time a client was active."
    )
    transactions: Count = Field(description="Committed transactions.")
    failures: dict[str, Count] = Field(description="Failed transactions by SQLSTATE or kind.")
    tps: Amount = Field(description="Committed transactions per second of the phase: the goodput.")
    latency_us: Latency | None = Field(description="None when nothing was committed.")
    service_us: ServiceTime | None = added(
        None, "With a rate, beside latency_us, which then is the response time; None for trials older than this."
    )


class TransactionKind(Record):
    """One of several transactions of a load in one trial: the measured part, and what was under way at its end."""

    name: str
    transactions: Count = Field(description="Those that ended as they were to.")
    failures: dict[str, Count] = Field(description="By SQLSTATE or kind.")
    latency_us: Latency | None = Field(
        description="None when none ended, or where a machine of a fleet has no histogram."
    )


class ClientWarning(Record):
    """What the engine has to say against its own measurement."""

    kind: str = Field(description="`client-busy` or `schedule-lag`.")
    message: str = Field(description="One sentence.")


class ClientUse(Record):
    """What the engine itself used in the measured part."""

    cpu_user_s: Amount
    cpu_system_s: Amount
    busiest_thread_share: float = Field(description="CPU time of the busiest thread / wall time.")
    cpu_per_transaction_us: float | None = Field(
        None,
        description="CPU time of the load threads by transaction; None: nothing was measured, or the trial is older "
        "than the engine's self-check.",
    )
    warnings: list[ClientWarning] = Field(
        [], description="Why the client may have been a limit; empty too for trials older than the engine's self-check."
    )


class FailureSpan(Record):
    """When transactions of a trial failed in one way; second by second it is in engine.jsonl."""

    phase: Literal["warmup", "measure"]
    kind: str = Field(description="SQLSTATE or kind.")
    first_s: Count = Field(description="The first second of the phase with such a failure.")
    last_s: Count
    failures: Count


def _with_offset(text: str) -> str:
    if datetime.fromisoformat(text).tzinfo is None:
        raise ValueError("a moment needs its offset from UTC")
    return text


Moment = Annotated[str, AfterValidator(_with_offset), Field(description="UTC, ISO 8601.")]


class Trial(Record):
    """trial.json: the outcome of one trial. A failed trial is kept, and counts as the worst possible rank."""

    format: int = FORMAT
    index: int
    block: int
    arm: str
    load_point: LoadPoint
    seed: int
    place: DrawnPlace = None
    status: Literal["completed", "failed"]
    reason: str | None = Field(None, description="Why it failed, one sentence.")
    started: Moment
    ended: Moment
    phases_s: dict[str, float] = Field(
        description="Wall time of restore, start, warm, load, collect, stop; with a pack of check and measure."
    )
    checkpoint_s: float | None = Field(None, description="Duration of the lab's CHECKPOINT at half of the warm-up.")
    warmup: Phase | None = None
    measured: Phase | None = None
    tasks: TaskSummary | None = added(None, "Of the workload app-tasks.")
    kinds: list[TransactionKind] = added([], "Of the workload order-entry: each of its transactions.")
    quality: float | None = added(None, "What measure.sql of a pack found after the load, e.g. the recall.")
    table_created_s: float | None = added(
        None, "How long the workload's table took to be made, once for all trials on the same data."
    )
    aborted_clients: Count = 0
    client: ClientUse | None = None
    server_deltas: dict[str, dict[str, Amount]] = Field(
        {},
        description="Counter changes over the measured part by view: database, wal, checkpointer, bgwriter, "
        "io, maintenance (of autovacuum), host (of the lab's own machine) and sampler (what observing itself took).",
    )
    relations_before: dict[str, dict[str, float]] = Field(
        {}, description="As relations, before the load; empty for trials older than this record."
    )
    relations: dict[str, dict[str, float]] = Field(
        {}, description="After the run, per table: bytes_table, bytes_indexes, live_tuples, dead_tuples."
    )
    huge_pages: dict[str, dict[str, int]] = added(
        {}, "Of an arm with huge pages: the kernel's counters `before`, `during` and `after` the trial."
    )
    round_trip_us: float | None = added(
        None, "Median of 20 round trips (SELECT 1) before the load; None for trials older than this record."
    )
    start_failures: list[str] = added(
        [],
        "What the server said at each attempt at which it did not start. After one the second succeeded; after two "
        "the trial has failed.",
    )
    not_permitted: list[str] = added([], "What the arm's server does not permit the lab, and the trial did without.")
    notes: list[str] = Field([], description="What a reader should know, e.g. a checkpoint inside the measured part.")
    machines: list[MachineShare] = added([], "Of a load made by a fleet: each machine's part.")
    failure_spans: list[FailureSpan] = added([], "When transactions failed, by kind, in the order of time.")
    server_log_tail: list[str] = added(
        [],
        "What the server's log said during the load of PANIC, FATAL and processes that ended: the last "
        "lines, no statements.",
    )

    @property
    def never_started(self) -> bool:
        """Whether it failed because its server did not start."""
        return self.status == "failed" and len(self.start_failures) > 1


class SliceRow(Record):
    """One row of slices.parquet: one slice of an interleaved trial. Times in seconds since the start of the load.

    The start is the same for all trials that alternate.
    """

    phase: Literal["warmup", "measure"]
    round: int = Field(description="Number of the round, from 0 at the start of the load: each arm has a slice in it.")
    planned_begin_s: float
    planned_end_s: float
    begin_s: float | None = Field(description="When the first client was active; None: none was.")
    end_s: float | None = Field(description="When the last client was active: what overran the slice is counted in it.")
    client_s: float = Field(description="How long clients were active, the sum over the clients.")
    transactions: int
    failures: int
    mean_us: float | None


class TimelineRow(Record):
    """One row of timeline.parquet: one second of one phase; of interleaved trials of the arm's own time."""

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
    deployment: int | None = added(
        None, "Which of the arm's deployments, from 0, in facts/ARM/NUMBER.json; None: it has no others."
    )
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
