"""For how long the speed of a load rises after its start: the rule by which the length of warm-ups is chosen.

The first moment from which the mean of the following second stays within the spread of the rest: it lies below the
median of all that follows by no more than their robust standard deviation (Shamos 1976), or than 1%, whichever is more.
A speed that rises to the end of the series has no such moment: the following second is always below the rest by more
than their spread. A single stall moves neither the median nor the spread by much.

The rule reads one arm's speeds in units of their own level, so it does not see which arm is faster.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, median

from pgtrial.statistics.shamos import spread

_TOLERANCE = 0.01
"""Share of the level; a rise below it does not matter."""
_SECOND_S = 1.0
_FEWEST_AFTER = 3
_LEAST_SHARE = 0.25
"""Of the series that has to lie behind the second that is judged."""


def rises_s(speeds: Sequence[float], step_s: float) -> float | None:
    """Seconds from the start until the speed no longer rises; None: it rises to the end, or too little is known.

    `speeds` are those of equal steps from the start of the load.
    """
    window = max(1, round(_SECOND_S / step_s))
    after = max(_FEWEST_AFTER, round(_LEAST_SHARE * len(speeds)))
    for start in range(len(speeds) - window - after + 1):
        head, rest = speeds[start : start + window], speeds[start + window :]
        level = median(rest)
        if level > 0 and fmean(head) >= level - max(spread(rest), _TOLERANCE * level):
            return start * step_s
    return None
