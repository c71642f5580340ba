"""Quantities that are measured in a trial, and the scales on which two trials of a block are compared by them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from pgtrial.model.records.trial import Trial
from pgtrial.statistics import p8


@dataclass(frozen=True)
class Scale:
    """A way to compare two values. If the arms do not differ, the coin makes the sign of the compared value random."""

    name: Literal["ratio", "difference"]
    compared: Callable[[float, float], float | None]
    """Compares the first value with the second; None if the pair says nothing."""
    worst: float
    """The magnitude that stands for a pair in which only one trial has a value: the worst possible rank."""
    limits: Callable[[float], p8.Limits]
    """Returns, for a margin, the limits between which a difference is equivalent."""
    shown: Callable[[float], float]
    """Converts a value that the rule reads into the relative or absolute difference that is shown."""
    falls: bool = False
    """True if the shown difference is smaller the better the arm is. The bounds of an interval then change places."""


RATIO = Scale("ratio", p8.log_ratio, p8.WORST, p8.ratio_limits, math.expm1)
"""Compares by the log-ratio, and shows it as a relative difference."""

DIFFERENCE = Scale("difference", lambda first, second: first - second, 1.0, lambda margin: (-margin, margin), float)
"""Compares shares, which may be zero, by their difference."""


def _reduction(first: float, second: float) -> float | None:
    """Returns the log-ratio of two values of which the smaller is better; a failed trial has an infinite value."""
    if math.isinf(first) and math.isinf(second):
        return None
    if math.isinf(first) or math.isinf(second):
        return math.copysign(p8.WORST, first - second)
    return p8.log_ratio(first, second)


def _reduction_limits(margin: float) -> p8.Limits:
    low, high = p8.ratio_limits(margin)
    return -high, -low


REDUCTION = Scale("ratio", _reduction, p8.WORST, _reduction_limits, lambda log: math.expm1(-log), falls=True)
"""Compares by the log-ratio of two values of which the smaller is better, and shows the change of the value: -12% is
better."""


@dataclass(frozen=True)
class Metric:
    """A quantity of a trial, the unit in which it is shown, and how arms are compared by it."""

    name: str
    unit: str
    value: Callable[[Trial], float | None]
    """Returns a trial's value; None if it is not known.

    A failed trial has the worst value: 0, or infinity on the scale REDUCTION.
    """
    better: Literal["more", "less", "neither"] = "more"
    """The direction in which a value is better. With `neither`, a positive difference means that the arm has the larger
    value."""
    scale: Scale = RATIO
    missing: Literal["worst", "unknown"] = "unknown"
    """The treatment of a pair in which one trial has no value: `worst` counts it as if that trial had failed, `unknown`
    leaves the pair out."""
    at_every_point: bool = True
    """True if a mean over load points needs the values at all of them; if false, those with known values suffice."""
    paired: Callable[[Trial, Trial], tuple[float | None, float | None]] | None = None
    """Returns the values of two trials of a block, for a metric whose value in one trial depends on the other trial.
    None: `value` computes the value of each trial alone."""
    is_bound: Callable[[Trial], bool] = lambda _: False
    """True if the value of a trial is only known to be at least as bad, such as the time of a cancelled query."""
    bounds_compare: bool = False
    """True if two trials are compared even if the values of both are such bounds, because each is a mean over several
    values."""

    def values(self, trial: Trial, base: Trial) -> tuple[float | None, float | None]:
        """Returns the values of a trial and of the baseline's trial of the same block.

        If the trials know only bounds of both values, both are None, unless `bounds_compare` is set.
        """
        if not self.bounds_compare and self.is_bound(trial) and self.is_bound(base):
            return None, None
        return self.paired(trial, base) if self.paired is not None else (self.value(trial), self.value(base))

    def gain(self, arm: float | None, baseline: float | None) -> float | None:
        """Returns by how much the arm's value is better, on the metric's scale; None if the values do not say it."""
        if arm is None and baseline is None:
            return None
        if arm is None or baseline is None:
            worst = self.scale.worst if baseline is None else -self.scale.worst
            return worst if self.missing == "worst" else None
        pair = (baseline, arm) if self.better == "less" else (arm, baseline)
        compared = self.scale.compared(*pair)
        return None if compared is None else max(-self.scale.worst, min(self.scale.worst, compared))

    def is_known(self, arm: float | None, baseline: float | None) -> bool:
        """True if it is known how the block of these two values counts: both values are known, or a missing value
        counts as that of a failed trial."""
        return self.missing == "worst" or (arm is not None and baseline is not None)
