"""Types for what is known about a trial: its outcome, tasks, seconds and slices, and the levels that it went
through."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import Field

from pgtrial.model.records import FORMAT, Moment, Record, added
from pgtrial.model.records.load_point import LoadPoint
from pgtrial.model.records.plan import DrawnLayout, DrawnPlace
from pgtrial.model.records.replay import ReplaySummary
from pgtrial.model.records.suite import SuiteSummary
from pgtrial.model.records.where_it_ran import MachineShare

Count = Annotated[int, Field(ge=0)]
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]
"""A measured amount: a finite number that is not negative."""

LONGEST_S = 2_000_000
"""The length of the longest phase that is read, seconds (23 days). Readers take memory for each second, which this
bounds."""


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
    """Times of one trial's committed transactions from their actual start, microseconds: the server's part of the
    response time."""

    p50: float
    p90: float
    p95: float
    p99: float
    p999: float


class Percentiles(Record):
    """Percentiles of all transactions of one trial, microseconds. Failed transactions count as slower than all
    committed ones.

    A percentile is None if it falls on a failed transaction.
    """

    p50: float | None
    p90: float | None
    p95: float | None
    p99: float | None
    p999: float | None


class Phase(Record):
    """The engine's measurements of one phase (warm-up or measured part)."""

    duration_s: Amount = Field(
        le=LONGEST_S,
        description="The length of the phase in seconds. In interleaved trials it is the mean time for which a "
        "client was active, without the slices of other arms.",
    )
    transactions: Count = Field(description="The number of committed transactions.")
    failures: dict[str, Count] = Field(description="The number of failed transactions by SQLSTATE or kind.")
    tps: Amount = Field(description="The goodput: committed transactions per second of the phase.")
    latency_us: Latency | None = Field(
        description="The latencies of committed transactions; None if nothing was committed."
    )
    service_us: ServiceTime | None = added(
        None,
        "The time from the actual start to the end, at a rate; latency_us is then the response time. None "
        "for trials that are older than this field.",
    )
    with_failures_us: Percentiles | None = added(
        None,
        "The percentiles in which failed transactions count too, for the measured part; None if nothing "
        "failed, or if they are not known.",
    )
    retries: Count | None = added(
        None, "The number of tries of transactions after the first one; None for trials that are older than this field."
    )
    statement_errors: Count | None = added(
        None,
        "For tests of sysbench, the number of statements that failed, whether or not the script of the test "
        "went on; None if it is not known.",
    )


class TransactionKind(Record):
    """One of several kinds of transaction in a load. It counts the measured part and the transactions in progress at
    its end."""

    name: str
    transactions: Count = Field(description="The number of transactions that ended as intended.")
    failures: dict[str, Count] = Field(description="The number of failed transactions by SQLSTATE or kind.")
    latency_us: Latency | None = Field(
        description="The latencies; None if no transaction ended, or if a machine of a fleet has no histogram."
    )


class ClientWarning(Record):
    """A warning of the engine about its own measurement."""

    kind: str = Field(description="The kind of the warning: `client-busy`, `schedule-lag` or `output-slow`.")
    message: str = Field(description="The warning as a sentence.")


class ClientUse(Record):
    """The resources that the engine itself used in the measured part."""

    cpu_user_s: Amount
    cpu_system_s: Amount
    busiest_thread_share: float = Field(description="The CPU time of the busiest thread divided by the wall time.")
    cpu_per_transaction_us: float | None = Field(
        None,
        description="The CPU time of the load threads for each transaction; None if nothing was measured, or if "
        "the trial is older than the self-check of the engine.",
    )
    warnings: list[ClientWarning] = Field(
        [],
        description="The reasons for which the engine may have been the bottleneck. It is also empty for trials "
        "that are older than the self-check of the engine.",
    )


class FailureSpan(Record):
    """The time span in which transactions of a trial failed in one way; engine.jsonl has the failures of each
    second."""

    phase: Literal["warmup", "measure"]
    kind: str = Field(description="The SQLSTATE or kind of the failure.")
    first_s: Count = Field(description="The first second of the phase with such a failure.")
    last_s: Count
    failures: Count


class TaskTimes(Record):
    """Times of tasks in one trial, microseconds."""

    mean: float
    min: float
    max: float
    median: float | None = Field(
        None,
        description="The median, which is exact for response times and has three digits otherwise; None if it is "
        "not known.",
    )
    p95: float | None = None


class TaskSummary(Record):
    """The outcome of a trial's tasks. Times are those of the completed tasks unless a field says otherwise."""

    planned: int
    completed: int
    failed: int
    failures: dict[str, int] = Field(
        description="The number of failed tasks by SQLSTATE or kind. `pool-timeout` means that a task got no "
        "connection in time."
    )
    unfinished: int = Field(
        description="The number of tasks that neither completed nor failed, because of an interrupt."
    )
    response_us: TaskTimes | None = Field(
        description="The time from the arrival to the end; None if no task completed."
    )
    queue_us: TaskTimes | None = Field(description="The time from the arrival to the connection.")
    service_us: TaskTimes | None = Field(description="The time from the connection to the end.")
    timeout_waited_us: TaskTimes | None = Field(
        description="The waiting time of tasks that got no connection; None if all got one."
    )
    failed_after_us: float | None = Field(
        description="The mean time from the arrival to the failure; None if no task failed."
    )
    under_5_s: int = Field(description="The number of tasks that completed in less than five seconds.")
    classes: dict[str, int] = Field(
        description="The number of completed tasks by response time. Each task is in one class: up_to_0.1_s, "
        "up_to_1_s, up_to_10_s or longer."
    )

    @property
    def mean_us(self) -> float | None:
        """Returns the mean response time of all tasks, microseconds, where a failed task counts with the time until it
        failed; None if no task ended."""
        done = self.response_us.mean * self.completed if self.response_us else 0.0
        lost = self.failed_after_us * self.failed if self.failed_after_us is not None else 0.0
        ended = self.completed + self.failed
        return (done + lost) / ended if ended else None

    def within(self, limit: Literal["0.1_s", "1_s", "10_s"]) -> int:
        """Returns the number of tasks that were completed within the limit."""
        names = ("up_to_0.1_s", "up_to_1_s", "up_to_10_s")
        return sum(self.classes[name] for name in names[: names.index(f"up_to_{limit}") + 1])


class JobSummary(Record):
    """The effects of a job on its server. The time of the job is the latency of the measured part."""

    wal_bytes: Amount | None = Field(
        description="The WAL that was written during the job; None if the role is not allowed to ask for it."
    )
    size_before_bytes: Amount = Field(description="The size of the database on disk before the job.")
    size_bytes: Amount | None = Field(
        description="The size of the database on disk after the job; None if it is not known."
    )
    peak_memory_bytes: Amount | None = Field(
        description="The largest memory of all processes of the server together, read four times a second, with "
        "shared memory counted once (PSS). None if the server is not on a Linux machine whose "
        "processes pgtrial can read."
    )
    beside: Phase | None = added(
        None,
        "The measurements of the load beside the job, from the start of the job until the load has caught "
        "up; None if there was no such load, or if it did not catch up.",
    )


class Probe(Record):
    """One open-loop run of a search for the capacity, at a rate of its own."""

    rate: float = Field(description="The intended rate, in transactions per second.")
    duration_s: Amount = Field(description="The length of the part that counts, in seconds.")
    tps: Amount = Field(description="The committed transactions per second.")
    transactions: Amount = Field(
        description="The number of transactions that committed or failed, or that had waited longer than the "
        "limit at the end."
    )
    slower: Amount = Field(
        description="The number of transactions that took longer than the limit from their scheduled start, "
        "including those that failed or still waited."
    )
    failed: Count
    waiting: Count = Field(
        description="The number of transactions at the end whose scheduled start had passed and that no client "
        "had begun."
    )
    at_percentile_us: float | None = Field(
        description="The response time at the percentile of the promise; None if the transaction at this place "
        "has no response time."
    )
    lag_p99_us: float | None = Field(description="The 99th percentile of the delay between scheduled and actual start.")
    kept: bool = Field(description="True if the promise was kept.")


PLAN_NODE = re.compile(r"\S|\s*->")
"""Matches the start of a line of EXPLAIN that names a plan node. The other lines are details of the node above them."""


class LoadStatement(Record):
    """A statement that a load sends, and its plan on the arm's server after the load."""

    text: str = Field(description="The text as it was sent, with its values or with `$1`.")
    plan: list[str] = Field(
        [],
        description="The lines of EXPLAIN, without costs, for the plan that the server uses, or for the generic "
        "plan if `chosen` is `unknown`. Empty if EXPLAIN does not accept the statement.",
    )
    chosen: Literal["literals", "custom", "generic", "unknown"] | None = added(
        None,
        "The way in which the server plans the statement: with the values in its text; for the values of "
        "each execution (custom plan); once for all values (generic plan); or unknown, if the values of its "
        "parameters are not known. None if the trial is older than this field, and the plan is the generic "
        "one for NULLs.",
    )
    hides_statements: bool = added(
        False,
        "True if the statement calls functions or fires triggers, whose statements have plans that EXPLAIN "
        "does not show.",
    )
    not_chosen: list[str] = added([], "The plan of the other kind, if `chosen` is a custom or a generic plan.")
    planning_ms: float | None = added(
        None,
        "The shortest time in which the server made a custom plan of the statement after the load; None if "
        "it made none.",
    )


class StatementRows(Record):
    """The calls and rows of a statement of the load, warm-up included, by the server's pg_stat_statements."""

    calls: Count
    rows: Count = Field(description="The number of rows that the statement returned or changed in all calls together.")


class Trial(Record):
    """trial.json: the outcome of one trial. A failed trial is kept, and counts as the worst possible rank."""

    format: int = FORMAT
    index: int
    block: int
    arm: str
    load_point: LoadPoint
    seed: int
    place: DrawnPlace = None
    layout: DrawnLayout = None
    status: Literal["completed", "failed"]
    reason: str | None = Field(
        None, description="The reason for which the trial failed, as a sentence; None if it did not fail."
    )
    started: Moment
    ended: Moment = Field(
        description="The time of the end by the clock as it was at the start, even if the clock was set in between."
    )
    phases_s: dict[str, float] = Field(
        description="The wall time in seconds of restore, start, statistics, warm, load, collect and stop; for a "
        "pack also of check and measure."
    )
    checkpoint_s: float | None = Field(
        None, description="The time that the CHECKPOINT in the middle of the warm-up took, in seconds."
    )
    warmup: Phase | None = None
    measured: Phase | None = None
    capacity: float | None = added(
        None,
        "The highest rate that keeps the promise, in transactions per second, in a study of capacity. "
        "`measured` is the probe that is nearest to it.",
    )
    probes: list[Probe] = added([], "The probes in the order of time, in a study of capacity.")
    tasks: TaskSummary | None = added(None, "The outcome of the tasks, if the workload is app-tasks.")
    kinds: list[TransactionKind] = added(
        [], "The measurements of each kind of transaction, if the workload is order-entry."
    )
    replay: ReplaySummary | None = added(None, "The outcome of the statements of a replay.")
    job: JobSummary | None = added(None, "The outcome of a job.")
    suite: SuiteSummary | None = added(None, "The outcome of the queries of a suite.")
    own_metrics: dict[str, float] = added({}, "The values of the metrics that the study itself defines, by name.")
    quality: float | None = added(
        None, "The number that measure.sql of a pack returned after the load, such as the recall."
    )
    table_created_s: float | None = added(
        None,
        "The time that it took to make the table of the workload, once for all trials on the same data, in seconds.",
    )
    aborted_clients: Count = 0
    client: ClientUse | None = None
    server_deltas: dict[str, dict[str, Amount]] = Field(
        {},
        description="The changes of counters over the measured part, by view: database, wal, checkpointer, "
        "bgwriter, io, tables (rows), maintenance (autovacuum), host (the machine of pgtrial) and "
        "sampler (the cost of observing).",
    )
    shared_deltas: dict[str, dict[str, Amount]] = added(
        {},
        "The changes of counters, like server_deltas, for all arms together if they are sessions of one "
        "server. They are in the trial of the arm that began first.",
    )
    statements: dict[str, LoadStatement] = added(
        {}, "The statements of the load by their text without values, in the trials of the first block."
    )
    plan_nodes: dict[str, list[str]] = added(
        {},
        "The nodes of the plan of each statement in this trial, by the key in `statements`, if the planner's "
        "statistics were drawn for the trial.",
    )
    statements_left_out: bool = added(
        False,
        "True if the load sends further statements, or may do so, because they are many or were found by a short run.",
    )
    statement_rows: dict[str, StatementRows] = added(
        {},
        "Calls and rows of the statements that took longest, by the first 100 characters of their texts "
        "without values, on servers with pg_stat_statements.",
    )
    sessions_seen: Count = added(
        0,
        "The number of times at which the last statement of a session of the load was read; 0 if the "
        "statements are those of the scripts.",
    )
    relations_before: dict[str, dict[str, float]] = Field(
        {}, description="The values of `relations` before the load; empty for trials that are older than this record."
    )
    relations: dict[str, dict[str, float]] = Field(
        {},
        description="The tables after the run. Each has bytes_table, bytes_indexes, live_tuples, dead_tuples and "
        "toast_tables, which is the number of tables of this name that have a TOAST table.",
    )
    huge_pages: dict[str, dict[str, int]] = added(
        {}, "The kernel's counters `before`, `during` and `after` the trial, for an arm with huge pages."
    )
    round_trip_us: float | None = added(
        None, "The median of 20 round trips (SELECT 1) before the load; None for trials that are older than this field."
    )
    start_failures: list[str] = added(
        [],
        "The server's messages for each attempt at which it did not start. If there is one, the second "
        "attempt succeeded; if there are two, the trial has failed.",
    )
    not_permitted: list[str] = added(
        [], "The actions that the arm's server did not permit to pgtrial, and that the trial left out."
    )
    notes: list[str] = Field(
        [], description="Sentences that a reader should know, such as one on a checkpoint in the measured part."
    )
    machines: list[MachineShare] = added([], "The share of each machine, if a fleet made the load.")
    program: str | None = added(None, "The name and version that the arm's client program reports: `psycopg 3.2.1`.")
    failure_spans: list[FailureSpan] = added(
        [], "The times at which transactions failed, by kind, in the order of time."
    )
    server_log_tail: list[str] = added(
        [],
        "The last lines of the server's log during the load about PANIC, FATAL and processes that ended. "
        "They contain no statements.",
    )

    @property
    def served(self) -> Phase | None:
        """Returns the measured part of the load whose response times are compared. For a job, that is the load that
        runs at the same time."""
        if self.load_point.kind.is_watched_beside:
            return self.job.beside if self.job is not None else None
        return self.measured

    @property
    def never_started(self) -> bool:
        """True if the trial failed because its server did not start."""
        return self.status == "failed" and len(self.start_failures) > 1


class SliceRow(Record):
    """One row of slices.parquet: one slice of an interleaved trial. Times in seconds since the start of the load.

    The start is the same for all trials that alternate.
    """

    phase: Literal["warmup", "measure"]
    round: int = Field(
        description="The number of the round, counted from 0 at the start of the load. Each arm has one slice in it."
    )
    planned_begin_s: float
    planned_end_s: float
    begin_s: float | None = Field(
        description="The time at which the first client became active; None if no client did."
    )
    end_s: float | None = Field(
        description="The time at which the last client stopped being active. It includes transactions that took "
        "longer than the slice."
    )
    client_s: float = Field(description="The sum over all clients of the time for which they were active, in seconds.")
    transactions: int
    failures: int
    mean_us: float | None


class TimelineRow(Record):
    """One row of timeline.parquet: one second of one phase. In interleaved trials these are seconds of the arm's own
    time."""

    phase: Literal["warmup", "measure"]
    second: int
    transactions: int
    failures: int
    mean_us: float | None
    p50_us: float | None
    p95_us: float | None
    p99_us: float | None
    max_us: float | None


Shape = Literal["flat", "warm-up", "slow-down", "collapse", "recovery", "cyclic", "no steady state"]
"""The class of a trial's timeline. Only `flat` timelines keep one level from start to end."""


class Segment(Record):
    """A part of a trial in which it kept one level. Seconds count from the start of the measured part."""

    start_s: int
    end_s: int
    tps: float = Field(description="The median tps of the seconds.")
    committed: int = Field(
        description="The number of transactions committed up to the end, which is the work done when the level changed."
    )


class Regime(Record):
    """The levels that one trial went through."""

    shape: Shape
    settled: bool = Field(description="True if the trial kept its last level.")
    segments: list[Segment]


class TrialRegime(Record):
    """A trial that did not keep one level."""

    index: int
    block: int
    regime: Regime
