"""Computes the engine's options for loads that alternate in slices of time."""

from __future__ import annotations

import math
from dataclasses import dataclass

from pgtrial.loads.engine import AT_A_WORD


@dataclass(frozen=True)
class Turn:
    """The position of a load among several loads that alternate in slices: its number, counted from 1, how many loads
    there are, and the length of a slice."""

    number: int = 1
    of: int = 1
    slice_s: float | None = None
    """The length of a slice in seconds; None if the load runs by itself."""

    def wall_s(self, own_s: float) -> float:
        """Returns the wall time, in seconds, that passes until this load has been active for `own_s` seconds, while the
        other loads have their slices too. It is rounded up to whole slices."""
        if self.slice_s is None:
            return own_s
        return math.ceil(own_s / self.slice_s - _ROUNDING) * self.slice_s * self.of

    def options(self, seed: int) -> list[str]:
        """Returns the engine's options for this position. `seed` decides the order of the loads in each round, and must
        be the same for all loads that alternate."""
        if self.slice_s is None:
            return []
        length = f"--slice={self.slice_s * 1000:.10g}ms"
        return [length, f"--slice-of={self.number}/{self.of}", f"--slice-seed={seed}", AT_A_WORD]


ALONE = Turn()

_ROUNDING = 1e-6
