"""Metrics, which are quantities that are measured in a trial, and the scales on which two trials of a block are
compared by a metric."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from pgtrial.model.records.trial import Trial
from pgtrial.statistics import p8


@dataclass(frozen=True)
class Scale:
    """A way to compare the values of two trials by one number. The statistical rule for verdicts only requires that, if
    the arms do not differ, the sign of this number is as random as a coin."""

    name: Literal["ratio", "difference"]
    compared: Callable[[float, float], float | None]
    """Compares the first value with the second. Returns None if the two values cannot be compared."""
    worst: float
    """The number that stands for a pair in which only one trial has a value. It is so large that no other pair of
    trials gets a more extreme rank."""
    limits: Callable[[float], p8.Limits]
    """Returns, for a margin, the limits between which a difference counts as equivalent."""
    shown: Callable[[float], float]
    """Converts a compared number into the relative or absolute difference that users see."""
    falls: bool = False
    """True if a better arm has a smaller shown difference, such as -12% for a time. The shown number then falls when
    the compared number rises, so that the lower and the upper bound of an interval are exchanged when it is shown."""


RATIO = Scale("ratio", p8.log_ratio, p8.WORST, p8.ratio_limits, math.expm1)
"""Compares two values by their log-ratio, and shows it as a relative difference."""

DIFFERENCE = Scale("difference", lambda first, second: first - second, 1.0, lambda margin: (-margin, margin), float)
"""Compares two shares by their difference. A log-ratio is not possible, since shares may be zero."""


def _reduction(first: float, second: float) -> float | None:
    """Returns the log-ratio of two values, the smaller of which is better. A failed trial has an infinite value."""
    if math.isinf(first) and math.isinf(second):
        return None
    if math.isinf(first) or math.isinf(second):
        return math.copysign(p8.WORST, first - second)
    return p8.log_ratio(first, second)


def _reduction_limits(margin: float) -> p8.Limits:
    low, high = p8.ratio_limits(margin)
    return -high, -low


REDUCTION = Scale("ratio", _reduction, p8.WORST, _reduction_limits, lambda log: math.expm1(-log), falls=True)
"""Compares two values, the smaller of which is better, by their log-ratio. It shows the change of the value, so that
-12% means better."""


@dataclass(frozen=True)
class Metric:
    """A quantity of a trial, with the unit in which it is shown and the scale on which arms are compared by it."""

    name: str
    unit: str
    value: Callable[[Trial], float | None]
    """Returns a trial's value, or None if it is not known.

    A failed trial has the worst value. This is 0, or infinity on the scale REDUCTION, on which smaller values are
    better.
    """
    better: Literal["more", "less", "neither"] = "more"
    """The values that are better. With `neither`, a positive difference means that the arm has the larger value."""
    scale: Scale = RATIO
    missing: Literal["worst", "unknown"] = "unknown"
    """The treatment of a pair in which one trial has no value. `worst` counts it as if that trial had failed, `unknown`
    leaves the pair out."""
    at_every_point: bool = True
    """True if a mean over load points needs known values at all load points. If false, the mean is taken over the load
    points with known values."""
    paired: Callable[[Trial, Trial], tuple[float | None, float | None]] | None = None
    """Returns the values of two trials of a block, for a metric whose value in one trial depends on the other trial. If
    None, `value` computes the value of each trial alone."""
    is_bound: Callable[[Trial], bool] = lambda _: False
    """True if the given value of a trial is only a bound: the true value is as bad as this or worse. An example is the
    time of a query that was cancelled."""
    bounds_compare: bool = False
    """True if two trials are compared even if the values of both are only bounds. This makes sense for a mean over
    several values, such as the mean over the queries of a suite, of which only some were cancelled."""

    def values(self, trial: Trial, base: Trial) -> tuple[float | None, float | None]:
        """Returns the values of a trial and of the baseline's trial of the same block.

        A value is only a bound if the true value may be worse, such as the time of a query that was cancelled at its
        limit. If both values are bounds, they cannot be compared, and both are returned as None, unless
        `bounds_compare` is set.
        """
        if not self.bounds_compare and self.is_bound(trial) and self.is_bound(base):
            return None, None
        return self.paired(trial, base) if self.paired is not None else (self.value(trial), self.value(base))

    def gain(self, arm: float | None, baseline: float | None) -> float | None:
        """Returns by how much the arm's value is better than the baseline's, on the scale of the metric. Returns None
        if this does not follow from the two values."""
        if arm is None and baseline is None:
            return None
        if arm is None or baseline is None:
            worst = self.scale.worst if baseline is None else -self.scale.worst
            return worst if self.missing == "worst" else None
        pair = (baseline, arm) if self.better == "less" else (arm, baseline)
        compared = self.scale.compared(*pair)
        return None if compared is None else max(-self.scale.worst, min(self.scale.worst, compared))

    def is_known(self, arm: float | None, baseline: float | None) -> bool:
        """True if the two values decide how their block counts. This is so if both values are known, or if a missing
        value counts as the value of a failed trial (see `missing`)."""
        return self.missing == "worst" or (arm is not None and baseline is not None)
