"""Studies as polars data frames, with a row for each study, comparison, trial or second."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import polars as pl

from pgtrial.model.records import Record
from pgtrial.model.records.trial import Trial
from pgtrial.report.data import read_measured
from pgtrial.store.directory import StudyDirectory
from pgtrial.store.tables import TIMELINE_SCHEMA
from pgtrial.verdict.grid import Grid

_PLACE = {
    **dict.fromkeys(("trial", "block"), pl.Int64()),
    **dict.fromkeys(("arm", "load_point"), pl.String()),
}
CLAIMS: dict[str, pl.DataType] = {
    **dict.fromkeys(("arm", "baseline", "load_point", "regime", "verdict"), pl.String()),
    **dict.fromkeys(("difference", "low", "high"), pl.Float64()),
    "blocks": pl.Int64(),
}
METRICS: dict[str, pl.DataType] = {
    **dict.fromkeys(("metric", "unit", "arm", "baseline", "verdict"), pl.String()),
    "primary": pl.Boolean(),
    **dict.fromkeys(("value", "baseline_value", "difference", "low", "high"), pl.Float64()),
    "blocks": pl.Int64(),
}
_TIMES = ("mean_us", "p50_us", "p90_us", "p95_us", "p99_us", "p999_us", "max_us")
TRIALS: dict[str, pl.DataType] = {
    **_PLACE,
    "workload": pl.String(),
    "scale": pl.Float64(),
    "clients": pl.Int64(),
    "rate": pl.Float64(),
    **dict.fromkeys(("status", "reason", "started"), pl.String()),
    "duration_s": pl.Float64(),
    **dict.fromkeys(("transactions", "failed"), pl.Int64()),
    **dict.fromkeys(("tps", *_TIMES, "client_cpu_us", "round_trip_us", "quality"), pl.Float64()),
}
SECONDS: dict[str, pl.DataType] = {**_PLACE, **TIMELINE_SCHEMA}
"""The columns of the frame of seconds. A field of a stored row that is not named here is left out of the frame, and the
other frames treat fields in the same way."""


def study_frame(study: StudyDirectory) -> pl.DataFrame:
    """Returns a frame with a single row, which has the question and the plan of the study."""
    plan = study.plan
    row = {
        "name": plan.name,
        "question": study.spec.study.question,
        "created": plan.created,
        "baseline": plan.baseline,
        "arms": plan.arms,
        "measure": plan.measure,
        "blocks": len(Grid(plan, study.trials()).counted),
        "blocks_planned": plan.max_blocks,
        "margin": plan.margin,
        "scope": plan.scope,
    }
    return pl.DataFrame([row])


def claim_frame(study: StudyDirectory) -> pl.DataFrame:
    """Returns a row for each comparison: for the primary claims, which decide the verdict, and for the comparisons at
    each load point. The load_point is null if the comparison is about the mean over several load points. `difference`,
    `low` and `high` are the difference from the baseline and its interval as fractions of the baseline: 0.05 means 5%
    more."""
    result = read_measured(study).result
    single = len(result.load_points) == 1
    rows = []
    for claim in [*result.primary, *(() if single else result.by_load_point)]:
        load_point = 0 if single else claim.load_point
        label = None if load_point is None else result.load_points[load_point].label
        for part in claim.read:
            value = part.difference.value if part.difference else None
            rows.append({**_fields(part), **_fields(part.difference), "difference": value, "load_point": label})
    return pl.DataFrame(rows, schema=CLAIMS)


def metric_frame(study: StudyDirectory) -> pl.DataFrame:
    """Returns a row for each metric that the study file declares, in each comparison of an arm with the baseline.
    `difference`, `low` and `high` are the difference from the baseline and its interval as fractions of the baseline:
    0.05 means 5% more."""
    rows = [
        {
            **_fields(row),
            **_fields(row.difference),
            "difference": row.difference.value if row.difference else None,
            "value": row.values.get(row.arm),
            "baseline_value": row.values.get(row.baseline),
        }
        for row in read_measured(study).result.metrics
    ]
    return pl.DataFrame(rows, schema=METRICS)


def trial_frame(study: StudyDirectory) -> pl.DataFrame:
    """Returns a row for each stored trial, with the values of its measured part. Trials and blocks are numbered from 1,
    as in reports."""
    return pl.DataFrame([_trial(trial) for trial in study.trials()], schema=TRIALS)


def _trial(trial: Trial) -> dict[str, Any]:
    measured, client = trial.measured, trial.client
    latency = _fields(measured.latency_us if measured else None)
    return {
        **_fields(trial),
        **_fields(trial.load_point),
        **_fields(measured),
        **{f"{name}_us": value for name, value in latency.items()},
        **_coordinates(trial),
        "failed": sum(measured.failures.values()) if measured else None,
        "client_cpu_us": client.cpu_per_transaction_us if client else None,
    }


def _fields(record: Record | None) -> dict[str, Any]:
    return dict(record) if record is not None else {}


def _coordinates(trial: Trial) -> dict[str, Any]:
    """Returns the columns that identify a trial: its number, its block, its arm and its load point."""
    return {
        "trial": trial.index + 1,
        "block": trial.block + 1,
        "arm": trial.arm,
        "load_point": trial.load_point.label,
    }


def second_frame(study: StudyDirectory) -> pl.DataFrame:
    """Returns a row for each second of each trial, in the warm-up and in the measured part. If the arms of a trial take
    turns in slices, only the time of the arm's own slices is counted, so that the seconds of one arm follow each other
    without gaps."""
    parts = [
        study.timeline(trial).select(
            *(pl.lit(value).alias(name) for name, value in _coordinates(trial).items()), pl.all()
        )
        for trial in study.trials()
    ]
    return pl.concat([pl.DataFrame(schema=SECONDS), *parts], how="vertical_relaxed").cast(SECONDS)  # type: ignore[arg-type]


FRAMES: dict[str, Callable[[StudyDirectory], pl.DataFrame]] = {
    "studies": study_frame,
    "claims": claim_frame,
    "metrics": metric_frame,
    "trials": trial_frame,
    "seconds": second_frame,
}
"""The tables of `pgtrial sql`, each with the function that makes its rows for one study."""


def frame_of(table: str, studies: Iterable[tuple[str, StudyDirectory]]) -> pl.DataFrame:
    """Returns one of the tables in FRAMES, such as `trials`, for several studies together. The first column, `study`,
    has the name of the study."""
    parts = [FRAMES[table](study).select(pl.lit(name).alias("study"), pl.all()) for name, study in studies]
    return pl.concat(parts)
