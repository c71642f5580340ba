"""Trials as a study directory may hold them, without having been run."""

from __future__ import annotations

from hdrh.histogram import HdrHistogram

from pgtrial.model.records.plan import PlannedTrial
from pgtrial.model.records.trial import Phase, Trial
from pgtrial.store.directory import StudyDirectory


def completed_trial(study: StudyDirectory, planned: PlannedTrial) -> Trial:
    """Returns the record of a planned trial that completed; it is not written to the store."""
    return Trial(
        index=planned.index,
        block=planned.block,
        arm=planned.arm,
        load_point=study.plan.load_points[planned.load_point],
        seed=planned.seed,
        place=planned.place,
        status="completed",
        started="2026-11-20T14:12:00+00:00",
        ended="2026-11-20T14:12:07+00:00",
        phases_s={"load": 7.0},
        measured=Phase(duration_s=5, transactions=500, failures={}, tps=100, latency_us=None),
    )


def encoded(*latencies: int) -> str:
    """Latencies, microseconds, as the engine writes them."""
    histogram = HdrHistogram(1, 3_600_000_000_000, 3)
    for latency in latencies:
        histogram.record_value(1000 * latency)
    return histogram.encode().decode()
