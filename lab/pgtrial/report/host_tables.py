"""The tables of what the host did, and of the statements on which the server spent its time."""

from __future__ import annotations

import math
from collections.abc import Iterator

import polars as pl

from pgtrial.model.records.study import LoadPoint
from pgtrial.report.data import StudyData
from pgtrial.report.series import CPU_MODES, MB, host_series
from pgtrial.report.tables import NONE, Table

_STATEMENTS = "pg_stat_statements"
_SHOWN = 5
"""Statements of an arm at a load point, those that took longest."""


def host_tables(data: StudyData) -> list[Table]:
    """Of studies on the lab's own machine; of statements wherever the server tells them."""
    return [_host_table(data), _statement_table(data)] if data.observed else []


def _host_table(data: StudyData) -> Table:
    rows = []
    for point in data.plan.load_points:
        for arm in data.plan.arms:
            cells = list(_host_cells(data, point, arm))
            if set(cells) != {NONE}:
                rows.append([point.label, arm, *cells])
    heads = ["load point", "arm", *CPU_MODES, "reads, MB/s", "writes, MB/s", "dirty, MB", "waited for CPU",
             "waited for I/O", "waited for memory"]  # fmt: skip
    machine = "The lab's own machine" if data.result.where is None else "The server's host"
    caption = (
        f"{machine} in the measured part, the mean of an arm's trials: CPUs by what they did, the device of "
        "the data, memory that was to be written, and the share of the time in which some process waited."
    )
    return Table(caption, heads, rows, frozenset(range(2, len(heads))))


def _host_cells(data: StudyData, point: LoadPoint, arm: str) -> Iterator[str]:
    cpu, device, memory, pressure = (
        _means(data, point, arm, source) for source in ("cpu", "device", "memory", "pressure")
    )
    for names in CPU_MODES.values():
        yield f"{sum(cpu.get(name, 0.0) for name in names):.2f}" if cpu else NONE
    for name in ("read_bytes", "written_bytes"):
        yield f"{MB * device.get(name, 0.0):,.1f}" if device else NONE
    yield f"{MB * memory['dirty_bytes']:,.0f}" if "dirty_bytes" in memory else NONE
    for name in ("cpu_some_s", "io_some_s", "memory_some_s"):
        yield f"{pressure.get(name, 0.0):.1%}" if pressure else NONE


def _means(data: StudyData, point: LoadPoint, arm: str, source: str) -> dict[str, float]:
    """Name -> mean over the measured part; empty where it was not observed."""
    span = max(1, math.ceil(data.measured_s))
    seen = host_series(data, point, arm, source, span).filter(pl.col("second") == 0)
    return dict(seen.select("name", "value").iter_rows())


def _statement_table(data: StudyData) -> Table:
    rows = [
        [point.label, arm, *cells]
        for point in data.plan.load_points
        for arm in data.plan.arms
        for cells in _statements(data, point, arm)
    ]
    heads = ["load point", "arm", "statement", "calls in a trial", "mean, ms", "of the time", "rows a call",
             "buffers read a call", "WAL bytes a call"]  # fmt: skip
    caption = (
        f"The {_SHOWN} statements that took longest on the server, warm-up included, by pg_stat_statements of this "
        "database: the sum of an arm's trials; shares of the time are among the 50 longest of each trial."
    )
    return Table(caption, heads, rows, frozenset(range(3, len(heads))))


def _statements(data: StudyData, point: LoadPoint, arm: str) -> Iterator[list[str]]:
    told: dict[str, dict[str, float]] = {}
    trials = 0
    for trial in data.trials:
        if (trial.load_point, trial.arm) != (point, arm) or trial.index not in data.observed:
            continue
        rows = data.observed[trial.index].filter(pl.col("source") == _STATEMENTS)
        trials += not rows.is_empty()
        for name, value in rows.select("name", "value").iter_rows():
            counter, _, text = name.partition(": ")
            counters = told.setdefault(text, {})
            counters[counter] = counters.get(counter, 0.0) + value
    whole = sum(counters["exec_ms"] for counters in told.values()) or 1.0
    for text, counters in sorted(told.items(), key=lambda item: -item[1]["exec_ms"])[:_SHOWN]:
        calls = counters["calls"]
        yield [
            text,
            f"{calls / trials:,.0f}",
            f"{counters['exec_ms'] / calls:,.3f}",
            f"{counters['exec_ms'] / whole:.1%}",
            *(f"{counters[name] / calls:,.2f}" for name in ("rows", "blks_read")),
            f"{counters['wal_bytes'] / calls:,.0f}",
        ]
