"""Whether the arms had settled: the trend of tps within the measured part, tested over blocks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
from scipy.special import bdtrc

from pgtrial.model.records.results import Steadiness
from pgtrial.model.records.study import Trial
from pgtrial.statistics.ratios import Grid

NEGLIGIBLE = 0.01
"""A trend within a trial, as a share, that is not called a trend."""

FEWEST_SECONDS = 4
"""Whole seconds below which a slope says nothing."""

FEWEST_BLOCKS = 6
"""Blocks below which the sign test cannot find a trend, so that finding none means nothing."""

Seconds = Mapping[int, Sequence[int]]
"""Committed transactions in each second of the measured part, by index of the trial."""


def steadiness(grid: Grid, arm: str, seconds: Seconds) -> Steadiness:
    """A sign test over blocks: do more than half of all blocks rise, or fall, by more than 1%? 5% error, two-sided."""
    trends = []
    for block in grid.counted:
        slopes = [trend(trial, seconds.get(trial.index, ())) for trial in grid.of(arm) if trial.block == block]
        known = [slope for slope in slopes if slope is not None]
        if known:
            trends.append(math.fsum(known) / len(known))
    rising = sum(value > math.log1p(NEGLIGIBLE) for value in trends)
    falling = sum(value < math.log1p(-NEGLIGIBLE) for value in trends)
    state: Literal["steady", "rising", "falling", "unknown"] = "steady" if len(trends) >= FEWEST_BLOCKS else "unknown"
    if _most(rising, len(trends)):
        state = "rising"
    elif _most(falling, len(trends)):
        state = "falling"
    return Steadiness(
        arm=arm,
        state=state,
        trend=math.expm1(float(np.median(trends))) if trends else None,
        blocks=len(trends),
        rising=rising,
        falling=falling,
    )


def trend(trial: Trial, committed: Sequence[int]) -> float | None:
    """Change of ln tps from start to end of the measured part by the Theil-Sen slope; None for too few seconds.

    The last second counts only if it is whole. A second without a commit counts as half a transaction.
    """
    if trial.measured is None:
        return None
    whole = np.asarray(committed[: math.floor(trial.measured.duration_s + 0.01)], dtype=np.float64)
    if len(whole) < FEWEST_SECONDS or not whole.any():
        return None
    logs = np.log(np.maximum(whole, 0.5))
    first, second = np.triu_indices(len(logs), 1)
    return float(np.median((logs[second] - logs[first]) / (second - first))) * len(logs)


def _most(hits: int, of: int) -> bool:
    return of > 0 and float(bdtrc(hits - 1, of, 0.5)) <= 0.025
