"""The precision of a study: which differences and margins a plan can establish if the spread of the log-ratios is
known, and which ones a study has reached.

A look of n blocks, each with the standard deviation s, has an interval of about +- t s / sqrt(n), where t is the
quantile of Student's distribution at the look's level. A difference is found with the power 1 - b if it exceeds this
half-width by z(1 - b) standard errors. If there is no difference, a margin is established with the power 1 - b if it
exceeds the half-width by z(1 - b/2) standard errors, because the interval may exceed the margin on either side. These
are the sample sizes for a paired difference and for equivalence by two one-sided tests (Julious 2004, Sample sizes for
clinical trials with normal data, Statistics in Medicine 23, 1921 to 1986). P8's signed-rank statistic is discrete and
loses power if there are few blocks, so that n - 2 is used in place of n. Of the planned looks, the best one counts.

For normal noise of a known spread, the result is within 15% of a simulation of the rule, which a test checks. Real
noise gives less power: it has heavier tails, its spread is known from only a few blocks, and it changes from day to
day. Two factors therefore adapt the result to the noise that was measured with equal arms, in bench/campaign.json
(`python -m bench.forecasts`).
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
    """A statement about a plan that holds with the probability `POWER`: that it finds a difference, or that it
    establishes a margin."""

    reserve: float
    """For normal noise of a known spread: by how many standard errors the difference or margin must exceed the
    half-width of the interval."""
    factor: float
    """The factor by which the difference or margin must be larger than for normal noise, because real noise has heavier
    tails and its spread is estimated from 12 blocks."""


FIND = _Promise(float(ndtri(POWER)), 1.1)
ESTABLISH = _Promise(float(ndtri((1 + POWER) / 2)), 1.15)
EXCLUDE = _Promise(FIND.reserve, ESTABLISH.factor)
"""The promise to exclude a loss of the margin, while a gain of any size may remain possible. If there is no difference,
the interval may exceed the margin on one side only."""

_MOST_BLOCKS = 10_000_000

_LONGER = 4.0
"""The largest allowed ratio between the best length of trials and the length of the trials in which the noise was
measured. In much longer trials, slower kinds of noise may appear."""

_SLOWER = 1.2
"""The factor by which a study of a small difference may take longer than at the best length of trials. Shorter trials
make a study of a large difference end sooner."""

_SAME_SHAPE = 100
"""The number of blocks from which all plans have the same bounds, to within 0.01, because their looks are at the same
shares of the plan."""

_EXACT_UNTIL = 1000
"""The largest number of blocks for which `blocks_for` computes exactly how many blocks a margin needs, from the looks
(interim analyses) of the plan. Beyond this number the result is an approximation."""


def precision(looks: Looks, claims: int, sd: float, fitted: int = 0) -> Precision | None:
    """Returns the difference and the margin that the planned looks (interim analyses) can establish for each of
    `claims` claims. `sd` is the standard deviation of a block's log-ratio.

    The claims share the error of the looks. In a screening study, `fitted` is the number of other factors, whose
    effects are fitted to the blocks. Returns None if no planned look can decide a claim.
    """
    able = [look for look in looks.schedule() if looks.rule.can_decide(look, claims) and look.blocks > fitted + 2]
    if not able:
        return None
    smallest = min(_smallest(look, looks.level(look, claims), sd, FIND, fitted) for look in able)
    established = min(_of_factor(look, looks.level(look, claims, margin=True), sd, ESTABLISH, fitted) for look in able)
    if math.isinf(smallest):
        return None
    return Precision(difference=math.expm1(smallest), margin=math.expm1(established), blocks=looks.planned[-1])


def blocks_for(
    margin: float, claims: int, sd: float, *, difference: float = math.inf, promise: _Promise = ESTABLISH
) -> int | None:
    """Returns the number of blocks of the shortest new plan that establishes the margin and finds the difference; with
    the promise EXCLUDE the plan only has to exclude a loss of the margin. `sd` is the standard deviation of a block's
    log-ratio.

    None means more than ten million blocks. Beyond `_SAME_SHAPE` blocks, the bound of a plan's last look hardly
    changes. The search uses this bound to come close to the exact number, and beyond `_EXACT_UNTIL` blocks it returns
    the number that follows from this bound.
    """
    first = planned(1, claims).planned[0]

    def suffices(blocks: int, alike: int = _SAME_SHAPE) -> bool:
        plan = planned(min(blocks, alike), claims)
        level = partial(plan.level, Look(plan.planned[-1], 0.0), claims)
        end = Look(blocks, 0.0)
        finds = math.expm1(_smallest(end, level(), sd, FIND)) <= difference
        return finds and math.expm1(_smallest(end, level(margin=True), sd, promise)) <= margin

    found = first + bisect_left(range(first, _MOST_BLOCKS), True, key=suffices)
    if _SAME_SHAPE < found <= _EXACT_UNTIL:
        near = range(int(0.95 * found), int(1.1 * found))
        found = near[0] + bisect_left(near, True, key=partial(suffices, alike=2 * _EXACT_UNTIL))
    return found if found < _MOST_BLOCKS else None


def blocks_for_half_width(half: float, claims: int, sd: float) -> int | None:
    """Returns the number of blocks of the shortest new plan whose interval, at its end, extends at most `half` from the
    estimate.

    The noise is assumed to be normal, with the standard deviation `sd` for a block. None means more than `_EXACT_UNTIL`
    blocks.
    """

    def suffices(blocks: int) -> bool:
        plan = planned(blocks, claims)
        return boundaries.quantile(plan.level(Look(blocks, 0.0), claims) / 2) * sd <= half * math.sqrt(blocks)

    first = planned(1, claims).planned[0]
    found = first + bisect_left(range(first, _EXACT_UNTIL), True, key=suffices)
    return found if found < _EXACT_UNTIL else None


def spread_at(noise: Noise, duration_s: float) -> float:
    """Returns the standard deviation of a block's log-ratio for trials of this length. If it is not known which part of
    the noise comes from within trials, returns the measured standard deviation unchanged.

    The log-ratio has the variance b^2 + w^2 / d. The part b belongs to the started servers and is new in each block;
    w^2 / d is the variance of the mean over the d seconds that are measured of each arm. w is measured in trials that
    alternate: the log-ratios of the first and the second half of the same trials differ only by noise of variance 4 w^2
    / d, because the part of the servers is the same in both halves.
    """
    if noise.within is None:
        return noise.spread
    started = math.sqrt(max(0.0, noise.spread**2 - noise.within**2))
    return math.hypot(started, noise.within * math.sqrt(noise.conditions.duration_s / duration_s))


def best_length(noise: Noise, lengths_s: Sequence[int], trials: int, fixed_s: float) -> int:
    """Returns the length of trials with which a study takes little more than the shortest possible time: the shortest
    of `lengths_s` for which that is true. If it is not known which part of the noise comes from within trials, returns
    the shortest length.

    A block takes `fixed_s` seconds for starts, warm-ups and stops, and has `trials` measured parts, together c + k d
    seconds. The number of blocks that a small difference needs grows with the variance, so the time until its verdict
    grows with (b^2 + w^2 / d) (c + k d), which is smallest at d = (w / b) sqrt(c / k) (Kalibera and Jones 2013,
    Rigorous benchmarking in reasonable time, ISMM). A large difference needs the smallest number of blocks at any
    length, so its time grows with c + k d. Near its minimum the first time changes slowly: trials of half the length
    cost a study of a small difference less than the factor `_SLOWER`, while a study of a large difference takes half
    the time.
    """
    known = [length_s for length_s in lengths_s if length_s <= _LONGER * noise.conditions.duration_s] or lengths_s[:1]
    if noise.within is None:
        return known[0]
    times = [spread_at(noise, length_s) ** 2 * (fixed_s + trials * length_s) for length_s in known]
    return next(length_s for length_s, time_s in zip(known, times, strict=True) if time_s <= _SLOWER * min(times))


def _smallest(look: Look, level: float, sd: float, promise: _Promise, fitted: int = 0) -> float:
    """Returns the smallest log-ratio for which the promise holds at a look (interim analysis); infinity if there is
    none.

    If the effects of `fitted` other factors are fitted to the n blocks, the fit takes the share h = fitted / n of a
    factor's effect on average, but not the same share in each block. A test that compares with no effect sees this
    variation, of the variance h (1 - h) times the square of the effect, as noise.
    """
    steps = _standard_errors(look, level, promise)
    share = fitted / look.blocks
    left = 1 - promise.factor**2 * steps**2 * share / ((look.blocks - 2) * (1 - share))
    return _of_factor(look, level, sd, promise, fitted) / math.sqrt(left) if left > 0 else math.inf


def _of_factor(look: Look, level: float, sd: float, promise: _Promise, fitted: int) -> float:
    """Returns the smallest log-ratio for which the promise holds, if the effects of `fitted` other factors are fitted
    to the blocks and the test is at the log-ratio itself. The fit then only takes away blocks."""
    steps = _standard_errors(look, level, promise)
    return promise.factor * steps * sd / math.sqrt((look.blocks - 2) * (1 - fitted / look.blocks))


def _standard_errors(look: Look, level: float, promise: _Promise) -> float:
    return promise.reserve - float(stdtrit(look.blocks - 1, level / 2))


def half_width(difference: Estimate | None) -> float | None:
    """Returns half the width of an interval, as a share; None if there is no interval or if it is unbounded."""
    if difference is None or difference.low is None or difference.high is None:
        return None
    return (difference.high - difference.low) / 2
