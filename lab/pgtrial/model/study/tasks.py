"""The workload app-tasks: the tasks of a published application run to their end on connection pools of limited size."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, field_validator

from pgtrial.model.quoting import quoted
from pgtrial.model.records import Record
from pgtrial.model.units import Seconds, Whole, as_arguments

APP_TASKS = "app-tasks"
"""The value of `[load] workload` for a load of tasks on connection pools."""

AT_ONCE = "at-once"
_RANDOM = "poisson:"
_RATE = re.compile(r"\d+(\.\d+)?")

_MOST_CONNECTIONS = 100_000
"""The largest number of connections of all pools together that the load engine can open."""

NOT_FOR_TASKS = {
    "scale": "its table has the size of tasks.threads_in_table and tasks.rows",
    "clients": "its connections are those of tasks.apps and tasks.pool",
    "rate": "its tasks arrive as tasks.arrival says",
    "warmup": "all tasks count",
    "duration": "all tasks run to their end",
    "fillfactor": "its table is as published",
    "foreign_keys": "its table is as published",
    "max_tries": "a task that fails is not tried again",
    "latency_limit": "a task that fails is not tried again",
    "interleave": "its tasks arrive at times of their own",
    "on_server_loss": "tasks wait for connections as long as tasks.pool_timeout, whatever became of the server",
}
"""The keys of `[load]` that do not apply to tasks, each with the reason."""

_S_PER_ROW = 1e-7
"""The estimated time of a statement for each row of its thread_id, in seconds. The statement reads all of these rows to
find one of them."""

_S_PER_STATEMENT = 3e-4
_STATEMENTS = 2
_CPUS = 2
_LONGEST_SERVICE_S = 600.0


def _as_arrival(value: Any) -> Any:
    return f"{value:g}" if isinstance(value, int | float) and not isinstance(value, bool) else value


def _known_arrival(arrival: str) -> str:
    digits = arrival.removeprefix(_RANDOM)
    if arrival != AT_ONCE and not (_RATE.fullmatch(digits) and float(digits) > 0):
        raise ValueError(
            f'{quoted(arrival)} is not an arrival of tasks; write "at-once", 50 or "poisson:50" (tasks a second)'
        )
    return arrival


class TasksSection(Record):
    """The load `workload = "app-tasks"`: [tasks on pools of connections](tasks.md). A trial runs all tasks to their
    end, and the verdict is about their mean response time. The keys of `[load]` for times, clients, scale, rate and
    tables are refused. The server's `max_connections` must be at least `apps` x `pool`.
    """

    # the defaults are those of the published application
    apps: Whole = Field(
        3,
        ge=1,
        le=10_000,
        description="The number of applications whose tasks the load runs. Each has its own pool of connections.",
    )
    tasks: Whole = Field(5000, ge=1, le=10_000_000, description="The number of tasks of each application.")
    arrival: Annotated[str, BeforeValidator(_as_arrival), AfterValidator(_known_arrival)] = Field(
        AT_ONCE,
        description="When the tasks of an application arrive: all together (`at-once`), at equal distances "
        "(`50`: 50 tasks per second), or at random moments (`poisson:50`).",
    )
    pool: Whole = Field(
        100, ge=1, le=10_000, description="The largest number of connections that the pool of each application opens."
    )
    pool_timeout: Seconds = Field(
        15.0,
        ge=0.001,
        le=86_400,
        description="The time in seconds after which a task that has not got a connection fails.",
    )
    pool_lifetime: Seconds | None = Field(
        None,
        ge=0.001,
        le=86_400,
        description="The age in seconds at which a connection is replaced. Default: connections are not replaced.",
    )
    threads_in_table: Whole = Field(
        10,
        ge=1,
        le=10_000,
        description="The number of different values of the column `thread_id` in the table `table_a`.",
    )
    rows: Whole = Field(
        100_000,
        ge=1,
        le=100_000_000,
        description="The number of rows for each `thread_id`. Each statement reads all rows of one `thread_id`.",
    )

    @field_validator("pool")
    @classmethod
    def _not_too_many(cls, pool: int, info: Any) -> int:
        apps = info.data.get("apps", 1)
        if apps * pool > _MOST_CONNECTIONS:
            raise ValueError(f"{apps} pools of {pool:,} are more than {_MOST_CONNECTIONS:,} connections; choose fewer")
        return pool

    @property
    def connections(self) -> int:
        """Returns the largest number of connections that all pools together have."""
        return self.apps * self.pool

    @property
    def arriving_s(self) -> float:
        """Returns the time in seconds from the first to the last arrival of a task; for random arrivals, the expected
        time."""
        return 0.0 if self.arrival == AT_ONCE else self.tasks / float(self.arrival.removeprefix(_RANDOM))

    @property
    def expected_s(self) -> float:
        """Returns a rough estimate of the time that all tasks take, in seconds. It is the time of their statements
        divided by two CPUs, or the time until the last task has arrived if that is longer. It is never more than this
        arrival plus the time that a task waits for a connection."""
        task_s = _STATEMENTS * (self.rows * _S_PER_ROW + _S_PER_STATEMENT)
        work = self.apps * self.tasks * task_s / _CPUS
        return min(max(work, self.arriving_s), self.arriving_s + self.pool_timeout)

    @property
    def longest_s(self) -> float:
        """Returns a time in seconds that no run exceeds as long as it makes progress. The time that a task waits for a
        connection is limited: after it, the task has a connection or has failed."""
        return 2 * self.arriving_s + self.pool_timeout + _LONGEST_SERVICE_S

    def arguments(self) -> list[str]:
        """Returns the options of the load engine for the tasks, which have the names of the keys."""
        asked = {key.replace("_", "-"): value for key, value in self.model_dump().items()}
        asked["pool-lifetime"] = asked.pop("pool-lifetime")  # the only option that may be absent comes last
        return as_arguments({key: f"{value:g}" if isinstance(value, float) else value for key, value in asked.items()})
