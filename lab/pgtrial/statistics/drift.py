"""A trend in the order of measurement that all arms share: what a machine that becomes slower or faster leaves."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pgtrial.statistics.paired_t import ALPHA, quantile


@dataclass(frozen=True)
class Trend:
    """A straight line through the values of each arm, with one slope for all arms."""

    slope: float
    """The change of a value from one run to the next."""
    centres: Mapping[str, float]
    """The mean place of each arm's runs in the order of measurement."""

    def between(self, arm: str, baseline: str) -> float:
        """Returns by how much the trend alone makes the mean of an arm exceed that of the baseline."""
        return self.slope * (self.centres[arm] - self.centres[baseline])


def trend_within(arms: Sequence[str], values: Sequence[float]) -> Trend | None:
    """Returns the trend of the values in the order of measurement within the arms; None if a t test of the slope at 5%
    does not find one, or if there are too few values.

    A difference of the arms does not enter, since each arm has a level of its own (analysis of covariance, Fisher
    1932).
    """
    names = list(dict.fromkeys(arms))
    of_arm = np.array([names.index(arm) for arm in arms])
    counts = np.bincount(of_arm)
    freedom = len(values) - len(names) - 1
    if freedom < 1:
        return None
    centres, left_places = _centred(of_arm, counts, np.arange(len(values), dtype=np.float64))
    _, left_values = _centred(of_arm, counts, np.asarray(values, dtype=np.float64))
    squares = float(left_places @ left_places)
    if not squares:
        return None
    slope = float(left_places @ left_values) / squares
    residuals = left_values - slope * left_places
    error = math.sqrt(float(residuals @ residuals) / freedom / squares)
    if abs(slope) <= quantile(ALPHA, freedom) * error:
        return None
    return Trend(slope, dict(zip(names, centres.tolist(), strict=True)))


def _centred(of_arm: np.ndarray, counts: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the mean of each arm, and the values without the mean of their arm."""
    means = np.bincount(of_arm, weights=values) / counts
    return means, values - means[of_arm]
