"""Finds the regimes of one trial: the levels that its committed transactions per second kept, and the seconds at which
the level changed.

A throttled disk, used-up burst credits or a cache that fills can change the speed in the middle of a trial. An average
across such a change describes neither regime. The detector takes the medians of batches of seconds, and finds changes
of their logarithms by PELT (Killick, Fearnhead and Eckley 2012), with a penalty that it computes from the noise of
neighbouring batches. It keeps a change only if it is large, lasts, and stands out from autocorrelated noise. The shapes
of trials follow Barrett et al. 2017 (Virtual machine warmup blows hot and cold).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from pgtrial.model.records.trial import Regime, Segment, Shape
from pgtrial.statistics.describe import robust_sd

Floats = npt.NDArray[np.float64]

FEWEST_SECONDS = 20
"""The smallest number of whole seconds that a trial must have, so that pgtrial looks for changes of its speed from one
level to another."""

SMALLEST_CHANGE = 0.15
"""The smallest difference of two levels of the speed, as a share of the higher level, that counts as a change of regime
(from one level to another). Smaller changes are left to the test for a trend."""

_DIP_S, _LASTS_S = 20.0, 60.0
"""A change of speed that lasts 60 s is a new level. A change that lasts less than `_DIP_S` is only a dip, for example
because of a checkpoint or a vacuum. See `shortest_level`."""

_ABOUT = 0.9
"""A level counts as lasting if it has at least this share of the length that `shortest_level` requires. The full length
is not required, because the seconds at which a level begins and ends are not exact."""

_BATCHES = 60
"""The largest number of batches into which a trial is divided. Each batch consists of whole seconds."""

_PENALTY = 6.0
"""The penalty for each change of level, as a multiple of the variance of the noise times the logarithm of the number of
batches."""

_CLEAR = 5.5
"""The number of standard errors that the size of a change must exceed. The standard errors allow for the
autocorrelation of the batches."""

_STRONG = 10.0
"""The amount by which the Bayesian information criterion (BIC) of a ramp must be lower than that of steps, so that the
change counts as gradual (Kass and Raftery 1995, Bayes factors: very strong)."""

_LEAST_NOISE = 1e-3
_STEP = -math.log1p(-SMALLEST_CHANGE)


def detect(committed: Sequence[int] | npt.NDArray[np.int64]) -> Regime | None:
    """Returns the regimes of one trial; None if the trial has too few seconds. `committed` has the number of committed
    transactions in each whole second.

    The segments of the result follow each other without a gap, and neighbours differ by at least `SMALLEST_CHANGE`.
    """
    seconds = np.asarray(committed, dtype=np.float64)
    if len(seconds) < FEWEST_SECONDS:
        return None
    length = math.ceil(len(seconds) / _BATCHES)
    batches = _log_levels(seconds, length)
    shortest = shortest_level(len(seconds)) / length
    bounds = _accepted(batches, _pelt(batches), shortest)
    shape, settled = _shape(batches, bounds, shortest)
    edges = [0, *(_refined(seconds, bound * length, length) for bound in bounds[1:-1]), len(seconds)]
    totals = np.cumsum(seconds)
    segments = [
        Segment(start_s=start, end_s=end, tps=float(np.median(seconds[start:end])), committed=int(totals[end - 1]))
        for start, end in pairwise(edges)
    ]
    return Regime(shape=shape, settled=settled, segments=segments)


def shortest_level(seconds: int) -> float:
    """Returns how many seconds a level must last in a trial of this length, in order to count as a regime.

    The result is a quarter of the trial, but at least 20 and at most 60 s. In trials shorter than 60 s it is a third of
    the trial, since such a trial cannot show longer levels. The first or the last level of a trial needs only
    half of that if it is at most half, or at least twice, as high as its neighbour.
    """
    return min(max(seconds / 4, min(_DIP_S, seconds / 3)), _LASTS_S)


def _log_levels(seconds: Floats, length: int) -> Floats:
    """Returns the logarithm of the median of each batch of `length` seconds. If the last seconds do not fill a batch,
    they belong to the batch before.

    A batch without a commit counts as half a transaction per second.
    """
    count = len(seconds) // length
    parts = np.split(seconds, [length * i for i in range(1, count)])
    levels: Floats = np.log(np.maximum([np.median(part) for part in parts], 0.5))
    return levels


def _pelt(batches: Floats) -> list[int]:
    """Returns the bounds of the segments that PELT finds, from 0 to the number of batches.

    The noise is estimated from the differences between neighbouring batches (their median absolute value), so that a
    few jumps of the level do not increase it.
    """
    # imported here because the import takes a while, and most commands do not need it
    from ruptures import KernelCPD  # noqa: PLC0415

    noise = max(robust_sd(np.diff(batches), 0.0) / math.sqrt(2), _LEAST_NOISE)
    penalty = _PENALTY * noise**2 * math.log(len(batches))
    # with a linear kernel, the cost is the sum of squares, and the library's fast solver in C can be used
    ends = KernelCPD(kernel="linear", min_size=3).fit(batches[:, None]).predict(pen=penalty)
    return [0, *map(int, ends)]


def _accepted(batches: Floats, bounds: list[int], shortest: float) -> list[int]:
    """Joins short segments with the neighbour that is nearer in level, removes weak changes, and returns the bounds
    that remain."""
    bounds = list(bounds)
    if len(bounds) == 2:
        return bounds
    rest_of_ramp = _best_ramp(batches)[1]
    while len(bounds) > 2:
        steps = np.abs(np.diff(_levels(batches, bounds)))
        lasting = np.diff(bounds) / shortest
        # the first or last level is not a dip if it is less than half, or more than twice, as high as its neighbour
        lasting[[0, -1]] *= np.where(steps[[0, -1]] >= math.log(2), 2, 1)
        briefest = int(np.argmin(lasting))
        if lasting[briefest] < _ABOUT:
            sides = [(steps[i - 1], i) for i in (briefest, briefest + 1) if 0 < i < len(bounds) - 1]
            del bounds[min(sides)[1]]
            continue
        clear = np.minimum(steps / _STEP, steps / (_CLEAR * _errors(batches, bounds, rest_of_ramp)))
        weakest = int(np.argmin(clear))
        if clear[weakest] >= 1:
            break
        del bounds[weakest + 1]
    return bounds


def _levels(batches: Floats, bounds: list[int]) -> list[float]:
    return [float(np.median(batches[a:b])) for a, b in pairwise(bounds)]


def _errors(batches: Floats, bounds: list[int], rest_of_ramp: Floats) -> Floats:
    """Returns the standard error of the step at each inner bound, computed from the residuals of the levels or of a
    ramp, whichever are smaller.

    If neighbouring values have the correlation r, the variance of their mean is (1 + r) / (1 - r) times as large as
    without correlation.
    """
    lengths = np.diff(bounds)
    rest = min(
        batches - np.repeat(_levels(batches, bounds), lengths), rest_of_ramp, key=lambda left: np.dot(left, left)
    )
    spread = max(robust_sd(rest, 0.0), _LEAST_NOISE)
    memory = float(np.clip(np.dot(rest[1:], rest[:-1]) / max(np.dot(rest, rest), 1e-12), 0.0, 0.9))
    longer = math.sqrt((1 + memory) / (1 - memory))
    errors: Floats = spread * longer * np.sqrt(1 / lengths[1:] + 1 / lengths[:-1])
    return errors


def _shape(batches: Floats, bounds: list[int], shortest: float) -> tuple[Shape, bool]:
    """Returns the shape of a trial, and a second value that is true if the trial kept its last level long enough for
    this level to count as lasting."""
    levels = _levels(batches, bounds)
    if len(levels) == 1:
        return "flat", True
    steps = np.diff(levels)
    if (steps > 0).all() or (steps < 0).all():
        ramp_end = _ramp(batches, bounds)
        rising = bool(steps[0] > 0)
        if ramp_end is None:
            return ("recovery" if rising else "collapse"), True
        return ("warm-up" if rising else "slow-down"), len(batches) - ramp_end >= shortest
    if any(abs(levels[-1] - level) < _STEP for level in levels[:-1]):
        return "cyclic", True
    return "no steady state", False


def _ramp(batches: Floats, bounds: list[int]) -> int | None:
    """Returns the number of the batch at which a gradual change ends; None unless a ramp fits the batches clearly
    better than steps do."""
    n = len(batches)
    rest = batches - np.repeat([np.mean(batches[a:b]) for a, b in pairwise(bounds)], np.diff(bounds))
    end, rest_of_ramp = _best_ramp(batches)
    least = _LEAST_NOISE**2 * n
    gain = n * math.log(max(np.dot(rest, rest), least) / max(np.dot(rest_of_ramp, rest_of_ramp), least))
    # the numbers of parameters: the levels and their bounds; start, slope and bend of the ramp
    steps, ramp = 2 * len(bounds) - 3, 3
    return end if gain > (ramp - steps) * math.log(n) + _STRONG else None


def _best_ramp(batches: Floats) -> tuple[int, Floats]:
    """Fits the straight line with one bend, from a slope into a level or from a level into a slope, that has the
    smallest residuals. Returns the batch at which the slope ends, and the residuals."""
    n = len(batches)
    position = np.arange(n) + 0.5
    slopes = [(knot, np.minimum(position, knot)) for knot in range(3, n + 1)]
    slopes += [(n, np.maximum(position, knot)) for knot in range(3, n - 2)]
    ends, lines = [end for end, _ in slopes], np.array([line for _, line in slopes])
    x, y = lines - lines.mean(axis=1, keepdims=True), batches - batches.mean()
    rest = y - (x @ y / np.einsum("ij,ij->i", x, x))[:, None] * x
    best = int(np.argmin(np.einsum("ij,ij->i", rest, rest)))
    return ends[best], rest[best]


def _refined(seconds: Floats, position: int, reach: int) -> int:
    """Returns the second at which the change near `position` happened. It is at most `reach` seconds away from
    it.

    It is the second that minimises the absolute deviations from the medians before and after the change.
    """
    logs = np.log(np.maximum(seconds, 0.5))
    window = 3 * reach
    low, high = max(position - window, 0), min(position + window, len(seconds))
    before, after = np.median(logs[low:position]), np.median(logs[position:high])
    gain = np.abs(logs[low:high] - after) - np.abs(logs[low:high] - before)
    candidates = range(max(position - reach, low + 1), min(position + reach, high - 1) + 1)
    return max(candidates, key=lambda at: (gain[: at - low].sum(), -abs(at - position)))
