"""Series over the seconds of a trial, averaged over an arm's trials: sessions by wait event, the activity of the host,
and the metrics of a cloud provider."""

from __future__ import annotations

import math

import polars as pl

from pgtrial.evidence.observe.cloudwatch import UNITS
from pgtrial.model.records.load_point import LoadPoint
from pgtrial.report.data import Cells, StudyData

MB = 1e-6

CPU_MODES = {
    "user": ("user_s", "nice_s"),
    "system": ("system_s",),
    "interrupts": ("irq_s", "softirq_s"),
    "waiting for I/O": ("iowait_s",),
    "stolen": ("steal_s",),
}
"""The activities that keep the host's CPUs busy or waiting, each with the counters that measure it."""

_SHOWN = {"bytes": (1e-9, "GB"), "bytes/s": (MB, "MB/s"), "s": (1e3, "ms")}
"""The provider's units that are shown in another unit, each with the factor and the other unit."""

_SERIES = {"second": pl.Int64(), "name": pl.String(), "value": pl.Float64()}


def host_series(data: StudyData, point: LoadPoint, arm: str, source: str, step: int) -> pl.DataFrame:
    """Returns the activity of the host as a frame with the columns second, name and value: the mean over the trials and
    over all seconds in which pgtrial took measurements. `step` seconds are joined into one row, and `second` is the
    first of them.

    A counter that never moved in a trial has no row there, and counts as zero.
    """
    observed = _of(data.observed_by_cell, point, arm).filter(pl.col("source") == source)
    return _means(observed, observed, step, "name", "value")


def _means(observed: pl.DataFrame, kept: pl.DataFrame, step: int, name: str, value: str) -> pl.DataFrame:
    """Returns the mean of a value in each second. `observed` has a row for each second in which pgtrial took
    measurements, and `kept` has the measurements that count. The result has the columns second, name and value: the
    sums over the rows of `kept`, divided by the number of seconds in `observed`. `step` seconds are joined into one
    row."""
    first = pl.col("second").floordiv(step) * step
    seconds = observed.select("trial", "second", bin=first).unique().group_by("bin").len("seconds")
    sums = kept.group_by(name, bin=first).agg(pl.col(value).sum()).join(seconds, on="bin")
    return sums.select(pl.col("bin").alias("second"), name, pl.col(value) / pl.col("seconds")).sort("second", name)


def provider_series(data: StudyData, point: LoadPoint, arm: str, step: int) -> pl.DataFrame:
    """Returns the provider's metrics as a frame with the columns second, name and value, in the unit of
    `provider_unit`. `step` seconds are joined into one row, which has the mean of the values whose middle lies in these
    seconds."""
    metrics = _of(data.provider_by_cell, point, arm)
    return (
        metrics.group_by(second=(pl.col("second") + pl.col("span_s") // 2).floordiv(step) * step, name="name")
        .agg(pl.col("value").mean() * pl.col("name").first().replace_strict(_FACTORS, default=1.0))
        .sort("second", "name")
    )


def provider_means(data: StudyData, point: LoadPoint, arm: str) -> dict[str, float]:
    """Returns, for each metric, the mean of the values that lie entirely within the measured part, in the unit of
    `provider_unit`."""
    within = _of(data.provider_by_cell, point, arm).filter(
        (pl.col("second") >= 0) & (pl.col("second") + pl.col("span_s") <= data.observed_s)
    )
    means = within.group_by("name").agg(pl.col("value").mean())
    return {name: value * _FACTORS.get(name, 1.0) for name, value in means.iter_rows()}


def provider_metrics_of(data: StudyData) -> list[str]:
    """Returns the metrics that are not zero everywhere. The metrics that can limit a server come first."""
    frames = [frame.filter(pl.col("value") != 0)["name"] for frame in data.provider.values()]
    present = set(pl.concat(frames)) if frames else set()
    return [name for name in UNITS if name in present]


def provider_unit(metric: str) -> str:
    """Returns the unit in which a metric is shown."""
    return _SHOWN.get(UNITS[metric], (1.0, UNITS[metric]))[1]


_FACTORS = {metric: _SHOWN[unit][0] for metric, unit in UNITS.items() if unit in _SHOWN}


def _of(cells: Cells, point: LoadPoint, arm: str) -> pl.DataFrame:
    """Returns the rows of an arm's trials at a load point."""
    empty = {**_SERIES, "source": pl.String(), "span_s": pl.Int64(), "trial": pl.Int32()}
    return cells[point, arm] if (point, arm) in cells else pl.DataFrame(schema=empty)


CPU = "CPU"
"""The name of the state of an active session without a wait event. Such a session runs on a CPU or waits for one."""

OTHER = "other"
SHOWN = 8
"""The number of wait events that are shown by their own names: the largest ones of the study."""

_AT_WORK = ("client backend", "parallel worker")


def active_sessions(data: StudyData, point: LoadPoint, arm: str, step: int) -> pl.DataFrame:
    """Returns the active sessions as a frame with the columns second, event and sessions: the mean over all sampled
    seconds of the trials. `step` seconds are joined into one row, and `second` is the first of them.

    It is a mean and not a median, so that the events add up to the total and rare events are not lost.
    """
    sampled = _of(data.waits_by_cell, point, arm)
    if sampled.is_empty():
        return pl.DataFrame(schema={"second": pl.Int64(), "event": pl.String(), "sessions": pl.Float64()})
    named = pl.concat_str(["wait_event_type", "wait_event"], separator=":")
    # give each event the same name for all versions: PostgreSQL 17 renamed I/O events, such as WALSync to WalSync
    events = pl.when(pl.col("wait_event").is_null()).then(pl.lit(CPU)).otherwise(named.str.replace("^IO:WAL", "IO:Wal"))
    at_work = sampled.filter((pl.col("state") == "active") & pl.col("backend_type").is_in(_AT_WORK))
    return _means(sampled, at_work.with_columns(event=events), step, "event", "sessions")


def measured_load(data: StudyData, point: LoadPoint, arm: str) -> dict[str, float] | None:
    """Returns the mean number of active sessions in the measured part, by wait event; None if pgtrial took no samples
    of the sessions."""
    span = max(1, math.ceil(data.observed_s))
    if not (_of(data.waits_by_cell, point, arm)["second"] >= 0).any():
        return None
    sessions = active_sessions(data, point, arm, span).filter(pl.col("second") == 0)
    return dict(zip(sessions["event"], sessions["sessions"], strict=True))


def events_shown(data: StudyData) -> list[str]:
    """Returns `CPU` and the largest wait events of the whole study, in the order in which they are shown."""
    sums: dict[str, float] = {}
    for point, arm in data.cells:
        for event, sessions in (measured_load(data, point, arm) or {}).items():
            sums[event] = sums.get(event, 0.0) + sessions
    sums.pop(CPU, None)
    largest = sorted(sums, key=lambda event: (-sums[event], event))[:SHOWN]
    return [CPU, *largest, *([OTHER] if len(sums) > SHOWN else [])]
