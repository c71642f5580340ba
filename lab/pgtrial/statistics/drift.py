"""Finds a trend in the order of measurement that all arms share. A machine that becomes slower or faster causes such a
trend."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pgtrial.statistics.paired_t import ALPHA, quantile


@dataclass(frozen=True)
class Trend:
    """Straight lines through the values of each arm. Each arm has a level of its own, and all arms have the same
    slope."""

    slope: float
    """The change of the value from one run to the next."""
    centres: Mapping[str, float]
    """The mean position of each arm's runs in the order of measurement."""

    def between(self, arm: str, baseline: str) -> float:
        """Returns by how much the mean of an arm would exceed the mean of the baseline because of the trend alone."""
        return self.slope * (self.centres[arm] - self.centres[baseline])


def trend_within(arms: Sequence[str], values: Sequence[float]) -> Trend | None:
    """Returns the trend of the values within the arms, in the order of measurement. `arms` has the arm of each value.
    Returns None if a t test at 5% finds no slope, or if there are too few values.

    A difference between the arms does not count as a trend, since each arm has a level of its own (analysis of
    covariance, Fisher 1932).
    """
    names = list(dict.fromkeys(arms))
    of_arm = np.array([names.index(arm) for arm in arms])
    counts = np.bincount(of_arm)
    freedom = len(values) - len(names) - 1
    if freedom < 1:
        return None
    centres, left_positions = _centred(of_arm, counts, np.arange(len(values), dtype=np.float64))
    _, left_values = _centred(of_arm, counts, np.asarray(values, dtype=np.float64))
    squares = float(left_positions @ left_positions)
    if not squares:
        return None
    slope = float(left_positions @ left_values) / squares
    residuals = left_values - slope * left_positions
    error = math.sqrt(float(residuals @ residuals) / freedom / squares)
    if abs(slope) <= quantile(ALPHA, freedom) * error:
        return None
    return Trend(slope, dict(zip(names, centres.tolist(), strict=True)))


def _centred(of_arm: np.ndarray, counts: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the mean of each arm, and each value minus the mean of its arm."""
    means = np.bincount(of_arm, weights=values) / counts
    return means, values - means[of_arm]
