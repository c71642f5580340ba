"""One claim: the rule P8 on one series of block log-ratios, with what stands beside its interval."""

from __future__ import annotations

import math

import numpy as np
from scipy.stats import t as student

from pgtrial.analyse import p8
from pgtrial.analyse.ratios import Grid
from pgtrial.analyse.records import BlockRatio, Claim, Estimate, LookReading

_ODD = 3.5
"""Modified z-score of an odd block (Iglewicz and Hoaglin 1993, How to detect and handle outliers)."""

_MAD_TO_SD = 1.4826


def make_claim(grid: Grid, arm: str, point: int | None, family: int, block_s: float, *, withheld: bool) -> Claim:
    """The claim of `arm` against the baseline at a load point or (None) over all of them."""
    plan = grid.plan
    ratios = grid.ratios(arm, point)
    valid = [(ratio.block, ratio.log_ratio) for ratio in ratios if ratio.counted and ratio.log_ratio is not None]
    values = [value for _, value in valid]
    decision = p8.decide(values, plan.margin, claims=family, planned=plan.looks)
    shown = decision.shown.interval if decision.shown else None
    used = valid[: decision.shown.look.blocks] if decision.shown else valid
    mean = _mean([value for _, value in used])
    more = _more_blocks(values, family, grid) if decision.verdict == "undecided" else None
    established = shown.established_margin if shown else math.inf
    return Claim(
        arm=arm,
        baseline=plan.baseline,
        load_point=point,
        family=family,
        verdict="withheld" if withheld else decision.verdict,
        within_margin=shown is not None and shown.within(plan.margin),
        blocks=len(used),
        difference=as_difference(shown) if shown else None,
        mean=as_difference(mean) if mean else None,
        totals=_totals(grid, arm, point, [block for block, _ in used]) if plan.measure == "goodput" else None,
        unstable=_unstable(shown, mean),
        odd_blocks=_odd_blocks(used),
        changing=decision.verdict != "undecided" and decision.contradicted,
        running=_running(ratios),
        fewest_blocks=p8.fewest_blocks(family, plan.looks),
        more_blocks=more,
        more_s=more * block_s if more is not None else None,
        established_margin=established if established < 1 else None,
        looks=[
            LookReading(
                blocks=reading.look.blocks,
                alpha=reading.look.alpha,
                claim_alpha=reading.level,
                difference=as_difference(reading.interval),
                verdict=reading.verdict,
            )
            for reading in decision.readings
        ],
        ratios=ratios,
    )


def as_difference(interval: p8.Interval) -> Estimate:
    """An interval of log-ratios as relative differences; infinite bounds become None."""
    return Estimate(low=_difference(interval.low), value=math.expm1(interval.estimate), high=_difference(interval.high))


def _difference(log_ratio: float) -> float | None:
    return math.expm1(log_ratio) if math.isfinite(log_ratio) else None


def _mean(values: list[float]) -> p8.Interval | None:
    """The mean with its 95% t interval; unbounded for a single block."""
    if not values:
        return None
    n, mean = len(values), math.fsum(values) / len(values)
    if n < 2:
        return p8.Interval(-math.inf, mean, math.inf)
    half = float(student.isf(0.025, n - 1)) * float(np.std(values, ddof=1)) / math.sqrt(n)
    return p8.Interval(mean - half, mean, mean + half)


def _unstable(shown: p8.Interval | None, mean: p8.Interval | None) -> bool:
    if shown is None or mean is None or not math.isfinite(shown.low):
        return False
    return abs(mean.estimate - shown.estimate) > (shown.high - shown.low) / 2


def _odd_blocks(used: list[tuple[int, float]]) -> list[int]:
    if len(used) < 4:
        return []
    values = np.asarray([value for _, value in used])
    centre = np.median(values)
    scale = _MAD_TO_SD * float(np.median(np.abs(values - centre)))
    return [block for block, value in used if abs(value - centre) > _ODD * scale > 0]


def _totals(grid: Grid, arm: str, point: int | None, blocks: list[int]) -> float | None:
    """Committed transactions of the arm over those of the baseline, in total, as a difference."""
    sums = {arm: 0, grid.plan.baseline: 0}
    for name in sums:
        stored = (trial for trial in grid.of(name, point) if trial.block in set(blocks))
        sums[name] = sum(trial.measured.transactions for trial in stored if trial.measured)
    theirs = sums[grid.plan.baseline]
    return sums[arm] / theirs - 1 if theirs else None


def _running(ratios: list[BlockRatio]) -> float | None:
    values = [ratio.log_ratio for ratio in ratios if ratio.log_ratio is not None]
    return math.expm1(float(np.median(p8.walsh_averages(values)))) if values else None


def _more_blocks(values: list[float], family: int, grid: Grid) -> int | None:
    """Blocks to the look that the forecast names; to the first that can decide, while there are too few to forecast."""
    needed = p8.blocks_needed(values, grid.plan.margin, claims=family, planned=grid.plan.looks)
    fewest = p8.fewest_blocks(family, grid.plan.looks)
    if needed is None and len(values) >= fewest:
        return None
    return max(needed or 0, fewest) - len(values)
