"""Suites, which are folders with one query in each file. A suite comes with pgtrial or belongs to the user.

A study stores the files of its suite among its scripts, as `reports/q01.sql`. It names the suite by the folder that has
the files, `suite:scripts/reports`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Annotated

from pydantic import BeforeValidator, Field, field_validator

from pgtrial.model.errors import StudyError
from pgtrial.model.quoting import quoted
from pgtrial.model.records import Record
from pgtrial.model.records.suite import QUERY_ENDING, Cache
from pgtrial.model.study.manifests import manifest
from pgtrial.model.units import Seconds, Whole, as_list, nearest

SUITE = "suite:"
"""The prefix of the name of a workload that is a suite. The name or the path of the suite follows the prefix."""

SUITE_FILE = "suite.toml"

GENERATORS = ("joins", "reports")
"""The names of the data sets that the load engine can make for suites."""

DEFAULT_LIMIT_S = 60.0

NOT_FOR_SUITES = {
    "clients": "its queries run one after the other, in one session",
    "rate": "its queries run one after the other",
    "warmup": "its unmeasured part is a pass over all queries",
    "duration": "it ends when each query has run as often as suite.runs says",
    "protocol": "its queries are sent as their files have them",
    "fillfactor": "it is for tables of pgbench",
    "foreign_keys": "they are for tables of pgbench",
    "max_tries": "a query that fails is not tried again",
    "latency_limit": "suite.limit is the limit of its queries",
    "interleave": "a query is longer than a slice",
    "on_server_loss": "a trial that loses its server has failed",
}
"""The keys of `[load]` that do not apply to a suite, each with the reason."""

_SMALLEST, _LARGEST = 0.01, 100
"""The smallest and the largest scale of data that the load engine makes. All scales are multiples of `_SMALLEST`."""

MOST_QUERIES = 500

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,60}")

_RESTART_PATIENCE_S = 60.0


class SuiteSection(Record):
    """The load `workload = "suite:NAME"`: a [suite of queries](suites.md). A trial runs each query `runs` times, in
    random order in one session. The keys of `[load]` for times, clients, rate, protocol and tries are refused.
    """

    runs: Whole = Field(1, ge=1, le=1000, description="How often a trial measures each query.")
    limit: Seconds | None = Field(
        None,
        gt=0,
        le=86_400,
        description="The time in seconds after which pgtrial cancels a query. The query then counts with this time. "
        "Default: the limit in suite.toml, otherwise 1 minute.",
    )
    cache: Cache = Field(
        "warm",
        description="What the caches hold when a query runs. `warm`: all queries run once before they are measured. "
        "`os`: pgtrial restarts the server before each query. `cold`: pgtrial also empties the kernel's cache of "
        "files, which requires root.",
    )
    unchecked: Annotated[list[str], BeforeValidator(as_list)] = Field(
        [],
        description="The names of queries whose results may differ between arms, and which pgtrial therefore does "
        'not compare: `["q07"]`.',
    )
    queries: Whole | None = Field(
        None,
        ge=1,
        le=MOST_QUERIES,
        description="pgtrial writes this key into the study file that it stores in the study directory: the "
        "number of queries.",
    )

    @property
    def drops_caches(self) -> bool:
        """True if pgtrial restarts the server before each query."""
        return self.cache != "warm"

    @property
    def limit_s(self) -> float:
        """Returns the time in seconds after which a query is cancelled."""
        return DEFAULT_LIMIT_S if self.limit is None else self.limit

    @property
    def passes(self) -> int:
        """Returns how often each query runs in a trial. If the caches are warm, this includes a first run that is not
        measured."""
        return self.runs if self.drops_caches else self.runs + 1

    @property
    def expected_s(self) -> float:
        """Returns 0, which stands for an unknown time: how long a trial takes is not known before it has run."""
        return 0.0

    @property
    def longest_s(self) -> float:
        """Returns a time in seconds that no trial exceeds as long as it makes progress."""
        restart_s = _RESTART_PATIENCE_S if self.drops_caches else 0.0
        return (self.queries or 1) * self.passes * (self.limit_s + restart_s) + _RESTART_PATIENCE_S


class Suite(Record):
    """The content of suite.toml."""

    description: str = Field("", description="A description of what the queries ask, in one sentence.")
    data: str | None = Field(
        None,
        description="The name of the data set that the load engine makes for the suite; None if the user brings the "
        "data.",
    )
    limit: Seconds | None = Field(
        None, gt=0, le=86_400, description="The time in seconds after which a query is cancelled."
    )

    @field_validator("data")
    @classmethod
    def _known(cls, data: str | None) -> str | None:
        if data is not None and data not in GENERATORS:
            raise ValueError(
                f"{quoted(data)} is not a data set of the load engine; {nearest(data, GENERATORS, 'there are')}"
            )
        return data


def is_suite(workload: str) -> bool:
    """True if a workload is a suite."""
    return workload.startswith(SUITE)


def objections_to_scale(scale: float) -> Iterator[str]:
    """Yields an objection if the load engine cannot make data at this scale."""
    if not _SMALLEST <= scale <= _LARGEST or round(scale, 2) != scale:
        yield f"a suite's scale is {_SMALLEST} to {_LARGEST} with at most two decimals, and not {scale:g}; change it"


def suite_of(name: str, scripts: Mapping[str, str]) -> Suite:
    """Returns the content of a suite's suite.toml. `scripts` has the suite's files by their paths in the study. Raises
    StudyError."""
    return read_suite(name, scripts.get(f"{name}/{SUITE_FILE}", ""))


@lru_cache
def read_suite(name: str, text: str) -> Suite:
    """Returns the content of a suite.toml, given as text. Raises StudyError."""
    return manifest(text, Suite, f"the suite {name}: {SUITE_FILE}", {})


def queries_of(name: str, scripts: Mapping[str, str]) -> list[str]:
    """Returns the names of a suite's queries in the order of their files. `scripts` has all files of the study."""
    files = [path.removeprefix(f"{name}/") for path in scripts if path.startswith(f"{name}/")]
    return sorted(file.removesuffix(QUERY_ENDING) for file in files if file.endswith(QUERY_ENDING))


def check_suite_name(name: str, source: str) -> None:
    """Raises StudyError if a suite's folder or a query has a name with characters that names in the results cannot
    have."""
    if not _NAME.fullmatch(name):
        raise StudyError(
            f"{source}: {quoted(name)} cannot be the name of a suite or a query; use letters, digits, _, . and -"
        )
