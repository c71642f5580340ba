"""Computes the interval for the difference of two independent estimates, only from their own intervals.

Each interval says by how much its estimate may be wrong on either side. The difference of the estimates may be wrong by
the root of the sum of squares of the two sides that add up (Zou and Donner 2008, Construction of confidence limits
about effect measures: a general approach, Statistics in Medicine 27, 1693 to 1702). The method needs neither normal
estimates nor symmetric intervals. The result has the same level as the two intervals.
"""

from __future__ import annotations

import math

from pgtrial.statistics.p8 import Interval


def difference(one: Interval, other: Interval) -> Interval:
    """Returns `one` minus `other`, with its interval. A bound is infinite if one of the two bounds from which it is
    computed is infinite."""
    value = one.estimate - other.estimate
    below = math.hypot(one.estimate - one.low, other.high - other.estimate)
    above = math.hypot(one.high - one.estimate, other.estimate - other.low)
    return Interval(value - below, value, value + above)
