"""One claim: the rule P8 on one series of block log-ratios, and the values beside its interval."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np

from pgtrial.model.records.plan import Plan
from pgtrial.model.records.results import BlockRatio, Claim, Comparison, Estimate, LookReading, When, Word
from pgtrial.model.records.trial import Trial
from pgtrial.statistics import p8
from pgtrial.statistics.changes import Changes, Seconds
from pgtrial.statistics.deployments import ALPHA, t_interval
from pgtrial.statistics.levels import robust_sd
from pgtrial.statistics.ratios import Grid

_ODD = 3.5
"""Modified z-score of an odd block (Iglewicz and Hoaglin 1993, How to detect and handle outliers)."""

Scale = Callable[[float], float]
"""From what the rule reads, log-ratios mostly, to what is shown."""

_REGIMES: tuple[When, ...] = ("before", "after")


@dataclass(frozen=True)
class Subject:
    """What a claim is about: an arm against the baseline, at a load point or (None) as the mean over all of them."""

    arm: str
    point: int | None
    family: int
    """Number of claims that share the error of each look."""
    regime: When | None = None
    """The regime that it speaks of; None: whole trials."""


def subjects(plan: Plan) -> tuple[list[Subject], list[Subject]]:
    """What a study makes claims about: over all load points, the primary claims, and at each load point of each arm."""
    arms, points = plan.others, range(len(plan.load_points))
    sharing = len(points) if len(points) > 1 else len(arms)
    at_points = [Subject(arm, point, sharing) for arm in arms for point in points]
    return [Subject(arm, None, len(arms)) for arm in arms], at_points


def decide(plan: Plan, trials: Sequence[Trial], seconds: Seconds | None = None) -> list[Comparison]:
    """Whether the primary claims are decided, as in the study's result, without computing anything else of it."""
    grid = Grid(plan, trials)
    changes = Changes(grid, seconds)
    return [
        Comparison(part.arm, part.regime, _is_decided(grid, part, ratios), _so_far(ratios))
        for about in subjects(plan)[0]
        for part, ratios in _series(grid, changes, about)
    ]


def decided_arms(plan: Plan, trials: Sequence[Trial], seconds: Seconds | None = None) -> list[str]:
    """The arms of which every claim is decided: the primary one, and those of all load points."""
    grid = Grid(plan, trials)
    changes = Changes(grid, seconds)
    series = [each for about in chain(*subjects(plan)) for each in _series(grid, changes, about)]
    undecided = {part.arm for part, ratios in series if not _is_decided(grid, part, ratios)}
    return [arm for arm in plan.others if arm not in undecided]


def _is_decided(grid: Grid, about: Subject, ratios: list[BlockRatio]) -> bool:
    values = [value for _, value in counting(ratios)]
    return grid.units.decide(values, grid.plan.margin, about.family).verdict != "undecided"


def make_claim(grid: Grid, changes: Changes, about: Subject, block_s: float, *, withheld: bool) -> Claim:
    """The claim on a subject: on whole trials or, if the regime changes within them, on each regime."""
    series = _series(grid, changes, about)
    claims = [_claim(grid, part, ratios, block_s, withheld=withheld) for part, ratios in series]
    return claims[0] if series[0][0].regime is None else _whole(about, claims)


def _series(grid: Grid, changes: Changes, about: Subject) -> list[tuple[Subject, list[BlockRatio]]]:
    """The units on which the claims about a subject rest: one series, or one for each regime with known units."""
    known: dict[When, list[BlockRatio]] = {}
    if changes.between(about.arm, about.point):
        both = {when: changes.ratios(about.arm, about.point, when) for when in _REGIMES}
        known = {when: ratios for when, ratios in both.items() if ratios}
    if not known:
        return [(about, grid.units.pooled(grid.ratios(about.arm, about.point)))]
    shared = len(known) * about.family
    return [(replace(about, family=shared, regime=when), grid.units.pooled(ratios)) for when, ratios in known.items()]


def counting(ratios: Sequence[BlockRatio]) -> list[tuple[int, float]]:
    """The blocks that count and say something, each with its log-ratio."""
    return [(ratio.block, ratio.log_ratio) for ratio in ratios if ratio.counted and ratio.log_ratio is not None]


def _whole(about: Subject, parts: list[Claim]) -> Claim:
    """The claims before and (if levels are known there) after a change as one claim.

    It has no figure of its own: that would be an average across the change.
    """
    verdicts = {part.verdict for part in parts}
    both = len(parts) == len(_REGIMES)
    agreed = len(verdicts) == 1 and (both or "withheld" in verdicts)
    return Claim(
        arm=about.arm,
        baseline=parts[0].baseline,
        load_point=about.point,
        family=about.family,
        verdict=parts[0].verdict if agreed else "undecided",
        within_margin=both and all(part.within_margin for part in parts),
        blocks=parts[0].blocks,
        fewest_blocks=parts[0].fewest_blocks,
        unit=parts[0].unit,
        parts=parts,
    )


def _claim(grid: Grid, about: Subject, ratios: list[BlockRatio], block_s: float, *, withheld: bool) -> Claim:
    plan, arm, point, family = grid.plan, about.arm, about.point, about.family
    units = grid.units
    valid = counting(ratios)
    values = [value for _, value in valid]
    decision = units.decide(values, plan.margin, family)
    shown = decision.shown.interval if decision.shown else None
    so_far = _so_far(ratios)
    used = valid[: decision.shown.look.blocks] if decision.shown else valid
    mean = t_interval([value for _, value in used]) if used else None
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
        totals=_totals(grid, arm, point, units.blocks([unit for unit, _ in used]))
        if plan.measure == "goodput" and about.regime is None
        else None,
        unstable=_unstable(shown, mean),
        odd_blocks=_odd_blocks(used),
        changing=decision.verdict != "undecided" and decision.contradicted,
        running=so_far.value if so_far else None,
        fewest_blocks=units.fewest(family),
        more_blocks=more,
        more_s=more * units.blocks_each * block_s if more is not None else None,
        more_chance=units.chance(values, plan.margin, family, len(values) + more) if more else None,
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
        unit=units.unit,
        regime=about.regime,
    )


@dataclass(frozen=True)
class Outcome:
    """What the rule says of values that a study has beside its claims."""

    verdict: Word
    within_margin: bool
    difference: Estimate | None
    blocks: int


def outcome(
    grid: Grid, values: Mapping[int, float], limits: p8.Limits, family: int, scale: Scale = math.expm1
) -> Outcome:
    """Reads the values of blocks, log-ratios unless another `scale` is given, as those of a claim are read."""
    of_units = grid.units.means(values, grid.counted)
    found = grid.units.read(of_units, limits, family)
    if found.shown is None:
        return Outcome(found.verdict, within_margin=False, difference=None, blocks=len(of_units))
    shown = found.shown.interval
    return Outcome(found.verdict, shown.between(limits), as_difference(shown, scale), found.shown.look.blocks)


def at_last_look(grid: Grid, logs: Mapping[int, float], family: int) -> tuple[int, Estimate | None]:
    """The units on which the last look at these blocks' log-ratios rests, and what it says; before it all, and None."""
    values = grid.units.means(logs, grid.counted)
    readings = grid.units.decide(values, grid.plan.margin, family).readings
    return (readings[-1].look.blocks, as_difference(readings[-1].interval)) if readings else (len(values), None)


def as_difference(interval: p8.Interval, scale: Scale = math.expm1) -> Estimate:
    """An interval, of log-ratios unless another `scale` is given, as differences; infinite bounds become None."""
    low, high = (scale(bound) if math.isfinite(bound) else None for bound in (interval.low, interval.high))
    return Estimate(low=low, value=scale(interval.estimate), high=high)


def _unstable(shown: p8.Interval | None, mean: p8.Interval | None) -> bool:
    if shown is None or mean is None or not math.isfinite(shown.low):
        return False
    return abs(mean.estimate - shown.estimate) > (shown.high - shown.low) / 2


def _odd_blocks(used: list[tuple[int, float]]) -> list[int]:
    if len(used) < 4:
        return []
    values = [value for _, value in used]
    centre = float(np.median(values))
    scale = robust_sd(values, centre)
    return [block for block, value in used if abs(value - centre) > _ODD * scale > 0]


def _totals(grid: Grid, arm: str, point: int | None, blocks: set[int]) -> float | None:
    """Committed transactions of the arm over those of the baseline, in total, as a difference."""
    sums = {arm: 0, grid.plan.baseline: 0}
    for name in sums:
        stored = (trial for trial in grid.of(name, point) if trial.block in blocks)
        sums[name] = sum(trial.measured.transactions for trial in stored if trial.measured)
    theirs = sums[grid.plan.baseline]
    return sums[arm] / theirs - 1 if theirs else None


def _so_far(ratios: list[BlockRatio]) -> Estimate | None:
    """Over all blocks so far, with the interval of a study that had planned to end here."""
    values = [ratio.log_ratio for ratio in ratios if ratio.log_ratio is not None]
    return as_difference(p8.interval(values, ALPHA)) if values else None


def _more_blocks(values: list[float], family: int, grid: Grid) -> int | None:
    """Units to the look that the forecast names; to the first that can decide, while there are too few to forecast."""
    needed = grid.units.needed(values, grid.plan.margin, family)
    fewest = grid.units.fewest(family)
    if needed is None and len(values) >= fewest:
        return None
    return max(needed or 0, fewest) - len(values)
