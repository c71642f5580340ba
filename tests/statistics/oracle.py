"""The rule restated as plainly as possible, by other means than the code under test: counts as whole numbers, loops."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache
from statistics import NormalDist, median

LOOKS = (8, 12, 18, 27, 40, 60, 90, 135, 200, 300)
ALPHA = (0.00782, 0.0085, 0.0080, 0.0070, 0.0060, 0.0045, 0.0027, 0.0018, 0.0012, 0.0008)
FAIL = math.log(1000.0)


@cache
def sign_patterns(n: int) -> tuple[int, ...]:
    """Returns the number of the 2^n patterns of signs with the sum of positive ranks w, for w = 0 .. n(n+1)/2."""
    counts = [1]
    for rank in range(1, n + 1):
        counts = [
            (counts[w] if w < len(counts) else 0) + (counts[w - rank] if w >= rank else 0)
            for w in range(len(counts) + rank)
        ]
    return tuple(counts)


@cache
def threshold(n: int, alpha: float) -> int:
    """Returns the largest w with P(W <= w) <= alpha / 2, or -1."""
    total, w = 0, -1
    limit = (Fraction(alpha) / 2 + Fraction(1, 10**12)) * 2**n
    for count in sign_patterns(n):
        total += count
        if total > limit:
            return w
        w += 1
    return w


def interval(y: list[float], alpha: float) -> tuple[float, float, float]:
    values = [min(max(value, -FAIL), FAIL) for value in y]
    walsh = sorted((a + b) / 2 for i, a in enumerate(values) for b in values[i:])
    k = threshold(len(values), alpha)
    if k < 0:
        return -math.inf, median(walsh), math.inf
    return walsh[k], median(walsh), walsh[len(walsh) - 1 - k]


def verdict(y: list[float], margin: float, m: int = 1) -> tuple[str, int] | None:
    """Walks the looks reached; stops at the first decided one: the word and the blocks of the last look read."""
    out = None
    for n, alpha in zip(LOOKS, ALPHA, strict=True):
        if n > len(y):
            break
        low, _, high = interval(y[:n], alpha / m)
        inside = math.log(1 - margin) < low and high < math.log(1 + margin)
        word = "better" if low > 0 else "worse" if high < 0 else "equivalent" if inside else "undecided"
        out = (word, n)
        if word != "undecided":
            break
    return out


def blocks_needed(y: list[float], margin: float) -> int | None:
    """Returns the number of blocks at the next look that would decide if the estimate and the spread stayed as they are
    now; None if no look would.
    """
    n, alpha = [(n, a) for n, a in zip(LOOKS, ALPHA, strict=True) if n <= len(y)][-1]
    low, estimate, high = interval(y[:n], alpha)

    def z(a: float) -> float:
        return -NormalDist().inv_cdf(a / 2)

    spread = (high - low) * math.sqrt(n) / (2 * z(alpha))
    gap = max(abs(estimate), min(math.log(1 + margin) - estimate, estimate - math.log(1 - margin)))
    return next((N for N, A in zip(LOOKS, ALPHA, strict=True) if n < N and z(A) * spread / math.sqrt(N) < gap), None)
