"""The spread of the noise, robust against a few odd values: the median distance of all pairs of values."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

_TO_SD = 1 / 0.9539
"""The standard deviation of normal values divided by the median distance of a pair of them: 1 / (sqrt(2) z(0.75))."""


def spread(log_ratios: Sequence[float]) -> float:
    """Returns the robust standard deviation (Shamos 1976; Bickel and Lehmann 1979).

    It is 86% as efficient as the standard deviation under normal noise; the median distance from the median has only
    37%, which matters with four blocks.
    """
    values = np.asarray(log_ratios, dtype=np.float64)
    first, second = np.triu_indices(len(values), 1)
    return _TO_SD * float(np.median(np.abs(values[first] - values[second])))
