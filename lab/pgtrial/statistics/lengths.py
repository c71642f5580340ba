"""How long trials should be: the two parts of a block's noise, and the length with which a study takes the least time.

The log-ratio of a block varies by b^2 + w^2 / d. b comes with the started servers and is new in each block; w^2 / d is
the mean over the d seconds that are measured of each arm. A block takes c + k d seconds: c for starts, warm-ups and
stops, k d for the measured parts of k trials in turn. The blocks that a verdict takes grow with the variance, so its
time with (b^2 + w^2 / d) (c + k d), which is least at d = (w / b) sqrt(c / k) (Kalibera and Jones 2013, Rigorous
benchmarking in reasonable time, ISMM).

w is measured where trials alternate: the log-ratios of the first and of the second half of the same trials differ by
noise of variance 4 w^2 / d alone, as what belongs to the servers is in both.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from pgtrial.model.records.machine import Noise

_MOST = 4.0
"""So many times as long as the measured trials the best length may be: beyond, slower noise may come in."""


def spread_at(noise: Noise, duration_s: float) -> float:
    """Standard deviation of a block's log-ratio with trials of this length; as measured where its parts are unknown."""
    if noise.within is None:
        return noise.spread
    started = math.sqrt(max(0.0, noise.spread**2 - noise.within**2))
    return math.hypot(started, noise.within * math.sqrt(noise.conditions.duration_s / duration_s))


def best_length(noise: Noise, lengths_s: Sequence[int], trials: int, fixed_s: float) -> int:
    """The length with which a study takes the least time; the shortest where the parts of the noise are unknown.

    A block takes `fixed_s` seconds and `trials` measured parts.
    """
    measured_s = noise.conditions.duration_s
    known = [length_s for length_s in lengths_s if length_s <= _MOST * measured_s] or [lengths_s[0]]
    if noise.within is None:
        return known[0]
    return min(known, key=lambda length_s: _time(noise, length_s, trials, fixed_s))


def _time(noise: Noise, length_s: float, trials: int, fixed_s: float) -> float:
    """What the time of a study grows with."""
    return spread_at(noise, length_s) ** 2 * (fixed_s + trials * length_s)
