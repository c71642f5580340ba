"""One claim: the rule P8 on one series of block log-ratios, and the values beside its interval."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np

from pgtrial.model.records.plan import Plan
from pgtrial.model.records.results import BlockRatio, Claim, Comparison, Estimate, LookReading, When, Word
from pgtrial.statistics import p8
from pgtrial.statistics.changes import WHEN, Changes, Regimes
from pgtrial.statistics.deployments import ALPHA, t_interval
from pgtrial.statistics.levels import robust_sd
from pgtrial.statistics.ratios import Grid

_ODD = 3.5
"""Modified z-score of an odd block (Iglewicz and Hoaglin 1993, How to detect and handle outliers)."""

Scale = Callable[[float], float]
"""From what the rule reads, log-ratios mostly, to what is shown."""


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


def decide(grid: Grid, regimes: Regimes | None = None) -> list[Comparison]:
    """Whether the primary claims are decided, as in the study's result, without computing anything else of it."""
    changes = Changes(grid, regimes)
    return [
        Comparison(series.about.arm, series.about.regime, series.decided, _so_far(series.ratios))
        for about in subjects(grid.plan)[0]
        for series in _series(grid, changes, about)
    ]


def decided_arms(grid: Grid, regimes: Regimes | None = None) -> list[str]:
    """The arms of which every claim is decided: the primary one, and those of all load points."""
    changes = Changes(grid, regimes)
    all_series = [series for about in chain(*subjects(grid.plan)) for series in _series(grid, changes, about)]
    undecided = {series.about.arm for series in all_series if not series.decided}
    return [arm for arm in grid.plan.others if arm not in undecided]


@dataclass(frozen=True)
class Series:
    """The units on which one claim rests, and what the looks said about it."""

    about: Subject
    """With the family and the regime of the last look that read it."""
    ratios: list[BlockRatio]
    decision: p8.Decision

    @property
    def decided(self) -> bool:
        """Whether a look has decided the claim, which later looks never undo."""
        return self.decision.verdict != "undecided"


def make_claim(grid: Grid, changes: Changes, about: Subject, block_s: float, *, withheld: bool) -> Claim:
    """The claim on a subject: on whole trials or, if the regime changes within them, on each regime."""
    claims = [_claim(grid, series, block_s, withheld=withheld) for series in _series(grid, changes, about)]
    return claims[0] if claims[0].regime is None else _whole(about, claims)


def _series(grid: Grid, changes: Changes, about: Subject) -> list[Series]:
    """The claims about a subject after the looks so far: one on whole trials, or one for each regime with known units.

    Each look chooses which claims it reads from its own blocks alone, by a rule in which both arms are alike, and
    divides its error between them. The first look that decides one of them also settles whether the subject has one
    claim or one for each regime: later looks that choose otherwise say nothing. So no look spends its error twice, and
    what is decided stays.
    """
    limits = p8.ratio_limits(grid.plan.margin)
    whole = grid.ratios(about.arm, about.point)
    found: dict[When | None, Series] = {}
    latest: list[When | None] = []
    settled = False
    for look, units in grid.units.reached(grid.counted):
        parts = _parts(grid, changes, about, whole, grid.units.blocks(units))
        regimes = [part.regime for part, _ in parts]
        if settled and (None in regimes) != (None in latest):
            continue
        latest = regimes
        for part, ratios in parts:
            readings = found[part.regime].decision.readings if part.regime in found else ()
            values = [value for unit, value in counting(ratios) if unit in units]
            if values:
                readings = (*readings, grid.units.reading(look, values, limits, part.family))
            found[part.regime] = Series(part, ratios, p8.conclude(readings, limits))
        settled = settled or any(found[regime].decided for regime in regimes)
    if not found:
        parts = _parts(grid, changes, about, whole, grid.blocks)
        return [Series(part, ratios, p8.conclude((), limits)) for part, ratios in parts]
    claimed = ((regime, found[regime]) for regime in (None, *WHEN) if regime in found)
    return [series for regime, series in claimed if regime in latest or series.decided]


def _parts(
    grid: Grid, changes: Changes, about: Subject, whole: list[BlockRatio], blocks: Collection[int]
) -> list[tuple[Subject, list[BlockRatio]]]:
    """What is compared according to these blocks: whole trials, or each regime with known units."""
    by_regime = changes.ratios(about.arm, about.point, blocks)
    if not by_regime:
        return [(about, grid.units.pooled(whole))]
    shared = len(by_regime) * about.family
    return [
        (replace(about, family=shared, regime=when), grid.units.pooled(ratios)) for when, ratios in by_regime.items()
    ]


def counting(ratios: Sequence[BlockRatio]) -> list[tuple[int, float]]:
    """The blocks that count and say something, each with its log-ratio."""
    return [(ratio.block, ratio.log_ratio) for ratio in ratios if ratio.counted and ratio.log_ratio is not None]


def _whole(about: Subject, parts: list[Claim]) -> Claim:
    """The claims before and (if levels are known there) after a change as one claim.

    It has no figure of its own: that would be an average across the change.
    """
    verdicts = {part.verdict for part in parts}
    both = len(parts) == len(WHEN)
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


def _claim(grid: Grid, series: Series, block_s: float, *, withheld: bool) -> Claim:
    about, ratios, decision = series.about, series.ratios, series.decision
    plan, arm, point, family = grid.plan, about.arm, about.point, about.family
    units = grid.units
    reached = units.reached(grid.counted)
    valid = counting(ratios)
    values = [value for _, value in valid]
    shown = decision.shown.interval if decision.shown else None
    so_far = _so_far(ratios)
    rests_on = next((own for look, own in reached if decision.shown and look == decision.shown.look), None)
    used = [(unit, value) for unit, value in valid if rests_on is None or unit in rests_on]
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
        changing=series.decided and rests_on != reached[-1][1],
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
    return concluded(grid.units.read(of_units, limits, family), limits, len(of_units), scale)


def concluded(decision: p8.Decision, limits: p8.Limits, units: int, scale: Scale = math.expm1) -> Outcome:
    """A decision as an outcome; `units` is how many say something so far, which stands before the first look."""
    if decision.shown is None:
        return Outcome(decision.verdict, within_margin=False, difference=None, blocks=units)
    shown = decision.shown.interval
    return Outcome(decision.verdict, shown.between(limits), as_difference(shown, scale), decision.shown.look.blocks)


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
