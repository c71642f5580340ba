"""Judges a table of numbers: compares the arms, and finds out how large the noise and the drift of the runs are."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from pgtrial.judge.blocks import MOST_BLOCKS, Block
from pgtrial.judge.comparing import Asked, Runs, claims_of, runs_of, withheld_of
from pgtrial.judge.judgement import Drift, Judgement, Level
from pgtrial.judge.numbers import Numbers
from pgtrial.judge.reasons import cautions_of
from pgtrial.model.records.claims import Claim
from pgtrial.statistics import p8
from pgtrial.statistics.describe import median_interval
from pgtrial.statistics.drift import trend_within
from pgtrial.statistics.precision import blocks_for, precision
from pgtrial.statistics.rules import planned
from pgtrial.statistics.shamos import spread

_FEWEST_FOR_SPREAD = 4
"""The smallest number of blocks from whose spread the noise is computed. With fewer blocks, the noise is computed from
the scatter of the runs."""


def judge(numbers: Numbers, asked: Asked) -> Judgement:
    """Returns the judgement of the numbers. Raises StudyError under the same conditions as `runs_of`."""
    runs = runs_of(numbers, asked)
    arms, blocks, pattern, claims = list(runs.arms), runs.blocks, runs.pattern, claims_of(runs)
    scatter = _scatter(numbers)
    noise = _noise(runs, scatter)
    levels = [_level(numbers, arm) for arm in arms]
    like_this = min(MOST_BLOCKS, len(blocks) if blocks is not None else min(level.runs for level in levels))
    return Judgement(
        source=numbers.source,
        column=numbers.column,
        better=asked.better,
        baseline=arms[0],
        arms=arms,
        margin=asked.margin,
        drawn=asked.drawn,
        pattern=pattern,
        blocks=len(blocks) if blocks is not None else None,
        blocks_planned=(asked.planned or len(blocks)) if asked.drawn and blocks is not None else None,
        runs_in_block=_runs_in_block(blocks or ()),
        withheld=withheld_of(runs),
        cautions=cautions_of(
            claims, pattern, len(blocks or ()), max(level.runs for level in levels), drawn=asked.drawn
        ),
        primary=claims,
        levels=levels,
        scatter=scatter,
        drift=_drift(numbers, arms),
        precision=precision(planned(like_this, runs.claims), runs.claims, noise) if noise else None,
        blocks_to_tell=_blocks_to_tell(claims, noise, asked.margin) if noise else None,
    )


def _level(numbers: Numbers, arm: str) -> Level:
    values = sorted(numbers.by_arm[arm])
    low, high = median_interval(values)
    return Level(
        arm=arm,
        runs=len(values),
        median=float(np.median(values)),
        low=low,
        high=high,
        lowest=values[0],
        highest=values[-1],
    )


def _runs_in_block(blocks: Sequence[Block]) -> int | None:
    counts = {len(values) for block in blocks for values in block.values.values()}
    return counts.pop() if len(counts) == 1 else None


def _scatter(numbers: Numbers) -> float | None:
    """Returns the standard deviation of the logarithms of the values about the mean of their arm; None if each arm has
    a single run."""
    freedom = len(numbers.values) - len(numbers.names)
    if freedom < 1:
        return None
    squares = sum(float(np.var(np.log(values))) * len(values) for values in numbers.by_arm.values())
    return min(p8.WORST, math.sqrt(squares / freedom))


def _noise(runs: Runs, scatter: float | None) -> float | None:
    """Returns the standard deviation of a block's log-ratio, for the arm in which it is largest. If there are too few
    blocks, or too many for comparing all their pairs, it is computed from the scatter of single runs. None if that is
    not known either."""
    number = len(runs.blocks or ())
    if runs.pattern != "one after the other" and _FEWEST_FOR_SPREAD <= number <= MOST_BLOCKS:
        return max(spread(runs.gains(arm)) for arm in runs.arms[1:])
    return None if scatter is None else math.sqrt(2) * scatter


def _drift(numbers: Numbers, arms: Sequence[str]) -> Drift | None:
    trend = trend_within(numbers.arms, np.log(numbers.values).tolist())
    if trend is None:
        return None
    return Drift(
        each_run=math.expm1(trend.slope), by_arm={arm: math.expm1(trend.between(arm, arms[0])) for arm in arms[1:]}
    )


def _blocks_to_tell(claims: Sequence[Claim], noise: float, margin: float) -> int | None:
    """Returns the number of blocks of a plan that finds a difference as large as the largest one in the numbers or, if
    that is smaller than the margin, establishes the margin."""
    seen = [claim.difference.value if claim.difference is not None else claim.running or 0.0 for claim in claims]
    largest = max((math.expm1(abs(math.log1p(difference))) for difference in seen), default=0.0)
    if largest > margin:
        return blocks_for(math.inf, max(1, len(claims)), noise, difference=largest)
    return blocks_for(margin, max(1, len(claims)), noise, difference=margin)
