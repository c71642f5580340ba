"""The group of sign flips by which the rule P9 judges a statistic. It represents the signs that the study could have
had as well.

If the arms do not differ, the coin that orders them gives each unit's log-ratio a random sign, so that all vectors of
signs are equally probable. The vectors that a fixed group of flips makes of the observed vector are then equally
probable too. The statistic of the observed signs is compared with the statistics of all flipped signs, and no further
assumption is needed (randomisation tests by groups: Lehmann and Romano, Testing Statistical Hypotheses, 3rd ed., 15.2).
The comparison is exact for every group. Up to 14 units the group has all vectors of signs. For more units it has 16,384
of them, which form a linear code: the code words of the later units were drawn once and follow from the seed in this
file.

The sums of signed scores over a whole group are one Walsh-Hadamard transform (Fine 1949). It is computed as two
products with Hadamard matrices, so that the number of operations does not depend on the number of units.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy.linalg import hadamard

Sums = npt.NDArray[np.float32]
Integers = npt.NDArray[np.int64]

BITS = 14
"""The group has 2^BITS flips, so the smallest step of an error is 1 / 16,384."""

_SEED = 9
"""The seed for drawing the code words of units (such as blocks) beyond the first BITS. Another seed would give another
group, with which the comparison is just as exact."""

_DRAWN = 1024
"""The number of units whose code words are drawn together. For more units, the table grows by a multiple of this
number."""


def code_words(units: npt.ArrayLike) -> Integers:
    """Returns the code word of each unit; units are numbered from 0. Flip number f turns the sign of a unit if f and
    the unit's code word have an odd number of bits in common. Each of the first BITS units has a bit of its own, so
    that all combinations of their signs occur."""
    numbers = np.asarray(units, dtype=np.int64)
    drawn = _drawn(-(-(int(numbers.max(initial=0)) + 1) // _DRAWN))
    return drawn[numbers]


@lru_cache(maxsize=4)
def _drawn(times: int) -> Integers:
    """Returns the code words of the first `times` * _DRAWN units. For a larger `times`, the first code words stay the
    same."""
    later = np.random.Generator(np.random.Philox(_SEED)).integers(1, 1 << BITS, times * _DRAWN)
    return np.concatenate([np.int64(1) << np.arange(BITS), later])


def flipped_sums(scores: npt.ArrayLike, words: Integers) -> Sums:
    """Returns the sum of the signed scores for each flip of the group. Element 0 is the observed sum.

    `scores` are the units' scores with their observed signs, and `words` their code words. If the units are among the
    first n <= BITS, the result has 2^n elements, one for each vector of signs. Sums of integers are exact below 2^24.
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
