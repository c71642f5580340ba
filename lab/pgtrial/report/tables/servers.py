"""The tables of what servers did: sessions by wait event, the host, statements, the provider's metrics, and costs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import median
from typing import Any

import polars as pl

from pgtrial.model.records.plan import LoadPoint
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
from pgtrial.report.table import Column, Table, number
from pgtrial.report.words import cost_text
from pgtrial.statistics.costs import clearly

_STATEMENTS = "pg_stat_statements"
_SHOWN = 5
"""Statements of an arm at a load point, those that took longest."""

Load = tuple[LoadPoint, str, dict[str, float]]
"""A load point, an arm, and mean active sessions by wait event."""


def server_tables(data: StudyData) -> list[Table[Any]]:
    """Sessions and the sampler, then host and statements; without those that were not observed."""
    waits: list[Table[Any]] = [wait_table(data), sampler_table(data)]
    host: list[Table[Any]] = [host_table(data), statement_table(data)]
    return [*(waits if data.waits else []), *(host if data.observed else [])]


def wait_table(data: StudyData) -> Table[Load]:
    """Active sessions by wait event."""
    events = events_shown(data)

    def sessions(event: str) -> Callable[[Load], float]:
        if event == OTHER:
            return lambda row: sum(number for name, number in row[2].items() if name not in events)
        return lambda row: row[2].get(event, 0.0)

    return Table(
        "Mean number of active sessions in the measured part, and what they waited for: clients and their parallel "
        "workers, from samples of pg_stat_activity; the largest wait events of the study.",
        [(point, arm, load) for point, arm in data.cells if (load := measured_load(data, point, arm)) is not None],
        [
            Column("load point", lambda row: row[0].label),
            Column("arm", lambda row: row[1]),
            number("active", lambda row: sum(row[2].values()), ".2f"),
            *(number(event, sessions(event), ".2f") for event in events),
        ],
    )


def sampler_table(data: StudyData) -> Table[tuple[str, list[Trial]]]:
    """CPU and time that the sampler took, by arm."""
    sampled = [
        (arm, [t for t in data.trials if t.arm == arm and "sampler" in t.server_deltas]) for arm in data.plan.arms
    ]

    def share(name: str) -> Callable[[tuple[str, list[Trial]]], float | None]:
        def of(row: tuple[str, list[Trial]]) -> float | None:
            spans = [(t.server_deltas["sampler"], t.measured.duration_s) for t in row[1] if t.measured]
            shares = [cost[name] / span for cost, span in spans if name in cost and span]
            return median(shares) if shares else None

        return of

    return Table(
        "What the sampler took of the measured part, in the median trial: shares of one CPU by the lab and by its "
        "session on the server, and the share of the time in which its statements ran or waited to run.",
        [row for row in sampled if row[1]],
        [
            Column("arm", lambda row: row[0]),
            number("trials", lambda row: len(row[1])),
            number(
                "samples in a trial", lambda row: median(t.server_deltas["sampler"]["samples"] for t in row[1]), ".0f"
            ),
            number("lab, of a CPU", share("lab_cpu_s"), ".2%"),
            number("server, of a CPU", share("server_cpu_s"), ".2%"),
            number("statements, of the time", share("statements_s"), ".2%"),
        ],
    )


@dataclass(frozen=True)
class Host:
    """What the host did at a load point with an arm: name -> mean over the measured part; empty if not observed."""

    point: LoadPoint
    arm: str
    cpu: dict[str, float]
    device: dict[str, float]
    memory: dict[str, float]
    pressure: dict[str, float]


def host_table(data: StudyData) -> Table[Host]:
    """CPUs, the device of the data, memory to be written, and stalls."""
    span = max(1, math.ceil(data.observed_s))

    def means(point: LoadPoint, arm: str, source: str) -> dict[str, float]:
        seen = host_series(data, point, arm, source, span).filter(pl.col("second") == 0)
        return dict(seen.select("name", "value").iter_rows())

    hosts = [
        Host(point, arm, *(means(point, arm, source) for source in ("cpu", "device", "memory", "pressure")))
        for point, arm in data.cells
    ]

    def mode(names: tuple[str, ...]) -> Callable[[Host], float | None]:
        return lambda host: sum(host.cpu.get(name, 0.0) for name in names) if host.cpu else None

    def device(name: str) -> Callable[[Host], float | None]:
        return lambda host: MB * host.device.get(name, 0.0) if host.device else None

    def waited(name: str) -> Callable[[Host], float | None]:
        return lambda host: host.pressure.get(name, 0.0) if host.pressure else None

    machine = "The lab's own machine" if data.result.where is None else "The server's host"
    return Table(
        f"{machine} in the measured part, the mean of an arm's trials: CPUs by what they did, the device of "
        "the data, memory that was to be written, and the share of the time in which some process waited.",
        [host for host in hosts if host.cpu or host.device or host.pressure or "dirty_bytes" in host.memory],
        [
            Column("load point", lambda host: host.point.label),
            Column("arm", lambda host: host.arm),
            *(number(name, mode(names), ".2f") for name, names in CPU_MODES.items()),
            number("reads, MB/s", device("read_bytes"), ",.1f"),
            number("writes, MB/s", device("written_bytes"), ",.1f"),
            number("dirty, MB", lambda host: host.memory.get("dirty_bytes"), lambda size: f"{MB * size:,.0f}"),
            number("waited for CPU", waited("cpu_some_s"), ".1%"),
            number("waited for I/O", waited("io_some_s"), ".1%"),
            number("waited for memory", waited("memory_some_s"), ".1%"),
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
    """Columns of pg_stat_statements, summed over the trials."""
    all_ms: float
    """Time of all statements of the arm there."""

    def each(self, name: str) -> float | None:
        """A counter per call; None where the server has no such counter."""
        return self.counters[name] / self.counters["calls"] if name in self.counters else None


def statement_table(data: StudyData) -> Table[Statement]:
    """The statements that took longest."""
    return Table(
        f"The {_SHOWN} statements that took longest on the server, warm-up included, by pg_stat_statements of this "
        "database: the sum of an arm's trials; shares of the time are among the 50 longest of each trial.",
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
    sums: dict[str, dict[str, float]] = {}
    trials = 0
    for trial in data.trials:
        if (trial.load_point, trial.arm) != (point, arm) or trial.index not in data.observed:
            continue
        rows = data.observed[trial.index].filter(pl.col("source") == _STATEMENTS)
        trials += not rows.is_empty()
        for name, value in rows.select("name", "value").iter_rows():
            counter, _, text = name.partition(": ")
            counters = sums.setdefault(text, {})
            counters[counter] = counters.get(counter, 0.0) + value
    all_ms = sum(counters["exec_ms"] for counters in sums.values()) or 1.0
    for text, counters in sorted(sums.items(), key=lambda item: -item[1]["exec_ms"])[:_SHOWN]:
        yield Statement(point, arm, text, trials, counters, all_ms)


Metric = tuple[str, LoadPoint, dict[str, dict[str, float]]]
"""A metric of the provider, a load point, and by arm the means of all metrics there."""


def provider_table(data: StudyData) -> Table[Metric]:
    """What a provider measured of its servers; without rows for a study that imported no metrics."""

    def mean(arm: str) -> Callable[[Metric], float | None]:
        return lambda row: row[2][arm].get(row[0])

    metrics = provider_metrics_of(data)
    points = [
        (point, {arm: provider_means(data, point, arm) for arm in data.plan.arms}) for point in data.plan.load_points
    ]
    return Table(
        "Mean of the provider's own values that lie wholly within the measured part, over all trials of an arm. A "
        "trial shorter than two of the provider's minutes may have none.",
        [(metric, point, means) for point, means in points for metric in metrics],
        [
            Column("metric", lambda row: row[0]),
            Column("unit", lambda row: provider_unit(row[0])),
            Column("load point", lambda row: row[1].label),
            *(number(arm, mean(arm), ",.4g") for arm in data.plan.arms),
        ],
    )


def cost_table(data: StudyData) -> Table[Cost]:
    """What a committed transaction cost by load point and arm; the rows that differ clearly stand out."""

    def is_clear(cost: Cost) -> bool:
        return clearly(cost, data.plan.margin)

    def point(cost: Cost) -> str:
        return "mean of the ratios" if cost.load_point is None else data.labels[cost.load_point]

    return Table(
        "By committed transaction: the median trial with a distribution-free interval of at least 95%; then the "
        "cost against the baseline's within blocks, estimated by the verdict's rule, with its interval. Clearly: the "
        "interval lies beyond the margin. Each cost is a family of its own, so that among many one may stand out by "
        "chance more often than in 5% of studies. CPU of the machine, context switches, device and network are of all "
        "that ran on the lab's own machine; what no arm has more than next to none of is left out.",
        data.result.costs,
        [
            Column("cost", lambda cost: f"{cost.what}, {cost.unit}" if cost.unit else cost.what),
            Column("load point", point),
            Column("arm", lambda cost: cost.arm),
            number("median", lambda cost: cost.median, _four_digits),
            number("95% interval", _interval),
            number("against the baseline", lambda cost: cost_text(cost) or None),
            Column("clearly", lambda cost: ("yes" if is_clear(cost) else "no") if cost.difference else None),
            number("blocks", lambda cost: cost.blocks if cost.difference else None),
        ],
        is_clear,
    )


def _interval(cost: Cost) -> str | None:
    if cost.low is None or cost.high is None:
        return None
    return f"{_four_digits(cost.low)} to {_four_digits(cost.high)}"


def _four_digits(value: float) -> str:
    places = 0 if value >= 100 else 1 if value >= 10 else 2 if value >= 1 else 4
    return f"{value:,.{places}f}"
