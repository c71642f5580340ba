"""The events of a load, as types: the keys of docs/engine-events.md that the lab reads.

The engine writes them, and the lab for client programs and jobs. A test compares the keys with that page, and a test of
the engine compares the page with the engine's own types. A key that not every writer or version has is NotRequired.
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
"""A distribution, percentiles, or mean and extremes of times, microseconds."""


class SlicesPlan(TypedDict):
    """The slices in which several loads take turns."""

    length_s: float


class SuitePlan(TypedDict):
    """The options of a suite."""

    limit_s: float


class Plan(TypedDict):
    """The plan of a run."""

    scripts: NotRequired[list[str]]
    slices: NotRequired[SlicesPlan]
    suite: NotRequired[SuitePlan]


class Hello(TypedDict):
    """The first event: the run that follows."""

    event: Literal["hello"]
    t: float
    protocol: int
    plan: NotRequired[Plan]
    program: NotRequired[str | None]
    """The name and version that a client program gives for itself; the engine writes none."""


class Connected(TypedDict):
    """All clients are connected."""

    event: Literal["connected"]
    t: NotRequired[float]
    clients: int
    connect_s: float


class Ready(TypedDict):
    """All clients are connected and wait for the planned start."""

    event: Literal["ready"]
    t: float


class PhaseBegins(TypedDict):
    """A phase begins."""

    event: Literal["phase"]
    t: NotRequired[float]
    phase: Phase


class Queries(TypedDict):
    """The numbers of statements, of sysbench's tests and replays."""

    reads: NotRequired[int]
    writes: NotRequired[int]
    others: NotRequired[int]
    errors: int


class Counts(TypedDict):
    """What a tick and a summary of a phase have in common."""

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
    """The slice of time in which a load was active, of several that take turns."""

    round: int
    planned_begin_s: float
    planned_end_s: float
    begin_s: float | None
    end_s: float | None
    client_s: float


class Queue(TypedDict):
    """The transactions that wait for a client, and the clients that are in one, at the end of a second."""

    waiting: int
    busy: int


class Tick(Counts):
    """One second of a phase is over, or with slices one round."""

    event: Literal["tick"]
    t: NotRequired[float]
    phase: Phase
    second: int
    seconds: NotRequired[float]
    slice: NotRequired[Slice]
    queue: NotRequired[Queue | None]


class Summary(Counts):
    """The sum of a phase."""

    duration_s: float
    tps: float
    client_s: NotRequired[float]


class Task(TypedDict):
    """A task on a pool of connections failed."""

    event: Literal["task"]
    t: float
    waited_s: float
    served_s: float


class Pause(TypedDict):
    """The engine waits between two queries of a suite."""

    event: Literal["pause"]
    t: float


class Query(TypedDict):
    """A query of a suite has ended."""

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
    """A client was given up, or a capture cannot be read."""

    event: Literal["error"]
    t: float
    script: NotRequired[int]
    command: NotRequired[int | None]
    kind: NotRequired[str]
    sqlstate: NotRequired[str | None]
    message: NotRequired[str]
    machine: NotRequired[str]
    """The machine of a fleet on which it happened; only in merged events."""


class Lost(TypedDict):
    """The events of a machine of a fleet ended too early."""

    event: Literal["lost"]
    t: float


class Script(TypedDict):
    """The totals of one of several scripts."""

    transactions: int
    failures: NotRequired[dict[str, int]]
    latency_us: NotRequired[Times | None]


class Tasks(TypedDict):
    """The totals of tasks on pools of connections."""

    planned: int
    response_us: Times | None
    queue_us: Times | None
    service_us: Times | None
    timeout_waited_us: Times | None


class Replayed(TypedDict):
    """The statements of a replay that have no template of their own."""

    statements: int


class Template(TypedDict):
    """The statements of one template of a replay."""

    unexpected_failures: dict[str, int]
    missing_failures: dict[str, int]
    expected_failures: dict[str, int]
    time_us: Times | None


class Replay(TypedDict):
    """The totals of a replay."""

    templates: list[Template]
    other_templates: NotRequired[Replayed | None]


class Share(TypedDict):
    """What one machine of a fleet did."""

    machine: str
    began_at: NotRequired[float | None]


class Done(TypedDict):
    """The last event: the end of the run."""

    event: Literal["done"]
    t: NotRequired[float]
    status: int
    interrupted: NotRequired[bool]
    clients_aborted: NotRequired[int]
    warmup: NotRequired[Summary | None]
    measure: NotRequired[Summary | None]
    scripts: NotRequired[list[Script]]
    client: NotRequired[Mapping[str, Any]]
    """The resources that the engine used, as `ClientUse` reads them."""
    tasks: NotRequired[Tasks]
    replay: NotRequired[Replay]
    machines: NotRequired[list[Share]]


Event = Hello | Connected | Ready | PhaseBegins | Tick | Task | Pause | Query | Error | Lost | Done
"""An event of a load, as it is read. Readers ignore an event of another name, which a later version may add."""
