"""The tables about the servers: sessions by wait event, the host, statements, the provider's metrics, and costs (such
as CPU time or WAL)."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain
from statistics import median
from typing import Any

import polars as pl

from pgtrial.model.records.load_point import LoadPoint
from pgtrial.model.records.results import Cost
from pgtrial.model.records.trial import Trial
from pgtrial.report.data import StudyData
from pgtrial.report.series import (
    CPU_MODES,
    MB,
    OTHER,
    events_shown,
    host_series,
    measured_load,
    provider_means,
    provider_metrics_of,
    provider_unit,
)
from pgtrial.report.table import Column, Table, number, range_text
from pgtrial.report.tables.results import digits
from pgtrial.report.words import cost_text
from pgtrial.verdict.metrics.costs import clearly

_STATEMENTS = "pg_stat_statements"
_SHOWN = 5
"""The number of statements that are shown for an arm at a load point, those that took longest."""

Load = tuple[LoadPoint, str, dict[str, float]]
"""A load point, an arm, and the mean number of active sessions by wait event."""


_digits = partial(digits, most=4)


def server_tables(data: StudyData) -> list[Table[Any]]:
    """Returns the tables of sessions, of the cost of taking measurements on the servers, of the host, and of
    statements. A table is left out if the study did not record its values."""
    waits: list[Table[Any]] = [wait_table(data), sampler_table(data)]
    host: list[Table[Any]] = [host_table(data), statement_table(data)]
    return [*(waits if data.waits else []), *(host if data.observed else [])]


def wait_table(data: StudyData) -> Table[Load]:
    """Returns the table of active sessions by wait event."""
    events = events_shown(data)

    def sessions(event: str) -> Callable[[Load], float]:
        if event == OTHER:
            return lambda row: sum(number for name, number in row[2].items() if name not in events)
        return lambda row: row[2].get(event, 0.0)

    return Table(
        "The mean number of active sessions in the measured part, by the event for which they waited: "
        "clients and their parallel workers, from samples of pg_stat_activity. The table has the largest "
        "wait events of the study.",
        [(point, arm, load) for point, arm in data.cells if (load := measured_load(data, point, arm)) is not None],
        [
            Column("load point", lambda row: row[0].label),
            Column("arm", lambda row: row[1]),
            number("active", lambda row: sum(row[2].values()), ".2f"),
            *(number(event, sessions(event), ".2f") for event in events),
        ],
    )


def sampler_table(data: StudyData) -> Table[tuple[str, list[Trial]]]:
    """Returns the table of the cost of observing, by arm: the shares of one CPU that pgtrial and its session on the
    server used while they took measurements, and the share of the time in which the statements of this session ran."""
    sampled = [
        (arm, [t for t in data.trials if t.arm == arm and "sampler" in t.server_deltas]) for arm in data.plan.arms
    ]

    def share(name: str, row: tuple[str, list[Trial]]) -> float | None:
        spans = [(t.server_deltas["sampler"], t.measured.duration_s) for t in row[1] if t.measured]
        shares = [cost[name] / span for cost, span in spans if name in cost and span]
        return median(shares) if shares else None

    return Table(
        "The cost of observing in the measured part, in the median trial: the shares of one CPU that "
        "pgtrial and its session on the server used, and the share of the time in which its statements "
        "ran or waited to run.",
        [row for row in sampled if row[1]],
        [
            Column("arm", lambda row: row[0]),
            number("trials", lambda row: len(row[1])),
            number(
                "samples in a trial", lambda row: median(t.server_deltas["sampler"]["samples"] for t in row[1]), ".0f"
            ),
            number("lab, of a CPU", partial(share, "lab_cpu_s"), ".2%"),
            number("server, of a CPU", partial(share, "server_cpu_s"), ".2%"),
            number("statements, of the time", partial(share, "statements_s"), ".2%"),
        ],
    )


Host = tuple[LoadPoint, str, dict[str, dict[str, float]]]
"""A load point, an arm, and the activity of the host: the mean over the measured part, by source (such as the device)
and name. A source that pgtrial did not record is empty."""


def host_table(data: StudyData) -> Table[Host]:
    """Returns the table of the host's CPUs, of the device with the data, of the memory that had still to be written,
    and of the time in which processes waited for a CPU, for I/O or for memory."""
    span = max(1, math.ceil(data.observed_s))

    def means(point: LoadPoint, arm: str, source: str) -> dict[str, float]:
        series = host_series(data, point, arm, source, span).filter(pl.col("second") == 0)
        return dict(series.select("name", "value").iter_rows())

    def mean(source: str, *names: str, factor: float = 1.0) -> Callable[[Host], float | None]:
        return lambda row: factor * sum(row[2][source].get(name, 0.0) for name in names) if row[2][source] else None

    def dirty(row: Host) -> float | None:
        size = row[2]["memory"].get("dirty_bytes")
        return MB * size if size is not None else None

    sources = ("cpu", "device", "memory", "pressure")
    hosts = [(point, arm, {source: means(point, arm, source) for source in sources}) for point, arm in data.cells]
    machine = "The lab's own machine" if data.result.where is None else "The server's host"
    return Table(
        f"{machine} in the measured part, as the mean over the trials of an arm: the use of the CPUs, the "
        "device of the data, the memory that had still to be written, and the share of the time in which "
        "a process had to wait.",
        [row for row in hosts if row[2]["cpu"] or row[2]["device"] or row[2]["pressure"] or dirty(row) is not None],
        [
            Column("load point", lambda row: row[0].label),
            Column("arm", lambda row: row[1]),
            *(number(name, mean("cpu", *names), ".2f") for name, names in CPU_MODES.items()),
            number("reads, MB/s", mean("device", "read_bytes", factor=MB), ",.1f"),
            number("writes, MB/s", mean("device", "written_bytes", factor=MB), ",.1f"),
            number("dirty, MB", dirty, ",.0f"),
            number("waited for CPU", mean("pressure", "cpu_some_s"), ".1%"),
            number("waited for I/O", mean("pressure", "io_some_s"), ".1%"),
            number("waited for memory", mean("pressure", "memory_some_s"), ".1%"),
        ],
    )


@dataclass(frozen=True)
class Statement:
    """A statement on which a server spent time, over an arm's trials at a load point."""

    point: LoadPoint
    arm: str
    text: str
    trials: int
    counters: dict[str, float]
    """The columns of pg_stat_statements, summed over the trials."""
    all_ms: float
    """The time in milliseconds that all statements of the arm together took at this load point, of which this statement
    took a share."""

    def each(self, name: str) -> float | None:
        """Returns the value of a counter per call; None if the server does not have the counter."""
        return self.counters[name] / self.counters["calls"] if name in self.counters else None


def statement_table(data: StudyData) -> Table[Statement]:
    """Returns the table of the statements that took longest."""
    return Table(
        f"The {_SHOWN} statements that took longest on the server, including the warm-up, by "
        "pg_stat_statements of this database, as the sum over the trials of an arm. A share of the time "
        "is that among the 50 longest statements of each trial.",
        [statement for point, arm in data.cells for statement in _statements(data, point, arm)],
        [
            Column("load point", lambda statement: statement.point.label),
            Column("arm", lambda statement: statement.arm),
            Column("statement", lambda statement: statement.text),
            number("calls in a trial", lambda statement: statement.counters["calls"] / statement.trials, ",.0f"),
            number("mean, ms", lambda statement: statement.each("exec_ms"), ",.3f"),
            number("of the time", lambda statement: statement.counters["exec_ms"] / statement.all_ms, ".1%"),
            number("rows a call", lambda statement: statement.each("rows"), ",.2f"),
            number("buffers read a call", lambda statement: statement.each("blks_read"), ",.2f"),
            number("WAL bytes a call", lambda statement: statement.each("wal_bytes"), ",.0f"),
        ],
    )


def _statements(data: StudyData, point: LoadPoint, arm: str) -> Iterator[Statement]:
    indices = [trial.index for trial in data.trials if (trial.load_point, trial.arm) == (point, arm)]
    observed = [
        data.observed[index].filter(pl.col("source") == _STATEMENTS) for index in indices if index in data.observed
    ]
    trials = sum(not rows.is_empty() for rows in observed)
    sums: defaultdict[str, defaultdict[str, float]] = defaultdict(lambda: defaultdict(float))
    for name, value in chain.from_iterable(rows.select("name", "value").iter_rows() for rows in observed):
        counter, _, text = name.partition(": ")
        sums[text][counter] += value
    all_ms = sum(counters["exec_ms"] for counters in sums.values()) or 1.0
    for text, counters in sorted(sums.items(), key=lambda item: -item[1]["exec_ms"])[:_SHOWN]:
        yield Statement(point, arm, text, trials, counters, all_ms)


Metric = tuple[str, LoadPoint, dict[str, dict[str, float]]]
"""A metric of the provider, a load point, and the means of all metrics at this load point by arm."""


def provider_table(data: StudyData) -> Table[Metric]:
    """Returns the table of the metrics that a cloud provider measured. It has no rows if the study imported none."""

    def mean(arm: str) -> Callable[[Metric], float | None]:
        return lambda row: row[2][arm].get(row[0])

    metrics = provider_metrics_of(data)
    points = [
        (point, {arm: provider_means(data, point, arm) for arm in data.plan.arms}) for point in data.plan.load_points
    ]
    return Table(
        "The mean of the provider's values that lie entirely within the measured part, over all trials "
        "of an arm. A trial that is shorter than two minutes of the provider may have none.",
        [(metric, point, means) for point, means in points for metric in metrics],
        [
            Column("metric", lambda row: row[0]),
            Column("unit", lambda row: provider_unit(row[0])),
            Column("load point", lambda row: row[1].label),
            *(number(arm, mean(arm), ",.4g") for arm in data.plan.arms),
        ],
    )


def cost_table(data: StudyData) -> Table[Cost]:
    """Returns the table of the costs of a committed transaction, such as CPU time, WAL and reads, by load point and
    arm. Rows that differ clearly from the baseline are marked."""
    is_clear = partial(clearly, margin=data.plan.margin)

    def point(cost: Cost) -> str:
        return "mean of the ratios" if cost.load_point is None else data.labels[cost.load_point]

    return Table(
        "The cost of a committed transaction: the median trial with a distribution-free interval of at "
        "least 95%, and then the cost relative to the baseline within blocks, estimated by the rule of "
        "the verdict, with its interval. Clearly means that the interval lies beyond the margin. Each "
        "cost is a family by itself, so among many costs one may stand out by chance more often than in "
        "5% of studies. CPU of the machine, context switches, device and network include everything that "
        "ran on the machine of pgtrial. Costs that are almost zero on all arms are left out.",
        data.result.costs,
        [
            Column("cost", lambda cost: f"{cost.what}, {cost.unit}" if cost.unit else cost.what),
            Column("load point", point),
            Column("arm", lambda cost: cost.arm),
            number("median", lambda cost: cost.median, _digits),
            number("95% interval", lambda cost: range_text(cost.low, cost.high, _digits)),
            number("against the baseline", lambda cost: cost_text(cost) or None),
            Column("clearly", lambda cost: ("yes" if is_clear(cost) else "no") if cost.difference else None),
            number("blocks", lambda cost: cost.blocks if cost.difference else None),
        ],
        is_clear,
    )
