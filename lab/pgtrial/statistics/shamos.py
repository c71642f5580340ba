"""The spread of the noise by the median distance between all pairs of values, which a few odd values do not change
much."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

_TO_SD = 1 / 0.9539
"""The factor from the median distance of a pair of values to the standard deviation, for normal values: 1 / (sqrt(2)
z(0.75))."""


def spread(log_ratios: Sequence[float]) -> float:
    """Returns a robust standard deviation of the log-ratios (Shamos 1976; Bickel and Lehmann 1979).

    With normal noise it is 86% as efficient as the usual standard deviation. The median distance from the median is
    only 37% as efficient, which matters for studies with as few as four blocks.
    """
    values = np.asarray(log_ratios, dtype=np.float64)
    first, second = np.triu_indices(len(values), 1)
    return _TO_SD * float(np.median(np.abs(values[first] - values[second])))
