"""What is measured of a trial, and how two trials of a block are compared by it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from pgtrial.model.records.trial import Trial
from pgtrial.statistics import p8


@dataclass(frozen=True)
class Scale:
    """How two values are compared: under the coin the sign of what it gives is random if the arms do not differ."""

    name: Literal["ratio", "difference"]
    compared: Callable[[float, float], float | None]
    """The first value against the second; None: the pair says nothing."""
    worst: float
    """What a pair counts of which only one has a value: the worst possible rank."""
    limits: Callable[[float], p8.Limits]
    """From a margin, between which a difference is equivalent."""
    shown: Callable[[float], float]
    """From what the rule reads to the relative or absolute difference that is shown."""
    falls: bool = False
    """Whether what is shown is smaller the better the arm is: then the bounds change places."""


RATIO = Scale("ratio", p8.log_ratio, p8.WORST, p8.ratio_limits, math.expm1)
"""By the log-ratio; shown as a relative difference."""

DIFFERENCE = Scale("difference", lambda first, second: first - second, 1.0, lambda margin: (-margin, margin), float)
"""By the difference of shares, which may be zero."""


def _reduction(first: float, second: float) -> float | None:
    """The log-ratio of two values of which the smaller is better; an infinite one is of a failed trial."""
    if math.isinf(first) and math.isinf(second):
        return None
    if math.isinf(first) or math.isinf(second):
        return math.copysign(p8.WORST, first - second)
    return p8.log_ratio(first, second)


def _reduction_limits(margin: float) -> p8.Limits:
    low, high = p8.ratio_limits(margin)
    return -high, -low


REDUCTION = Scale("ratio", _reduction, p8.WORST, _reduction_limits, lambda log: math.expm1(-log), falls=True)
"""By the log-ratio of two values of which the smaller is better; shown as the change of the value: -12% is better."""


@dataclass(frozen=True)
class Metric:
    """A quantity of a trial, the unit in which it is shown, and how arms are compared by it."""

    name: str
    unit: str
    value: Callable[[Trial], float | None]
    """What is compared; for a failed trial the worst (0, of a reduction infinite), or None: not known."""
    better: Literal["more", "less", "neither"] = "more"
    """Which of two values is better; with `neither` a positive difference means that the arm has more of it."""
    scale: Scale = RATIO
    missing: Literal["worst", "unknown"] = "unknown"
    """What a pair says of which one trial has no value: as much as a failed trial does, or nothing."""
    at_every_point: bool = True
    """Whether a mean over load points takes all of them; else those with known values."""
    paired: Callable[[Trial, Trial], tuple[float | None, float | None]] | None = None
    """The values of two trials of a block where one depends on the other; None: `value` gives each."""
    is_bound: Callable[[Trial], bool] = lambda _: False
    """True if the value of a trial is only known to be at least as bad, such as the time of a cancelled query."""
    bounds_compare: bool = False
    """Whether two values of which both are such bounds say something all the same, since they are means of others."""

    def values(self, trial: Trial, base: Trial) -> tuple[float | None, float | None]:
        """Returns the values of a trial and of the baseline's trial of the same block.

        Two bounds are no values: nothing was measured of either.
        """
        if not self.bounds_compare and self.is_bound(trial) and self.is_bound(base):
            return None, None
        return self.paired(trial, base) if self.paired is not None else (self.value(trial), self.value(base))

    def gain(self, arm: float | None, baseline: float | None) -> float | None:
        """How much better the arm's value is than the baseline's, on the metric's scale; None: they say nothing."""
        if arm is None and baseline is None:
            return None
        if arm is None or baseline is None:
            worst = self.scale.worst if baseline is None else -self.scale.worst
            return worst if self.missing == "worst" else None
        pair = (baseline, arm) if self.better == "less" else (arm, baseline)
        compared = self.scale.compared(*pair)
        return None if compared is None else max(-self.scale.worst, min(self.scale.worst, compared))

    def is_known(self, arm: float | None, baseline: float | None) -> bool:
        """Whether values say how a block is to be counted, be it as one of which both arms failed."""
        return self.missing == "worst" or (arm is not None and baseline is not None)
