"""The order of the slices as docs/method.md has it, beside the engine's own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count

_WORD = (1 << 64) - 1
_STEP = 0x9E3779B97F4A7C15


@dataclass(frozen=True)
class Slices:
    """The order in which the slices of `of` participants, numbered from 0, follow each other from the start of the
    load.
    """

    length_s: float
    of: int
    seed: int
    """The seed of the order, as in `--slice-seed`."""

    def order(self, number: int) -> list[int]:
        """Returns the participants in the order of their slices in this round."""
        return sorted(range(self.of), key=lambda participant: _splitmix64(self.seed, number * self.of + participant))

    def turns(self) -> Iterator[int]:
        """Yields the participant of each slice, slice after slice, without an end."""
        for number in count():
            yield from self.order(number)


def _splitmix64(seed: int, number: int) -> int:
    """Returns the output with this number, from 0. Source: Vigna, https://prng.di.unimi.it/splitmix64.c."""
    value = (seed + (number + 1) * _STEP) & _WORD
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 & _WORD
    value = (value ^ value >> 27) * 0x94D049BB133111EB & _WORD
    return value ^ value >> 31
