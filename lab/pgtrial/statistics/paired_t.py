"""The paired t test (Student 1908): the mean of log-ratios with its interval."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import stdtrit

from pgtrial.statistics import p8

ALPHA = 0.05


def t_interval(values: p8.Values, alpha: float = ALPHA) -> p8.Interval:
    """Returns the mean of log-ratios with its two-sided t interval at the level 1 - alpha. The interval is unbounded if
    there is a single log-ratio."""
    n, mean = len(values), math.fsum(values) / len(values)
    if n < 2:
        return p8.Interval(-math.inf, mean, math.inf)
    half = quantile(alpha, n - 1) * float(np.std(values, ddof=1)) / math.sqrt(n)
    return p8.Interval(mean - half, mean, mean + half)


def quantile(alpha: float, freedom: int) -> float:
    """Returns the quantile of Student's distribution that the statistic must exceed in a two-sided test at the level
    alpha, with `freedom` degrees of freedom."""
    return -float(stdtrit(freedom, alpha / 2))
