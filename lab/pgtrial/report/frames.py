"""Studies as data frames: a row for each study, comparison, trial, and second."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import polars as pl

from pgtrial.model.records.plan import LoadPoint
from pgtrial.model.records.trial import Trial
from pgtrial.report.data import read_measured
from pgtrial.statistics.ratios import Grid
from pgtrial.store.directory import StudyDirectory
from pgtrial.store.tables import TIMELINE_SCHEMA

_LOAD = {"load_point": pl.String(), "workload": pl.String(), "scale": pl.Int64(), "clients": pl.Int64()}

STUDIES: dict[str, pl.DataType] = {
    "name": pl.String(),
    "question": pl.String(),
    "created": pl.String(),
    "baseline": pl.String(),
    "arms": pl.List(pl.String()),
    "measure": pl.String(),
    "blocks": pl.Int64(),
    "blocks_planned": pl.Int64(),
    "margin": pl.Float64(),
    "scope": pl.String(),
}
CLAIMS: dict[str, pl.DataType] = {
    "arm": pl.String(),
    "baseline": pl.String(),
    "load_point": pl.String(),
    "regime": pl.String(),
    "verdict": pl.String(),
    "difference": pl.Float64(),
    "low": pl.Float64(),
    "high": pl.Float64(),
    "blocks": pl.Int64(),
}
TRIALS: dict[str, pl.DataType] = {
    "trial": pl.Int64(),
    "block": pl.Int64(),
    "arm": pl.String(),
    **_LOAD,
    "rate": pl.Float64(),
    "status": pl.String(),
    "reason": pl.String(),
    "started": pl.String(),
    "duration_s": pl.Float64(),
    "transactions": pl.Int64(),
    "failed": pl.Int64(),
    "tps": pl.Float64(),
    **{name: pl.Float64() for name in ("mean_us", "p50_us", "p90_us", "p95_us", "p99_us", "p999_us", "max_us")},
    "client_cpu_us": pl.Float64(),
    "round_trip_us": pl.Float64(),
    "quality": pl.Float64(),
}
SECONDS: dict[str, pl.DataType] = {
    "trial": pl.Int64(),
    "block": pl.Int64(),
    "arm": pl.String(),
    "load_point": pl.String(),
    **TIMELINE_SCHEMA,
}


def study_frame(study: StudyDirectory) -> pl.DataFrame:
    """One row: the question and the plan."""
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
    return pl.DataFrame([row], schema=STUDIES)


def claim_frame(study: StudyDirectory) -> pl.DataFrame:
    """A row for each comparison: the primary ones, whose load_point is null where it is a mean over several, and those
    of each load point. `difference`, `low` and `high` are shares.
    """
    result = read_measured(study).result
    single = len(result.load_points) == 1
    rows = []
    for claim in [*result.primary, *(() if single else result.by_load_point)]:
        place = 0 if single else claim.load_point
        for part in claim.read:
            found = part.difference
            rows.append(
                {
                    "arm": part.arm,
                    "baseline": part.baseline,
                    "load_point": None if place is None else result.load_points[place].label,
                    "regime": part.regime,
                    "verdict": part.verdict,
                    "difference": found.value if found else None,
                    "low": found.low if found else None,
                    "high": found.high if found else None,
                    "blocks": part.blocks,
                }
            )
    return pl.DataFrame(rows, schema=CLAIMS)


def trial_frame(study: StudyDirectory) -> pl.DataFrame:
    """A row for each stored trial: its measured part. Numbers of trials and blocks count from 1, as in reports."""
    return pl.DataFrame([_trial(trial) for trial in study.trials()], schema=TRIALS)


def _trial(trial: Trial) -> Mapping[str, object]:
    measured, client, latency = trial.measured, trial.client, trial.measured.latency_us if trial.measured else None
    times = latency.model_dump(exclude={"stddev", "min"}) if latency else {}
    return {
        **_place(trial),
        **_load(trial.load_point),
        "rate": trial.load_point.rate,
        "status": trial.status,
        "reason": trial.reason,
        "started": trial.started,
        "duration_s": measured.duration_s if measured else None,
        "transactions": measured.transactions if measured else None,
        "failed": sum(measured.failures.values()) if measured else None,
        "tps": measured.tps if measured else None,
        **{f"{name}_us": value for name, value in times.items()},
        "client_cpu_us": client.cpu_per_transaction_us if client else None,
        "round_trip_us": trial.round_trip_us,
        "quality": trial.quality,
    }


def _place(trial: Trial) -> dict[str, object]:
    return {"trial": trial.index + 1, "block": trial.block + 1, "arm": trial.arm}


def _load(point: LoadPoint) -> dict[str, object]:
    return {
        "load_point": point.label,
        "workload": point.workload,
        "scale": point.scale,
        "clients": point.clients,
    }


def second_frame(study: StudyDirectory) -> pl.DataFrame:
    """A row for each second of each trial, warm-up and measured part; of interleaved trials of the arm's own time."""
    parts = [
        study.timeline(trial).select(
            *(pl.lit(value).alias(name) for name, value in _place(trial).items()),
            pl.lit(trial.load_point.label).alias("load_point"),
            pl.all(),
        )
        for trial in study.trials()
    ]
    return pl.concat([pl.DataFrame(schema=SECONDS), *parts], how="vertical_relaxed").cast(SECONDS)  # type: ignore[arg-type]


FRAMES: dict[str, Callable[[StudyDirectory], pl.DataFrame]] = {
    "studies": study_frame,
    "claims": claim_frame,
    "trials": trial_frame,
    "seconds": second_frame,
}
"""The tables of `pgtrial sql`."""


def frame_of(table: str, studies: Iterable[tuple[str, StudyDirectory]]) -> pl.DataFrame:
    """One of FRAMES over several studies, each with its name in the first column, `study`."""
    parts = [FRAMES[table](study).select(pl.lit(name).alias("study"), pl.all()) for name, study in studies]
    return pl.concat(parts)
