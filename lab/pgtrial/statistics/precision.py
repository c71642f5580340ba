"""The precision of a study: what its plan can tell for a given spread of the log-ratios, and what its blocks reached.

A look of n blocks, each with standard deviation s, has an interval of about +- t s / sqrt(n), with t the quantile of
Student's distribution at the look's level. A difference is found with power 1 - b if it exceeds this half-width by
z(1 - b) standard errors. If there is no difference, a margin is established with power 1 - b if it exceeds the
half-width by z(1 - b/2) standard errors, because the interval can leave it on either side. These are the sample sizes
for a paired difference and for equivalence by two one-sided tests (Julious 2004, Sample sizes for clinical trials with
normal data, Statistics in Medicine 23, 1921 to 1986). P8's signed-rank statistic is discrete and loses power with few
blocks, so n - 2 stands for n. The best of the planned looks counts. For normal noise of a known spread that is within
15% of a simulation of the rule, which a test checks. Noise that was recorded has heavier tails, its spread is known
from a few blocks only, and it is not the same on two days, so that the power is less. Two factors calibrate the result
to the noise of equal arms in bench/campaign.json (`python -m bench.forecasts`).
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from scipy.special import ndtri, stdtrit

from pgtrial.model.records.claims import Estimate
from pgtrial.model.records.machine import Noise, Precision
from pgtrial.statistics import boundaries
from pgtrial.statistics.p8 import Look
from pgtrial.statistics.rules import Looks, planned

POWER = 0.8


@dataclass(frozen=True)
class _Promise:
    """A promise of a plan that it keeps with a probability of `POWER`: to find a difference or establish a margin."""

    reserve: float
    """The number of standard errors by which the difference or margin must exceed the half-width of the interval, for
    normal noise of a known spread."""
    factor: float
    """The factor by which the difference or margin must be larger than for normal noise, because recorded noise has
    heavier tails and its spread is estimated from 12 blocks."""


FIND = _Promise(float(ndtri(POWER)), 1.1)
ESTABLISH = _Promise(float(ndtri((1 + POWER) / 2)), 1.15)

_MOST_BLOCKS = 10_000_000

_LONGER = 4.0
"""The largest ratio of the best length to the length of the measured trials. In longer trials, slower noise may come
in."""

_SLOWER = 1.2
"""How much more than the least time a study of a small difference may take, so that one of a large difference is over
sooner."""

_SAME_SHAPE = 100
"""The number of blocks from which all plans have the same bounds, to within 0.01, since their looks are at the same
shares of the plan."""

_EXACT_UNTIL = 1000
"""The number of blocks up to which the blocks for a margin are computed by the plan's own looks, so that they
suffice."""


def precision(looks: Looks, claims: int, sd: float) -> Precision | None:
    """Returns the difference and the margin that the planned looks can tell for each of `claims`.

    The claims share the error of the looks. None if no planned look can decide a claim.
    """
    able = [look for look in looks.schedule() if looks.rule.can_decide(look, claims)]
    if not able:
        return None
    smallest = min(_smallest(look, looks.level(look, claims), sd, FIND) for look in able)
    established = min(_smallest(look, looks.level(look, claims, margin=True), sd, ESTABLISH) for look in able)
    return Precision(difference=math.expm1(smallest), margin=math.expm1(established), blocks=looks.planned[-1])


def blocks_for(margin: float, claims: int, sd: float, *, difference: float = math.inf) -> int | None:
    """Returns the blocks of the shortest new plan that establishes the margin and finds the difference.

    None means more than ten million. Beyond `_SAME_SHAPE` blocks, the bound of a plan's last look hardly changes. The
    search uses that bound to come close to the exact number, and beyond `_EXACT_UNTIL` blocks as the answer.
    """
    first = planned(1, claims).planned[0]

    def suffices(blocks: int, alike: int = _SAME_SHAPE) -> bool:
        plan = planned(min(blocks, alike), claims)
        level = partial(plan.level, Look(plan.planned[-1], 0.0), claims)
        end = Look(blocks, 0.0)
        finds = math.expm1(_smallest(end, level(), sd, FIND)) <= difference
        return finds and math.expm1(_smallest(end, level(margin=True), sd, ESTABLISH)) <= margin

    found = first + bisect_left(range(first, _MOST_BLOCKS), True, key=suffices)
    if _SAME_SHAPE < found <= _EXACT_UNTIL:
        near = range(int(0.95 * found), int(1.1 * found))
        found = near[0] + bisect_left(near, True, key=partial(suffices, alike=2 * _EXACT_UNTIL))
    return found if found < _MOST_BLOCKS else None


def blocks_for_half_width(half: float, claims: int, sd: float) -> int | None:
    """Returns the blocks of the shortest new plan whose interval at its end reaches at most `half` from its estimate.

    The noise is taken as normal. None means more than `_EXACT_UNTIL` blocks.
    """

    def suffices(blocks: int) -> bool:
        plan = planned(blocks, claims)
        return boundaries.quantile(plan.level(Look(blocks, 0.0), claims) / 2) * sd <= half * math.sqrt(blocks)

    first = planned(1, claims).planned[0]
    found = first + bisect_left(range(first, _EXACT_UNTIL), True, key=suffices)
    return found if found < _EXACT_UNTIL else None


def spread_at(noise: Noise, duration_s: float) -> float:
    """Returns the standard deviation of a block's log-ratio with trials of this length. If the parts of the noise are
    unknown, it is the measured one.

    The log-ratio varies by b^2 + w^2 / d. b comes with the started servers and is new in each block; w^2 / d is the
    mean over the d seconds that are measured of each arm. w is measured where trials alternate: the log-ratios of the
    first and of the second half of the same trials differ by noise of variance 4 w^2 / d alone, as what belongs to the
    servers is in both.
    """
    if noise.within is None:
        return noise.spread
    started = math.sqrt(max(0.0, noise.spread**2 - noise.within**2))
    return math.hypot(started, noise.within * math.sqrt(noise.conditions.duration_s / duration_s))


def best_length(noise: Noise, lengths_s: Sequence[int], trials: int, fixed_s: float) -> int:
    """Returns the shortest length of trials with which a study takes hardly more than the least time; the shortest of
    all if the parts of the noise are unknown.

    A block takes `fixed_s` seconds for starts, warm-ups and stops, and `trials` measured parts: c + k d seconds. The
    blocks that a small difference takes grow with the variance, so the time of its verdict with (b^2 + w^2 / d) (c + k
    d), which is least at d = (w / b) sqrt(c / k) (Kalibera and Jones 2013, Rigorous benchmarking in reasonable time,
    ISMM). A large difference takes the fewest blocks of a verdict at any length, so its time grows with c + k d. The
    minimum is flat: trials that are half as long or less often cost a small difference less than `_SLOWER` of its time,
    and a large one is known in half of it.
    """
    known = [length_s for length_s in lengths_s if length_s <= _LONGER * noise.conditions.duration_s] or lengths_s[:1]
    if noise.within is None:
        return known[0]
    times = [spread_at(noise, length_s) ** 2 * (fixed_s + trials * length_s) for length_s in known]
    return next(length_s for length_s, time_s in zip(known, times, strict=True) if time_s <= _SLOWER * min(times))


def _smallest(look: Look, level: float, sd: float, promise: _Promise) -> float:
    quantile = -float(stdtrit(look.blocks - 1, level / 2))
    return promise.factor * (quantile + promise.reserve) * sd / math.sqrt(look.blocks - 2)


def half_width(difference: Estimate | None) -> float | None:
    """Returns half of an interval's width, a share; None if the interval is unbounded."""
    if difference is None or difference.low is None or difference.high is None:
        return None
    return (difference.high - difference.low) / 2
