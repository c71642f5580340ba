"""The events of a load, as types: the keys of docs/engine-events.md that the lab reads.

The engine writes these events; for client programs and jobs, which write none, the lab does. One test compares the keys
here with that page, and a test of the engine compares the page with the engine's own types. A key that some writers or
versions leave out is NotRequired.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NotRequired, TypedDict

Phase = Literal["warmup", "measure", "drain"]

Times = TypedDict(
    "Times",
    {
        "mean": NotRequired[float],
        "stddev": NotRequired[float],
        "min": NotRequired[float],
        "p50": NotRequired[float],
        "p90": NotRequired[float],
        "p95": NotRequired[float],
        "p99": NotRequired[float],
        "p99.9": NotRequired[float],
        "max": NotRequired[float],
        "median": NotRequired[float | None],
    },
)
"""Times in microseconds: a whole distribution, some percentiles, or the mean, the least and the largest."""


class SlicesPlan(TypedDict):
    """The plan of the slices of time in which several loads alternate: the length of one slice, in seconds."""

    length_s: float


class SuitePlan(TypedDict):
    """The keys about a suite (queries in files, each of which is timed) in the plan of a run. `limit_s` is the longest
    time, in seconds, that one query may run."""

    limit_s: float


class Plan(TypedDict):
    """The engine's plan of a run (what it is going to do), as far as the lab reads it."""

    scripts: NotRequired[list[str]]
    slices: NotRequired[SlicesPlan]
    suite: NotRequired[SuitePlan]


class Hello(TypedDict):
    """The first event, which describes the run that follows."""

    event: Literal["hello"]
    t: float
    protocol: int
    plan: NotRequired[Plan]
    program: NotRequired[str | None]
    """The name and version that a client program reports about itself. The engine leaves this key out."""


class Connected(TypedDict):
    """The event which reports that all clients are connected."""

    event: Literal["connected"]
    t: NotRequired[float]
    clients: int
    connect_s: float


class Ready(TypedDict):
    """The event which reports that all clients are connected and wait for the start time."""

    event: Literal["ready"]
    t: float


class PhaseBegins(TypedDict):
    """The event which reports that a phase (the warm-up or the measured phase) begins."""

    event: Literal["phase"]
    t: NotRequired[float]
    phase: Phase


class Queries(TypedDict):
    """The numbers of statements by type (reads, writes, others), which sysbench's tests and replays report."""

    reads: NotRequired[int]
    writes: NotRequired[int]
    others: NotRequired[int]
    errors: int


class Counts(TypedDict):
    """The keys that ticks (the measurements of one second) and the summaries of phases have in common."""

    transactions: int
    failures: NotRequired[dict[str, int]]
    retries: NotRequired[int]
    queries: NotRequired[Queries]
    latency_us: NotRequired[Times | None]
    histogram: NotRequired[str | None]
    service_us: NotRequired[Times | None]
    lag_us: NotRequired[Times | None]
    queue_us: NotRequired[Times | None]


class Slice(TypedDict):
    """The slice of time in which a load was active, when several loads alternate."""

    round: int
    planned_begin_s: float
    planned_end_s: float
    begin_s: float | None
    end_s: float | None
    client_s: float


class Queue(TypedDict):
    """The number of transactions that wait for a free client at the end of a second, and the number of clients that are
    executing a transaction."""

    waiting: int
    busy: int


class Tick(Counts):
    """The event with the measurements of one second of a phase or, if loads alternate in slices, of one slice of this
    load."""

    event: Literal["tick"]
    t: NotRequired[float]
    phase: Phase
    second: int
    seconds: NotRequired[float]
    slice: NotRequired[Slice]
    queue: NotRequired[Queue | None]


class Summary(Counts):
    """The totals of a phase."""

    duration_s: float
    tps: float
    client_s: NotRequired[float]


class Task(TypedDict):
    """The event which reports that a task (a transaction of an application that takes a connection from its pool)
    failed."""

    event: Literal["task"]
    t: float
    waited_s: float
    served_s: float


class Pause(TypedDict):
    """The event which reports that the engine waits between two queries of a suite, until the lab sends a line to its
    standard input."""

    event: Literal["pause"]
    t: float


class Query(TypedDict):
    """The event which reports that a query of a suite has ended."""

    event: Literal["query"]
    t: float
    query: str
    phase: Phase
    run: int
    time_us: float | None
    over_limit: bool
    rows: int
    rows_hash: str | None
    sqlstate: str | None
    message: str | None


class Error(TypedDict):
    """The event which reports that the engine stopped a client after an error, or that it cannot read the capture (the
    recorded sessions) of a replay."""

    event: Literal["error"]
    t: float
    script: NotRequired[int]
    command: NotRequired[int | None]
    kind: NotRequired[str]
    sqlstate: NotRequired[str | None]
    message: NotRequired[str]
    machine: NotRequired[str]
    """The machine of the fleet on which the error happened. Only the merged events of a fleet have this key."""


class Lost(TypedDict):
    """The event which reports that a machine of the fleet stopped sending events before the load had ended."""

    event: Literal["lost"]
    t: float


class Script(TypedDict):
    """The totals of one script of a load that runs several."""

    transactions: int
    failures: NotRequired[dict[str, int]]
    latency_us: NotRequired[Times | None]


class Tasks(TypedDict):
    """The totals of a load of tasks: transactions of applications that wait for a connection of their application's
    pool."""

    planned: int
    response_us: Times | None
    queue_us: Times | None
    service_us: Times | None
    timeout_waited_us: Times | None


class Replayed(TypedDict):
    """The executions of those statements of a replay that are not listed one by one. The engine lists the totals of
    1,000 statement templates (statements that differ only in values), and counts all others together here."""

    statements: int


class Template(TypedDict):
    """The totals of one statement template of a replay, that is, of all statements that differ only in their values."""

    unexpected_failures: dict[str, int]
    missing_failures: dict[str, int]
    expected_failures: dict[str, int]
    time_us: Times | None


class Replay(TypedDict):
    """The totals of a replay, in which the engine runs recorded sessions again."""

    templates: list[Template]
    other_templates: NotRequired[Replayed | None]


class Share(TypedDict):
    """The record of one machine of a fleet in the last event: its name, and when its engine began."""

    machine: str
    began_at: NotRequired[float | None]


class Done(TypedDict):
    """The last event, which reports the end of the run."""

    event: Literal["done"]
    t: NotRequired[float]
    status: int
    interrupted: NotRequired[bool]
    clients_aborted: NotRequired[int]
    warmup: NotRequired[Summary | None]
    measure: NotRequired[Summary | None]
    scripts: NotRequired[list[Script]]
    client: NotRequired[Mapping[str, Any]]
    """The resources that the engine used, in the form that `ClientUse` reads."""
    tasks: NotRequired[Tasks]
    replay: NotRequired[Replay]
    machines: NotRequired[list[Share]]


Event = Hello | Connected | Ready | PhaseBegins | Tick | Task | Pause | Query | Error | Lost | Done
"""An event of a load. Readers ignore events with other names, which a later version may add."""
