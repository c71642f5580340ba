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
from dataclasses import dataclass

from pgtrial.model.records.machine import Noise

_LENGTHS_S = (2, 3, 5, 8, 10, 15, 20, 30, 45, 60, 90, 120, 180, 240, 300, 450, 600)
_MOST = 4.0
"""So many times as long as the measured trials a proposed one may be; by then slower noise may have come in."""
_LEAST_ROUNDS = 8
"""Fewer slices of an arm in a trial are not known to average."""
_WORTH = 0.8
"""A proposal takes at most this share of the time."""


@dataclass(frozen=True)
class Proposal:
    """Trials of another length, with which a study finds the same in less time."""

    duration_s: int
    time_share: float
    """A share of the time that the study takes with its own length."""


def spread_at(noise: Noise, duration_s: float) -> float:
    """Standard deviation of a block's log-ratio with trials of this length; as measured where its parts are unknown."""
    if noise.within is None:
        return noise.spread
    return math.hypot(started_spread(noise), noise.within * math.sqrt(noise.conditions.duration_s / duration_s))


def started_spread(noise: Noise) -> float:
    """The part of a block's noise that comes with the started servers, b; for noise whose parts are known."""
    return math.sqrt(max(0.0, noise.spread**2 - (noise.within or 0.0) ** 2))


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


def proposal(noise: Noise, duration_s: float, load_points: int, slice_s: float) -> Proposal | None:
    """The length that takes the least time, for a study of trials of `duration_s`; None: none is worth the change.

    `noise` is that of a study under the same conditions but for the length.
    """
    if noise.within is None or noise.block_s is None:
        return None
    measured_s = noise.conditions.duration_s
    trials = noise.conditions.arms * load_points
    fixed_s = max(0.0, noise.block_s - trials * measured_s)

    possible = [
        length_s
        for length_s in _LENGTHS_S
        if _LEAST_ROUNDS * slice_s <= length_s <= _MOST * measured_s
        and math.isclose(length_s / slice_s, round(length_s / slice_s))
    ]
    if not possible:
        return None
    best = best_length(noise, possible, trials, fixed_s)
    share = _time(noise, best, trials, fixed_s) / _time(noise, duration_s, trials, fixed_s)
    return Proposal(best, share) if share <= _WORTH else None
