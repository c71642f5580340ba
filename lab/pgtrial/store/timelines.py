"""What timelines say, as plain numbers: committed transactions of each second."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from pgtrial.model.records.study import Trial
from pgtrial.store.directory import StudyDirectory


def committed_seconds(study: StudyDirectory, trials: Sequence[Trial]) -> dict[int, list[int]]:
    """Committed transactions in each second of the measured part, by index of the trial. Raises StoreError."""
    return {trial.index: committed_per_second(study.timeline(trial)) for trial in trials}


def committed_per_second(timeline: pl.DataFrame) -> list[int]:
    """Committed transactions of each second of the measured part; a second without a row had none."""
    measured = timeline.filter(pl.col("phase") == "measure")
    if measured.is_empty():
        return []
    seconds = [int(second) for second in measured["second"]]
    committed = [0] * (max(seconds) + 1)
    for second, transactions in zip(seconds, measured["transactions"], strict=True):
        committed[second] += int(transactions)
    return committed
