"""The metrics that a study can compare, by the names that the key `metrics` of `[verdict]` uses."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from pgtrial.model.quoting import quoted
from pgtrial.model.units import nearest

FEWEST_SLOWER = 100
"""The number of transactions beyond a percentile that every trial must have for the percentile to be reported."""

PERCENTILES: Mapping[str, float] = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p99.9": 0.999}
"""For each name of a percentile, the share of transactions whose response time does not exceed it."""

Kind = Literal["speed", "percentile", "cost", "price", "job", "capacity", "own"]


@dataclass(frozen=True)
class MetricName:
    """A metric that a study can compare. Metrics of the kind `own` are defined in the study file."""

    name: str
    noun: str
    """The metric's name in reports, such as `p99 response time`."""
    kind: Kind
    better: Literal["more", "less"] = "less"
    cost: str = ""
    """The name of the metric in the lists of what a transaction costs, such as `WAL`; empty if the metric is not a
    cost."""
    of_job: str = ""
    """The field of `JobSummary`, the record of what a job did to its server, that holds the metric. Empty unless the
    metric describes the effect of a job, such as CREATE INDEX."""

    @property
    def is_for_jobs(self) -> bool:
        """True if only jobs, such as CREATE INDEX, have the metric."""
        return self.kind == "job" or self.name == TIME

    @property
    def follows_throughput(self) -> bool:
        """True if the metric follows from the throughput in a closed loop, in which each client starts a transaction as
        soon as its last one has ended (Little's law)."""
        return self.kind == "percentile" or self.name == RESPONSE


TPS, RESPONSE, PER_CENT, TIME, CAPACITY = "tps", "response", "transactions per cent", "time", "capacity"

_ALL = (
    MetricName(TPS, "goodput", "speed", "more"),
    MetricName(RESPONSE, "mean response time", "speed"),
    *(MetricName(name, f"{name} response time", "percentile") for name in PERCENTILES),
    MetricName("cpu per transaction", "server CPU per transaction", "cost", cost="server CPU"),
    MetricName("wal per transaction", "WAL per transaction", "cost", cost="WAL"),
    MetricName("reads per transaction", "buffers read per transaction", "cost", cost="buffers read"),
    MetricName("size per transaction", "growth of the database per transaction", "cost", cost="growth"),
    MetricName(PER_CENT, PER_CENT, "price", "more"),
    MetricName(TIME, "time of the job", "speed"),
    MetricName("wal", "WAL of the job", "job", of_job="wal_bytes"),
    MetricName("size", "size of the database after the job", "job", of_job="size_bytes"),
    MetricName("memory", "peak memory of the server", "job", of_job="peak_memory_bytes"),
    MetricName(CAPACITY, CAPACITY, "capacity", "more"),
)

METRICS: Mapping[str, MetricName] = {metric.name: metric for metric in _ALL}
"""All metrics that come with pgtrial by their names, in the order of the documentation."""


def each_once(names: list[str]) -> list[str]:
    """Returns the names unchanged. Raises ValueError if a name occurs twice."""
    for index, name in enumerate(names):
        if name in names[:index]:
            raise ValueError(f"lists {name} more than once; name each metric once")
    return names


def unknown_metric(names: Iterable[str], own: Collection[str]) -> str | None:
    """Returns a message that rejects the first of these names that neither pgtrial nor the study defines; None if all
    names are known. `own` has the names of the metrics that the study defines."""
    for name in names:
        if name not in METRICS and name not in own:
            return f"{quoted(name)} is not a metric; {nearest(name, [*own, *METRICS], 'metrics are')}"
    return None


def transactions_for(percentile: str) -> int:
    """Returns the number of transactions that a trial must have for this percentile to be reported."""
    return math.ceil(FEWEST_SLOWER / (1 - PERCENTILES[percentile]) - 1e-6)


def percentiles_of(names: list[str]) -> list[str]:
    """Returns those of the names that are names of percentiles, such as `p99`."""
    return [name for name in names if name in PERCENTILES]
