"""The difference of two means whose values are not paired, with its interval (Welch 1947)."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import stdtrit

from pgtrial.statistics.p8 import Interval, Values
from pgtrial.statistics.paired_t import ALPHA


def welch_interval(first: Values, second: Values, alpha: float = ALPHA) -> Interval:
    """Returns the mean of the first values minus the mean of the second values, with a two-sided interval at the level
    1 - alpha.

    The values of each sample are assumed to be independent and normal, with different variances; the degrees of freedom
    are Satterthwaite's (1946). The interval is unbounded if one of the samples has a single value.
    """
    difference = float(np.mean(first) - np.mean(second))
    if len(first) < 2 or len(second) < 2:
        return Interval(-math.inf, difference, math.inf)
    parts = [float(np.var(values, ddof=1)) / len(values) for values in (first, second)]
    variance = sum(parts)
    if not variance:
        return Interval(difference, difference, difference)
    freedom = variance**2 / sum(
        part**2 / (len(values) - 1) for part, values in zip(parts, (first, second), strict=True)
    )
    half = -float(stdtrit(freedom, alpha / 2)) * math.sqrt(variance)
    return Interval(difference - half, difference, difference + half)
