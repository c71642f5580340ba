"""The median absolute deviation as an estimate of a standard deviation. Pure function."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

_TO_SD = 1.4826
"""1 / the third quartile of the standard normal distribution."""


def robust_sd(values: Sequence[float] | npt.NDArray[np.float64], centre: float) -> float:
    """Standard deviation of normal values around `centre`, from the median distance, which odd ones hardly move."""
    return _TO_SD * float(np.median(np.abs(np.asarray(values) - centre)))
