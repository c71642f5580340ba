"""Types for the results of a trial: its outcome, its tasks, seconds and slices, and the levels of speed that it went
through."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import Field

from pgtrial.model.records import FORMAT, Moment, Record, added
from pgtrial.model.records.load_point import LoadPoint
from pgtrial.model.records.plan import DrawnLayout, DrawnLevels, DrawnPlace
from pgtrial.model.records.replay import ReplaySummary
from pgtrial.model.records.suite import SuiteSummary
from pgtrial.model.records.where_it_ran import MachineShare

Count = Annotated[int, Field(ge=0)]
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]
"""A measured amount: a finite number that is not negative."""

LONGEST_S = 2_000_000
"""The longest phase in seconds (23 days) that pgtrial accepts when it reads a trial. It limits the memory that readers
use, since they store a value for each second."""


class Latency(Record):
    """The latencies of one trial's committed transactions, in microseconds."""

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
    """The times of one trial's committed transactions from their actual start to their end, in microseconds. This is
    the server's part of the response time."""

    p50: float
    p90: float
    p95: float
    p99: float
    p999: float


class Percentiles(Record):
    """Percentiles of the response times of all transactions of one trial, in microseconds. Failed transactions count as
    slower than all committed transactions.

    A percentile is None if it falls on a failed transaction.
    """

    p50: float | None
    p90: float | None
    p95: float | None
    p99: float | None
    p999: float | None


class Phase(Record):
    """The measurements of the load engine in one phase, which is the warm-up or the measured part of a trial."""

    duration_s: Amount = Field(
        le=LONGEST_S,
        description="The length of the phase in seconds. If trials alternate in slices, it is the mean time for "
        "which a client was active, without the slices of other arms.",
    )
    transactions: Count = Field(description="The number of committed transactions in the phase.")
    failures: dict[str, Count] = Field(
        description="The number of failed transactions in the phase, by SQLSTATE or kind of failure."
    )
    tps: Amount = Field(description="The goodput: committed transactions per second of the phase.")
    latency_us: Latency | None = Field(
        description="The latencies of committed transactions; None if nothing was committed."
    )
    service_us: ServiceTime | None = added(
        None,
        "For loads with a rate, the time from the actual start to the end; latency_us is then the "
        "response time. None for trials that are older than this field.",
    )
    with_failures_us: Percentiles | None = added(
        None,
        "For the measured part, the percentiles in which failed transactions count too; None if no "
        "transaction failed, or if the percentiles are not known.",
    )
    retries: Count | None = added(
        None, "The number of times that transactions were tried again; None for trials that are older than this field."
    )
    statement_errors: Count | None = added(
        None,
        "For tests of sysbench, the number of statements that failed, whether or not the script of the test "
        "went on; None if it is not known.",
    )


class TransactionKind(Record):
    """The measurements of one of several kinds of transaction in a load. They include transactions that were in
    progress at the end of the measured part."""

    name: str
    transactions: Count = Field(
        description="The number of transactions of this kind that ended as the benchmark intends, by commit or "
        "by an intended rollback."
    )
    failures: dict[str, Count] = Field(
        description="The number of failed transactions of this kind, by SQLSTATE or kind of failure."
    )
    latency_us: Latency | None = Field(
        description="The latencies; None if no transaction ended, or if one of several machines that made the "
        "load has no histogram."
    )


class ClientWarning(Record):
    """A warning of the load engine that it may have distorted the measurement itself."""

    kind: str = Field(
        description="The kind of the warning. `client-busy`: a load thread used nearly a whole CPU. "
        "`schedule-lag`: transactions started late. `output-slow`: a load thread waited for the "
        "reader of its output."
    )
    message: str = Field(description="The text of the warning, as a sentence.")


class ClientUse(Record):
    """The resources that the load engine itself used in the measured part."""

    cpu_user_s: Amount
    cpu_system_s: Amount
    busiest_thread_share: float = Field(
        description="The CPU time of the load engine's busiest thread divided by the wall time."
    )
    cpu_per_transaction_us: float | None = Field(
        None,
        description="The CPU time of the load threads for each transaction, in microseconds; None if nothing was "
        "measured, or if the trial is older than the self-check of the engine.",
    )
    warnings: list[ClientWarning] = Field(
        [],
        description="The reasons why the load engine may have been the bottleneck. The list is also empty for "
        "trials that are older than the self-check of the engine.",
    )


class FailureSpan(Record):
    """The first and the last second in which transactions of a trial failed in one way. engine.jsonl has the failures
    of each second."""

    phase: Literal["warmup", "measure"]
    kind: str = Field(description="The SQLSTATE or kind of the failure.")
    first_s: Count = Field(description="The first second of the phase in which a transaction failed in this way.")
    last_s: Count
    failures: Count


class TaskTimes(Record):
    """The times of tasks in one trial, in microseconds."""

    mean: float
    min: float
    max: float
    median: float | None = Field(
        None,
        description="The median time, which is exact for response times and has three significant digits for "
        "the other times; None if it is not known.",
    )
    p95: float | None = None


class TaskSummary(Record):
    """The results of a trial's tasks. Times are those of the completed tasks unless a field says otherwise."""

    planned: int
    completed: int
    failed: int
    failures: dict[str, int] = Field(
        description="The number of failed tasks by SQLSTATE or kind of failure. `pool-timeout` means that a task "
        "got no connection in time."
    )
    unfinished: int = Field(
        description="The number of tasks that neither completed nor failed, because the load was interrupted."
    )
    response_us: TaskTimes | None = Field(
        description="The time from a task's arrival to its end; None if no task completed."
    )
    queue_us: TaskTimes | None = Field(description="The time from a task's arrival until it got a connection.")
    service_us: TaskTimes | None = Field(
        description="The time from the moment at which a task got a connection to its end."
    )
    timeout_waited_us: TaskTimes | None = Field(
        description="How long the tasks that got no connection waited; None if all tasks got a connection."
    )
    failed_after_us: float | None = Field(
        description="The mean time from a task's arrival to its failure, in microseconds; None if no task failed."
    )
    under_5_s: int = Field(description="The number of tasks that completed in less than five seconds.")
    classes: dict[str, int] = Field(
        description="The number of completed tasks by response time. Each task is in one class: up_to_0.1_s, "
        "up_to_1_s, up_to_10_s or longer."
    )

    @property
    def mean_us(self) -> float | None:
        """Returns the mean response time of all tasks in microseconds, where a failed task counts with the time until
        it failed; None if no task ended."""
        done = self.response_us.mean * self.completed if self.response_us else 0.0
        lost = self.failed_after_us * self.failed if self.failed_after_us is not None else 0.0
        ended = self.completed + self.failed
        return (done + lost) / ended if ended else None

    def within(self, limit: Literal["0.1_s", "1_s", "10_s"]) -> int:
        """Returns the number of tasks that were completed within a time limit."""
        names = ("up_to_0.1_s", "up_to_1_s", "up_to_10_s")
        return sum(self.classes[name] for name in names[: names.index(f"up_to_{limit}") + 1])


class JobSummary(Record):
    """The effects of a job on its server. The time of the job itself is the latency in the trial's measured part."""

    wal_bytes: Amount | None = Field(
        description="The bytes of WAL that were written during the job; None if the role with which pgtrial "
        "connects is not allowed to ask the server for them."
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
        "The measurements of the load that ran at the same time as the job, from the start of the job "
        "until this load has caught up; None if there was no such load, or if it did not catch up.",
    )


class Probe(Record):
    """One run of the load at one rate, in a search for the capacity. Transactions start at their scheduled times (an
    open loop)."""

    rate: float = Field(description="The rate that the search chose, in transactions per second.")
    duration_s: Amount = Field(
        description="The length in seconds of the part of the probe whose transactions count, which begins "
        "after the load has settled."
    )
    tps: Amount = Field(description="The number of committed transactions per second in the probe.")
    transactions: Amount = Field(
        description="The number of transactions that committed or failed, or that at the end of the probe had "
        "waited longer than the promised response time."
    )
    slower: Amount = Field(
        description="The number of transactions that took longer than the promised response time, counted from "
        "their scheduled start. It includes transactions that failed or still waited when the probe "
        "ended."
    )
    failed: Count
    waiting: Count = Field(
        description="The number of transactions that no client had begun when the probe ended, although their "
        "scheduled start had passed."
    )
    at_percentile_us: float | None = Field(
        description="The response time in microseconds at the percentile for which the study sets a limit; None "
        "if the transaction at this percentile has no response time."
    )
    lag_p99_us: float | None = Field(
        description="The 99th percentile of the delay from the scheduled to the actual start of a transaction, "
        "in microseconds."
    )
    kept: bool = Field(
        description="True if the load kept the promise at this rate: the percentile of the response times was "
        "within its limit, and few enough transactions failed."
    )


PLAN_NODE = re.compile(r"\S|\s*->")
"""Matches the start of a line in the output of EXPLAIN that names a plan node. Lines that it does not match are details
of the node above them."""


class LoadStatement(Record):
    """A statement that a load sends, and its plan on the arm's server after the load."""

    text: str = Field(description="The text of the statement as the load sent it, with its values or with `$1`.")
    plan: list[str] = Field(
        [],
        description="The lines of EXPLAIN, without costs, for the plan that the server uses, or for the generic "
        "plan if `chosen` is `unknown`. Empty if EXPLAIN does not accept the statement.",
    )
    chosen: Literal["literals", "custom", "generic", "unknown"] | None = added(
        None,
        "How the server plans the statement. `literals`: with the values in its text. `custom`: for the "
        "values of each execution. `generic`: once for all values. `unknown`: the values of its parameters are not "
        "known. None if the trial is older than this field; the plan is then the generic one for NULLs.",
    )
    hides_statements: bool = added(
        False,
        "True if the statement calls functions or fires triggers, whose statements have plans that EXPLAIN "
        "does not show.",
    )
    not_chosen: list[str] = added(
        [], "The plan of the kind that the server did not choose, if `chosen` is `custom` or `generic`."
    )
    planning_ms: float | None = added(
        None,
        "The shortest time in milliseconds in which the server made a custom plan of the statement "
        "after the load; None if the server made no custom plan.",
    )


class StatementRows(Record):
    """The numbers of executions and processed rows of a statement of the load, warm-up included, according to the
    server's pg_stat_statements."""

    calls: Count
    rows: Count = Field(description="The number of rows that all calls of the statement together returned or changed.")


class Trial(Record):
    """The content of trial.json: the results of one trial. A failed trial is kept too, and counts with the worst
    possible rank."""

    format: int = FORMAT
    index: int
    block: int
    arm: str
    load_point: LoadPoint
    seed: int
    place: DrawnPlace = None
    layout: DrawnLayout = None
    levels: DrawnLevels = None
    status: Literal["completed", "failed"]
    reason: str | None = Field(
        None, description="The reason why the trial failed, as a sentence; None if it did not fail."
    )
    started: Moment
    ended: Moment = Field(
        description="The time of the end of the trial. If the clock was set during the trial, the time is by "
        "the clock as it was at the start."
    )
    phases_s: dict[str, float] = Field(
        description="The wall time in seconds of each step of the trial: restore, start, statistics, warm, load, "
        "collect and stop; for a pack also check and measure."
    )
    checkpoint_s: float | None = Field(
        None, description="The duration of the CHECKPOINT in the middle of the warm-up, in seconds."
    )
    warmup: Phase | None = None
    measured: Phase | None = None
    capacity: float | None = added(
        None,
        "In a study of capacity, the highest rate that keeps the promised response time, in "
        "transactions per second. `measured` then has the probe whose rate is nearest to it.",
    )
    probes: list[Probe] = added([], "In a study of capacity, the probes in the order of time.")
    tasks: TaskSummary | None = added(None, "The results of the tasks, if the workload is app-tasks.")
    kinds: list[TransactionKind] = added(
        [], "The measurements of each kind of transaction, if the workload is order-entry."
    )
    replay: ReplaySummary | None = added(None, "The results of the statements of a replay.")
    job: JobSummary | None = added(None, "What a job did to its server.")
    suite: SuiteSummary | None = added(None, "The results of the queries of a suite.")
    own_metrics: dict[str, float] = added({}, "The values of the metrics that the study itself defines, by name.")
    quality: float | None = added(
        None, "The number that measure.sql of a pack returned after the load, such as the recall."
    )
    table_created_s: float | None = added(
        None,
        "The time in seconds for making the table of the workload, which all trials on the same data share.",
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
        "The changes of counters, like server_deltas, for all arms together, if the arms are sessions "
        "of one server. Only the trial of the arm that began first has them.",
    )
    host_deltas: dict[str, Amount] = added(
        {},
        "The changes of the counters of CPU time and memory of the server's host, for all programs on it together, "
        "if arms take turns in slices. They cover the time from the begin of this trial's measured part until its "
        "results were read, after the loads of all arms had ended. If the arms are sessions of one server, only the "
        "trial of the arm that began first has them.",
    )
    statements: dict[str, LoadStatement] = added(
        {},
        "The statements of the load with their plans, by their texts without values. Only the "
        "trials of the first block have them.",
    )
    plan_nodes: dict[str, list[str]] = added(
        {},
        "The plan nodes of each statement in this trial, with the keys of `statements`, if the "
        "planner's statistics were drawn for each trial.",
    )
    statements_left_out: bool = added(
        False,
        "True if `statements` does not have all statements of the load, or may not have all, because "
        "there are many or because a short run was used to find them.",
    )
    statement_rows: dict[str, StatementRows] = added(
        {},
        "The calls and rows of the statements that took the most time, on servers with "
        "pg_stat_statements. The keys are the first 100 characters of their texts without values.",
    )
    sessions_seen: Count = added(
        0,
        "How many times pgtrial read the last statement of a session of the load, in order to find the "
        "statements; 0 if the statements are those of the scripts.",
    )
    relations_before: dict[str, dict[str, float]] = Field(
        {},
        description="The tables before the load, with the same values as in `relations`; empty for trials that "
        "are older than this record.",
    )
    relations: dict[str, dict[str, float]] = Field(
        {},
        description="The tables after the run. Each has bytes_table, bytes_indexes, live_tuples, dead_tuples and "
        "toast_tables, which is the number of tables with this name that have a TOAST table.",
    )
    huge_pages: dict[str, dict[str, int]] = added(
        {}, "For an arm with huge pages, the kernel's counters `before`, `during` and `after` the trial."
    )
    round_trip_us: float | None = added(
        None,
        "The median time of 20 round trips (SELECT 1) before the load, in microseconds; None for trials "
        "that are older than this field.",
    )
    start_failures: list[str] = added(
        [],
        "The server's messages for each failed attempt to start the server. With one entry, the "
        "second attempt succeeded; with two, the trial has failed.",
    )
    not_permitted: list[str] = added(
        [], "The actions of pgtrial that the arm's server did not permit, and that the trial therefore left out."
    )
    notes: list[str] = Field(
        [], description="Sentences that a reader needs to know, for example that a checkpoint ran in the measured part."
    )
    machines: list[MachineShare] = added(
        [], "What each machine contributed to the load, if several machines (a fleet) made it together."
    )
    program: str | None = added(None, "The name and version that the arm's client program reports: `psycopg 3.2.1`.")
    failure_spans: list[FailureSpan] = added(
        [],
        "The first and the last second in which transactions failed, for each kind of failure, in the order of time.",
    )
    server_log_tail: list[str] = added(
        [],
        "The last lines that the server logged during the load about PANIC, FATAL and processes that "
        "ended. The lines contain no statements.",
    )

    @property
    def served(self) -> Phase | None:
        """Returns the measured part of the load whose response times are compared. In a trial of a job, this is the
        load that runs at the same time as the job."""
        if self.load_point.kind.is_watched_beside:
            return self.job.beside if self.job is not None else None
        return self.measured

    @property
    def never_started(self) -> bool:
        """True if the trial failed because its server did not start."""
        return self.status == "failed" and len(self.start_failures) > 1


class SliceRow(Record):
    """One row of slices.parquet: one slice of a trial that alternates with the trials of other arms. Times are in
    seconds since the start of the load.

    The start of the load is the same for all trials that alternate.
    """

    phase: Literal["warmup", "measure"]
    round: int = Field(
        description="The number of the round, counted from 0 at the start of the load. Each arm has one slice in a "
        "round."
    )
    planned_begin_s: float
    planned_end_s: float
    begin_s: float | None = Field(
        description="The time at which the first client became active in the slice; None if no client became active."
    )
    end_s: float | None = Field(
        description="The time at which the last client stopped being active in the slice. It may be later than "
        "planned, since clients finish their transactions."
    )
    client_s: float = Field(
        description="The sum over all clients of the time for which each was active in the slice, in seconds."
    )
    transactions: int
    failures: int
    mean_us: float | None


class TimelineRow(Record):
    """One row of timeline.parquet: one second of one phase. If trials alternate in slices, only the time in the arm's
    own slices counts."""

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
"""The shape of a trial's timeline. `flat`: one level from start to end. `warm-up` and `slow-down`: a gradual rise or
fall. `recovery` and `collapse`: a sudden rise or fall to another level. `cyclic`: levels that return. `no steady
state`: any other changes."""


class Segment(Record):
    """A part of a trial in which the speed kept one level. Seconds count from the start of the measured part."""

    start_s: int
    end_s: int
    tps: float = Field(description="The median tps of the seconds of this part.")
    committed: int = Field(
        description="The number of transactions that were committed from the start of the measured part to the end "
        "of this segment."
    )


class Regime(Record):
    """The levels of speed that one trial went through."""

    shape: Shape
    settled: bool = Field(
        description="True if the trial kept its last level long enough for this level to count as lasting."
    )
    segments: list[Segment]


class TrialRegime(Record):
    """A trial whose speed did not keep one level."""

    index: int
    block: int
    regime: Regime
