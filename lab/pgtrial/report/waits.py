"""Database load from the stored samples: the mean number of active sessions by what they waited for."""

from __future__ import annotations

import math

import polars as pl

from pgtrial.model.records.study import LoadPoint
from pgtrial.report.data import StudyData

CPU = "CPU"
"""Active without a wait event: on a CPU, or in the queue for one."""

OTHER = "other"
SHOWN = 8
"""Wait events that are told by name, the largest of the study."""

_AT_WORK = ("client backend", "parallel worker")


def active_sessions(data: StudyData, point: LoadPoint, arm: str, step: int) -> pl.DataFrame:
    """Columns second (the first of `step` of them), event, sessions: the mean over the seconds and trials sampled.

    A mean and not a median, so that the events add up to the load, and rare ones are not lost.
    """
    frames = [
        data.waits[trial.index].with_columns(trial=pl.lit(trial.index))
        for trial in data.trials
        if (trial.load_point, trial.arm) == (point, arm) and trial.index in data.waits
    ]
    if not frames:
        return pl.DataFrame(schema={"second": pl.Int64(), "event": pl.String(), "sessions": pl.Float64()})
    seen = pl.concat(frames).with_columns(bin=pl.col("second").floordiv(step) * step)
    sampled = seen.select("trial", "bin", "second").unique().group_by("bin").len("samples")
    named = pl.concat_str(["wait_event_type", "wait_event"], separator=":")
    # one event has one name in all versions: 17 spelled those of I/O anew, WALSync became WalSync
    events = pl.when(pl.col("wait_event").is_null()).then(pl.lit(CPU)).otherwise(named.str.replace("^IO:WAL", "IO:Wal"))
    return (
        seen.filter((pl.col("state") == "active") & pl.col("backend_type").is_in(_AT_WORK))
        .group_by("bin", events.alias("event"))
        .agg(pl.col("sessions").sum())
        .join(sampled, on="bin")
        .select(second="bin", event="event", sessions=pl.col("sessions") / pl.col("samples"))
        .sort("second", "event")
    )


def measured_load(data: StudyData, point: LoadPoint, arm: str) -> dict[str, float] | None:
    """Event -> mean active sessions over the measured part; None where it was not observed."""
    span = max(1, math.ceil(data.measured_s))
    frames = [
        frame
        for trial in data.trials
        if (trial.load_point, trial.arm) == (point, arm) and (frame := data.waits.get(trial.index)) is not None
    ]
    if not any((frame["second"] >= 0).any() for frame in frames):
        return None
    seen = active_sessions(data, point, arm, span).filter(pl.col("second") == 0)
    return dict(zip(seen["event"], seen["sessions"], strict=True))


def events_shown(data: StudyData) -> list[str]:
    """CPU and the largest wait events over the whole study, in the order in which they are shown."""
    sums: dict[str, float] = {}
    for point in data.plan.load_points:
        for arm in data.plan.arms:
            for event, sessions in (measured_load(data, point, arm) or {}).items():
                sums[event] = sums.get(event, 0.0) + sessions
    sums.pop(CPU, None)
    largest = sorted(sums, key=lambda event: (-sums[event], event))[:SHOWN]
    return [CPU, *largest, *([OTHER] if len(sums) > SHOWN else [])]
