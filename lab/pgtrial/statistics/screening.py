"""The statistics of a screening study: each block measures a set-up, in which every factor has a level that a coin drew
for it, and the complement of this set-up, in which every factor has its other level.

The log-ratio of a block is the sum of the effects of all factors, each with the sign that its coin drew, and of noise.
To test one factor, the effects of the other factors are fitted by least squares to the log-ratios, without using the
levels of the tested factor, and subtracted. If the tested factor has no effect at all, these residuals do not depend on
its coin, whatever the noise is and whatever the other factors do. The residuals times the drawn signs then have random
signs, so that the rule P9 holds exactly for each factor, at all looks together.

If the factor has the effect theta, the same holds after theta times its levels is subtracted from the log-ratios. The
fit is linear, so that this changes each value by theta times a fixed share (`p9.Step.shares`), and the test can be
inverted to an interval. The mean of the values divided by the mean of the shares is the estimate of ordinary least
squares with all factors (Frisch and Waugh 1933).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations

import numpy as np
import numpy.typing as npt

from pgtrial.statistics import p8
from pgtrial.statistics.p8 import WORST, Floats
from pgtrial.statistics.p9 import DECIMALS, Step

Signs = npt.NDArray[np.float64]
"""The drawn levels, with a row for each unit (block) and a column for each factor: 1 if the arm has the second level of
the factor and the baseline the first one, -1 in the opposite case."""

_SPARE = 3.0
"""A screening study of F factors needs this many times the square root of F blocks in addition to F. With fewer blocks,
the fit of the other factors leaves so little of a factor's effect that not even a clear effect would be found
(`precision.precision`)."""

HINT_ERROR = 0.05
"""The probability with which a study hints at a pair of factors although no two factors interact."""


def fewest_units(factors: int) -> int:
    """Returns the smallest number of units (blocks) with which a screening study of this number of factors can find
    anything."""
    return factors + math.ceil(_SPARE * math.sqrt(factors)) if factors > 1 else 0


def step(units: Sequence[int], signs: Signs, logs: Sequence[float], factor: int, spent: float) -> Step:
    """Returns what one look (interim analysis) reads about the factor in the column `factor`. `logs` has the log-ratio
    of each unit, and `spent` the error that this claim is allowed to have spent by this look."""
    fitted = _fitted_by(np.delete(signs, factor, axis=1))
    mine, values = signs[:, factor], np.asarray(logs, dtype=np.float64)
    gains = mine * (values - fitted @ (fitted.T @ values))
    shares = mine * (mine - fitted @ (fitted.T @ mine))
    return Step(
        tuple(units), tuple(np.round(gains, DECIMALS).tolist()), spent, tuple(np.round(shares, DECIMALS).tolist())
    )


def _fitted_by(columns: Signs) -> Floats:
    """Returns orthonormal columns that span the same space as `columns`, by the singular value decomposition."""
    if not columns.size:
        return np.zeros((len(columns), 0))
    left, singular, _ = np.linalg.svd(columns, full_matrices=False)
    rank = int(np.count_nonzero(singular > singular[0] * max(columns.shape) * np.finfo(float).eps))
    spanning: Floats = left[:, :rank]
    return spanning


def effects(signs: Signs, logs: Sequence[float]) -> tuple[Floats, Floats] | None:
    """Returns the effect of each factor by least squares with all factors, and the residuals of the units. Returns None
    if there are too few units to tell the factors apart."""
    values = np.asarray(logs, dtype=np.float64)
    if len(values) <= signs.shape[1] or np.linalg.matrix_rank(signs) < signs.shape[1]:
        return None
    found: Floats = np.asarray(np.linalg.lstsq(signs, values, rcond=None)[0], dtype=np.float64)
    return found, values - signs @ found


def noise(signs: Signs, logs: Sequence[float]) -> list[float]:
    """Returns the log-ratios of the units without the effects of the factors, scaled so that their spread is that of
    the noise: the fit makes residuals smaller than the noise. The list is empty if the factors cannot be told apart."""
    known = effects(signs, logs)
    if known is None:
        return []
    units, factors = signs.shape
    return [float(value) for value in known[1] * np.sqrt(units / (units - factors))]


def tamed(logs: Sequence[float]) -> list[float]:
    """Returns the log-ratios in which those of failed trials, which have the worst possible magnitude, are replaced by
    the largest magnitude of the others. A few values of a thousandfold difference would spoil the fit of all factors.

    The replacement depends on magnitudes only, so that it does not depend on the coin of a factor without effect.
    """
    largest = max((abs(log) for log in logs if abs(log) < WORST), default=WORST)
    return [min(max(log, -largest), largest) for log in logs]


def interactions(signs: Signs, levels: Sequence[float]) -> dict[tuple[int, int], float]:
    """Returns the pairs of factors that the test finds to interact, by the columns of the two factors. The value is by
    how much the effect of one factor, as a log-ratio, is larger with the second level of the other factor than with its
    first level.

    `levels` has the mean of the logarithms of the speeds of each unit's two trials. In this mean the effects of single
    factors cancel, because each factor has both levels in a unit, and the effects of pairs remain. The test is the
    signed-rank test of the levels around their moving median times the sign of the pair, with the error `HINT_ERROR`
    divided by the number of pairs.
    """
    pairs = list(combinations(range(signs.shape[1]), 2))
    known = np.asarray(levels, dtype=np.float64)
    around = known - _moving_median(known)
    found = {}
    for one, other in pairs:
        between = p8.interval(signs[:, one] * signs[:, other] * around, HINT_ERROR / len(pairs))
        if between.low > 0 or between.high < 0:
            found[one, other] = 4 * between.estimate
    return found


_WINDOW = 9
"""The number of units whose median stands for the speed of the machine at the time of the middle one."""


def _moving_median(values: Floats) -> Floats:
    reach = _WINDOW // 2
    return np.array([np.median(values[max(0, at - reach) : at + reach + 1]) for at in range(len(values))])
