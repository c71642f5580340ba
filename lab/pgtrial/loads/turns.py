"""The position of a load among those that alternate in slices of time."""

from __future__ import annotations

import math
from dataclasses import dataclass

from pgtrial.loads.engine import AT_A_WORD


@dataclass(frozen=True)
class Turn:
    """The position of a load among those that alternate: its number from 1, how many they are, the seconds of
    a slice.
    """

    number: int = 1
    of: int = 1
    slice_s: float | None = None
    """The length of a slice, seconds; None if the load runs by itself."""

    def wall_s(self, own_s: float) -> float:
        """Returns the wall time in which the load has `own_s` seconds of its own, in whole slices; seconds."""
        if self.slice_s is None:
            return own_s
        return math.ceil(own_s / self.slice_s - _ROUNDING) * self.slice_s * self.of

    def options(self, seed: int) -> list[str]:
        """Returns the engine's options for the turn; `seed` is that of the order, the same for all loads."""
        if self.slice_s is None:
            return []
        length = f"--slice={self.slice_s * 1000:.10g}ms"
        return [length, f"--slice-of={self.number}/{self.of}", f"--slice-seed={seed}", AT_A_WORD]


ALONE = Turn()

_ROUNDING = 1e-6
