"""The difference of two independent estimates, from their intervals alone.

Each interval says how far its estimate may be off on either side. The difference may be off by the root of the sum of
squares of the two sides that add up (Zou and Donner 2008, Construction of confidence limits about effect measures: a
general approach, Statistics in Medicine 27, 1693 to 1702). It needs no normal estimates and no symmetric intervals; its
level is that of the two intervals.
"""

from __future__ import annotations

import math

from pgtrial.statistics.p8 import Interval


def difference(one: Interval, other: Interval) -> Interval:
    """Returns `one` minus `other`; a bound is infinite if one of the bounds that it follows from is."""
    value = one.estimate - other.estimate
    below = math.hypot(one.estimate - one.low, other.high - other.estimate)
    above = math.hypot(one.high - one.estimate, other.estimate - other.low)
    return Interval(value - below, value, value + above)
