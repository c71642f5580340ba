"""Types for what pgtrial stores about suites of queries: the load, and the results of each query in a trial."""

from __future__ import annotations

import math
from typing import ClassVar, Literal

from pydantic import Field

from pgtrial.model.records import Record, added
from pgtrial.model.records.kind import Measure, PointKind
from pgtrial.model.units import plural

Cache = Literal["warm", "os", "cold"]
"""The state of the caches when a query starts: with `warm`, all data that the query reads is in memory as far as it
fits; with `os`, only the kernel's cache of files has data; with `cold`, all caches are empty."""


QUERY_ENDING = ".sql"


class SuiteLoad(PointKind, Record):
    """The suite of a load point, which is a list of queries that a trial runs one after the other."""

    key: ClassVar[str] = "suite"
    called: ClassVar[str] = "the suite"
    noun: ClassVar[str] = "execution"
    repeats: ClassVar[bool] = False
    has_rate: ClassVar[bool] = False
    time_is_unknown: ClassVar[bool] = True
    knows_each_statement: ClassVar[bool] = True
    counts_blocks_of_parts: ClassVar[bool] = True

    name: str
    queries: list[str] = Field(description="The names of the queries, in the order of their files.")
    runs: int = Field(description="The number of measured runs of each query in a trial.")
    limit_s: float = Field(
        description="The time in seconds after which pgtrial cancels a query. The query then counts with this time."
    )
    cache: Cache
    data: str | None = Field(
        description="The name of the data generator in the load engine that made the data; None for other data."
    )
    unchecked: list[str] = Field(
        description="The names of the queries whose results pgtrial does not compare, because they may differ "
        "between arms."
    )

    def __hash__(self) -> int:
        """Returns a hash, so that load points can be keys of dictionaries."""
        return hash((self.name, self.cache))

    @property
    def label(self) -> str:
        """Returns the description of the suite for reports: `22 queries, 2 runs of each, caches warm`."""
        runs = f", {self.runs} runs of each" if self.runs > 1 else ""
        return f"{plural(len(self.queries), 'query')}{runs}, {CACHES[self.cache]}"

    @property
    def measure(self) -> Measure:
        return "geometric mean of query times"

    @property
    def amount(self) -> str:
        return plural(len(self.queries) * self.runs, "query")

    @property
    def has_scale(self) -> bool:
        return self.data is not None

    @property
    def query_files(self) -> dict[str, str]:
        return {query: f"{query}{QUERY_ENDING}" for query in self.queries}

    @property
    def folder(self) -> str:
        return self.name

    @property
    def details(self) -> str:
        return f", {self.label}"

    def directory(self, workload: str, size: str) -> str:
        return f"{workload}-{size if self.data is not None else 'own'}-{self.cache}"


CACHES: dict[Cache, str] = {
    "warm": "caches warm",
    "os": "shared buffers empty before each query",
    "cold": "shared buffers and the kernel's cache empty before each query",
}
"""The description of each state of the caches, for reports."""


class QueryAnswer(Record):
    """The answer that a run of a query returned."""

    rows: int = Field(description="The number of rows that the last statement of the query returned.")
    rows_hash: str | None = Field(
        description="A hash of the values of the returned rows, in any order; None if the query returns no rows."
    )


class QueryResult(Record):
    """The measured runs of one query in a trial."""

    query: str = Field(description="The name of the query's file, without `.sql`.")
    times_us: list[float] = Field(
        description="The times in microseconds from sending the query to its answer, for the runs that had no "
        "error, in the order of the runs."
    )
    over_limit: int = added(
        0, "The number of runs that pgtrial cancelled at the time limit. Their time counts as the limit."
    )
    failures: dict[str, int] = added({}, "The number of runs that ended with an error and have no time, by SQLSTATE.")
    message: str | None = added(None, "The server's message for the first error.")
    answers: list[QueryAnswer] = Field([], description="The different answers that the runs of the query returned.")

    @property
    def is_bound(self) -> bool:
        """True if a run was cancelled at the limit or failed. `time_us` is then only a lower bound of the query's
        time."""
        return bool(self.over_limit or self.failures)

    def time_us(self, limit_s: float) -> float | None:
        """Returns the geometric mean of the runs' times in microseconds, where a run with an error counts with the
        limit; None if no run has a time."""
        if not self.times_us:
            return None
        times = [*self.times_us, *[1e6 * limit_s] * sum(self.failures.values())]
        if len(times) == 1:
            return times[0]
        return math.exp(math.fsum(math.log(max(time, 1.0)) for time in times) / len(times))


class SuiteSummary(Record):
    """The results of a suite in one trial."""

    queries: list[QueryResult]
    limit_s: float = Field(
        description="The time in seconds after which pgtrial cancels a query, the same as in the load point."
    )

    @property
    def mean_us(self) -> float | None:
        """Returns the geometric mean of the queries' times in microseconds, where a failed query counts with the limit;
        None if all queries failed."""
        times = [query.time_us(self.limit_s) for query in self.queries]
        if all(time is None for time in times):
            return None
        known = [1e6 * self.limit_s if time is None else time for time in times]
        return math.exp(math.fsum(math.log(time) for time in known) / len(known))
