"""Synthetic studies over numbers of clients or sizes, with counters of reads."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from pgtrial.model.records.load_point import LoadPoint
from pgtrial.model.records.plan import Plan, PlannedTrial
from pgtrial.model.records.trial import Trial
from tests.verdict.studies import POINT, make_plan, run

CLIENTS = (1, 2, 4, 8, 16, 32, 64)
SCALES = (10, 20, 40, 80, 160, 320, 640)

Speed = Callable[[str, LoadPoint], float]
"""The tps of an arm at a load point."""


def points(clients: Sequence[int] = (8,), scales: Sequence[int] = (10,)) -> list[LoadPoint]:
    return [POINT.model_copy(update={"clients": each, "scale": scale}) for scale in scales for each in clients]


def sweep(
    at: Sequence[LoadPoint], speed: Speed, *, blocks: int = 11, sd: float = 0.02, reads: Speed | None = None, seed=5
) -> tuple[Plan, list[Trial]]:
    """Returns a sweep of the arms `a` and `b`. The noise of each trial is independent, and `reads` returns the buffers
    read per transaction.
    """
    plan = make_plan(("a", "b"), blocks=blocks, points=at)
    rng = np.random.default_rng(seed)

    def tps(planned: PlannedTrial) -> float:
        return speed(planned.arm, at[planned.load_point]) * math.exp(sd * rng.standard_normal())

    def with_reads(trial: Trial) -> Trial:
        transactions = float(trial.measured.transactions if trial.measured else 0)
        counted = {
            "xact_commit": transactions,
            "blks_read": transactions * (reads(trial.arm, trial.load_point) if reads else 0),
        }
        return trial.model_copy(update={"server_deltas": {"database": counted}})

    trials = run(plan, tps)
    return plan, [with_reads(trial) for trial in trials] if reads is not None else trials


def misses(holds: float, scale: int) -> float:
    """Returns the share of random page reads that miss a cache that holds the data of scale `holds`, at this scale."""
    return max(0.0, 1 - holds / scale)
