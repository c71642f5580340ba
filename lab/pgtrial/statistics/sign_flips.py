"""The group of sign flips by which the rule P9 judges a statistic: what the study's coins could have shown as well.

If the arms do not differ, the coin that orders them gives each unit's log-ratio a random sign. So all vectors of signs
are equally probable, and those that a fixed group of flips makes of the observed one are, too. The statistic of the
observed signs is compared with the statistics of all flipped ones, and nothing else is assumed (randomisation tests by
groups: Lehmann and Romano, Testing Statistical Hypotheses, 3rd ed., 15.2). The comparison is exact for every group. It
is complete up to 14 units: there the group has all sign vectors. Beyond, it has 16,384 of them, those of a linear code:
the code words of the later units were drawn once and are part of this file.

The sums of signed scores over a whole group are one Walsh-Hadamard transform (Fine 1949), here two products with
Hadamard matrices, so that their number of operations does not depend on the number of units.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy.linalg import hadamard

Sums = npt.NDArray[np.float32]
Integers = npt.NDArray[np.int64]

BITS = 14
"""The group has 2^BITS flips, so an error is known in steps of 1 / 16,384."""

_SEED = 9
"""The seed of the code words of units beyond the first BITS; another seed gives another group, as exact as this."""

_DRAWN = 1024
"""The number of units whose code words are drawn together. More units make the table longer by a multiple of it."""


def code_words(units: npt.ArrayLike) -> Integers:
    """Returns the code word of each unit, by its number from 0: flip number f turns the unit's sign if the word and f
    have an odd number of common bits. The first BITS units have a bit each, so all their signs occur."""
    numbers = np.asarray(units, dtype=np.int64)
    drawn = _drawn(-(-(int(numbers.max(initial=0)) + 1) // _DRAWN))
    return drawn[numbers]


@lru_cache(maxsize=4)
def _drawn(times: int) -> Integers:
    """Returns the code words of the first `times` * _DRAWN units. More units keep the words of the first ones."""
    later = np.random.Generator(np.random.Philox(_SEED)).integers(1, 1 << BITS, times * _DRAWN)
    return np.concatenate([np.int64(1) << np.arange(BITS), later])


def flipped_sums(scores: npt.ArrayLike, words: Integers) -> Sums:
    """Returns the sum of the signed scores under each flip of the group; element 0 is the observed sum.

    `scores` are the units' scores with their observed signs and `words` their code words. With no unit beyond the first
    n <= BITS the result has 2^n elements, one for each vector of signs. Sums of integers below 2^24 are exact.
    """
    bits = min(int(words.max(initial=1)).bit_length(), BITS)
    low = bits // 2
    by_word = np.bincount(words, weights=np.asarray(scores, dtype=np.float64), minlength=1 << bits)
    square = by_word.astype(np.float32).reshape(1 << (bits - low), 1 << low)
    sums = (_hadamard(bits - low) @ square @ _hadamard(low)).ravel()
    return np.asarray(sums, dtype=np.float32)


@lru_cache(maxsize=BITS)
def _hadamard(bits: int) -> Sums:
    return np.asarray(hadamard(1 << bits), dtype=np.float32)
