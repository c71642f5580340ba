"""The rule by which pgtrial chooses the length of warm-ups: it measures how long the speed of a load rises after its
start.

The rise ends at the first moment at which the mean speed of the next second is within the spread of all later speeds:
it is below their median by at most their robust standard deviation (Shamos 1976) or by at most 1%, whichever is more.
If the speed rises until the end of the series, there is no such moment, because each second is slower than the later
speeds by more than their spread. A single stall hardly changes the median and the spread.

The speeds of one arm are compared only with each other, so the rule does not see which arm is faster.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, median

from pgtrial.statistics.shamos import spread

_TOLERANCE = 0.01
"""The share of the level below which a rise of the speed does not matter."""
_SECOND_S = 1.0
_FEWEST_AFTER = 3
_LEAST_SHARE = 0.25
"""The smallest share of the series that must come after a second, so that pgtrial decides for this second whether the
speed still rises."""


def rises_s(speeds: Sequence[float], step_s: float) -> float | None:
    """Returns how many seconds the speed rises after the start of the load; None if it rises to the end, or if the
    series is too short. `speeds` has the mean speed in equal steps of `step_s` seconds from the start of the load."""
    window = max(1, round(_SECOND_S / step_s))
    after = max(_FEWEST_AFTER, round(_LEAST_SHARE * len(speeds)))
    for start in range(len(speeds) - window - after + 1):
        head, rest = speeds[start : start + window], speeds[start + window :]
        level = median(rest)
        if level > 0 and fmean(head) >= level - max(spread(rest), _TOLERANCE * level):
            return start * step_s
    return None
