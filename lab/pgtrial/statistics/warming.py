"""The rule by which the length of warm-ups is chosen: the time for which the speed of a load rises after its start.

The rise ends at the first moment at which the mean of the next second is within the spread of all that follows it: it
is below their median by no more than their robust standard deviation (Shamos 1976) or 1%, whichever is more. A speed
that rises to the end of the series has no such moment, since the next second is always below the rest by more than
their spread. A single stall hardly moves the median and the spread.

The rule reads one arm's speeds in units of their own level, so it does not see which arm is faster.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, median

from pgtrial.statistics.shamos import spread

_TOLERANCE = 0.01
"""The share of the level below which a rise does not matter."""
_SECOND_S = 1.0
_FEWEST_AFTER = 3
_LEAST_SHARE = 0.25
"""The smallest share of the series that has to come after the second that is judged."""


def rises_s(speeds: Sequence[float], step_s: float) -> float | None:
    """Returns the seconds from the start until the speed no longer rises; None if it rises to the end, or the series is
    too short. `speeds` are the speeds in equal steps of `step_s` from the start of the load."""
    window = max(1, round(_SECOND_S / step_s))
    after = max(_FEWEST_AFTER, round(_LEAST_SHARE * len(speeds)))
    for start in range(len(speeds) - window - after + 1):
        head, rest = speeds[start : start + window], speeds[start + window :]
        level = median(rest)
        if level > 0 and fmean(head) >= level - max(spread(rest), _TOLERANCE * level):
            return start * step_s
    return None
