"""Makes claims, the comparisons of an arm with the baseline, in the form in which they are stored: the verdict after
the looks (interim analyses) so far, and the further values that reports show with the interval."""

from __future__ import annotations

import math
from collections.abc import Collection
from itertools import chain

import numpy as np

from pgtrial.model.records.claims import BlockRatio, Claim, Comparison, LookReading
from pgtrial.statistics import p8, p9
from pgtrial.statistics.describe import robust_sd
from pgtrial.statistics.paired_t import t_interval
from pgtrial.statistics.screening import fewest_units
from pgtrial.verdict.changes import Changes, Regimes
from pgtrial.verdict.family import Part, Subject, parts_of, subjects
from pgtrial.verdict.grid import Grid
from pgtrial.verdict.metric import Scale
from pgtrial.verdict.metrics.declared_claims import undecided_arms
from pgtrial.verdict.metrics.single_parts import undecided_parts
from pgtrial.verdict.screening import first_label
from pgtrial.verdict.series import Series, as_difference, established_margin

_ODD = 3.5
"""A block whose modified z-score is larger than this counts as an outlier (Iglewicz and Hoaglin 1993, How to detect and
handle outliers)."""


def comparisons(grid: Grid, regimes: Regimes | None = None) -> list[Comparison]:
    """Returns the state of each primary claim, which is the comparison that decides the verdict on an arm: whether it
    is decided, and its estimates so far. This is faster than computing the whole result of the study, and gives the
    same decisions."""
    changes = Changes(grid, regimes)
    return [
        Comparison(
            part.about.arm,
            part.regime,
            part.series.decided or (grid.plan.is_one_sided and part.series.not_worse),
            _so_far(part.ratios, grid.primary.scale),
            part.series.difference,
        )
        for about in subjects(grid.plan)[0]
        for part in parts_of(grid, changes, about)
    ]


def decided_arms(grid: Grid, regimes: Regimes | None = None) -> list[str]:
    """Returns the arms on which nothing is left to decide. All their comparisons with the baseline have a verdict: over
    all load points, at single load points, and on the declared metrics and queries."""
    changes = Changes(grid, regimes)
    parts = [part for about in chain(*subjects(grid.plan)) for part in parts_of(grid, changes, about)]
    undecided = {part.about.arm for part in parts if not part.series.decided}
    undecided |= undecided_arms(grid) | undecided_parts(grid)
    return [arm for arm in grid.plan.others if arm not in undecided]


def make_claim(grid: Grid, changes: Changes, about: Subject, block_s: float, *, withheld: bool) -> Claim:
    """Returns the claim on a subject, that is, the comparison of one arm with the baseline at a load point or over all
    of them.

    The claim has parts if the speed changes for good within trials (one part for before and one for after the change),
    or if the throughput falls off a cliff between two sizes of the data (one part for each side of the cliff).
    """
    claims = [_claim(grid, part, block_s, withheld=withheld) for part in parts_of(grid, changes, about)]
    return claims[0] if claims[0].regime is None else _whole(about, claims)


def _whole(about: Subject, parts: list[Claim]) -> Claim:
    """Joins the parts of a claim into one: the comparisons before and after a lasting change of speed, or on the two
    sides of a cliff (a size of the data above which the throughput falls).

    The joint claim has no difference of its own, because an average across the change would describe neither side.
    """
    verdicts = {part.verdict for part in parts}
    both = len(parts) == 2
    agreed = len(verdicts) == 1 and (both or "withheld" in verdicts)
    return Claim(
        arm=about.arm,
        baseline=parts[0].baseline,
        load_point=about.point,
        family=about.family,
        verdict=parts[0].verdict if agreed else "undecided",
        within_margin=both and all(part.within_margin for part in parts),
        not_worse=both and all(part.not_worse for part in parts),
        blocks=parts[0].blocks,
        fewest_blocks=parts[0].fewest_blocks,
        unit=parts[0].unit,
        parts=parts,
    )


def _claim(grid: Grid, part: Part, block_s: float, *, withheld: bool) -> Claim:
    about, series, plan, units = part.about, part.series, grid.plan, grid.units
    family = series.asked.family
    values = list(series.asked.values.values())
    not_worse = grid.plan.is_one_sided and series.not_worse
    # the forecast knows nothing of the other factors of a screening study, whose fit takes a part of each effect
    forecast = not series.decided and not not_worse and not series.asked.cut and not plan.factors
    more = units.more(values, plan.margin, family, grid.counted) if forecast else None
    in_total = plan.measure == "goodput" and part.regime is None and not plan.factors
    baseline = first_label(plan, about.arm) if plan.factors else plan.baseline
    fewest = max(units.fewest(family), fewest_units(len(plan.factors)))
    claim = claim_of(about.arm, baseline, series, part.ratios, fewest, withheld=withheld)
    return claim.model_copy(
        update={
            "load_point": about.point,
            "not_worse": not_worse,
            "totals": _totals(grid, about.arm, about.point, units.blocks(series.used)) if in_total else None,
            "changing": series.decided and series.look != units.reached(grid.counted)[-1][0],
            "more_blocks": more,
            "more_s": more * units.blocks_each * block_s if more is not None else None,
            "more_chance": units.chance(values, plan.margin, family, grid.counted, more) if more else None,
            "unit": units.unit,
            "regime": part.regime,
        }
    )


def claim_of(
    arm: str, baseline: str, series: Series, ratios: list[BlockRatio], fewest: int, *, withheld: bool = False
) -> Claim:
    """Returns a claim (the comparison of an arm with the baseline) that follows from values alone. `ratios` has one
    value for each block or, if each arm has several servers, for each pair of servers. With fewer than `fewest` values
    nothing can be decided.

    The caller fills in the further fields of a claim, which follow from the trials.
    """
    used = {unit: series.asked.values[unit] for unit in series.used}
    shown, scale = series.shown, series.asked.scale
    mean = t_interval(list(used.values())) if used else None
    established = established_margin(shown, scale) if shown else math.inf
    return Claim(
        arm=arm,
        baseline=baseline,
        load_point=None,
        family=series.asked.family,
        verdict=series.verdict(withheld=withheld),
        within_margin=series.within_margin,
        blocks=len(used),
        difference=series.difference,
        mean=as_difference(mean, scale) if mean else None,
        unstable=_unstable(shown, mean),
        odd_blocks=_odd_blocks(list(used.items())),
        running=_so_far(ratios, scale),
        fewest_blocks=fewest,
        established_margin=established if established < 1 else None,
        looks=[
            LookReading(
                blocks=reading.look.blocks,
                alpha=reading.look.alpha,
                claim_alpha=reading.level,
                difference=as_difference(reading.interval, scale),
                verdict=reading.verdict,
            )
            for reading in series.decision.readings
        ],
        ratios=ratios,
    )


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


def _totals(grid: Grid, arm: str, point: int | None, blocks: Collection[int]) -> float | None:
    """Returns by which share the arm committed more transactions than the baseline, in total over these blocks: 0.05
    means 5% more."""
    sums = {arm: 0, grid.plan.baseline: 0}
    for name in sums:
        stored = (trial for trial in grid.of(name, point) if trial.block in blocks)
        sums[name] = sum(trial.measured.transactions for trial in stored if trial.measured)
    theirs = sums[grid.plan.baseline]
    return sums[arm] / theirs - 1 if theirs else None


def _so_far(ratios: list[BlockRatio], scale: Scale) -> float | None:
    """Returns the estimated difference of the arm from the baseline over all blocks so far; None before the first block
    is complete."""
    values = [ratio.log_ratio for ratio in ratios if ratio.log_ratio is not None]
    return scale.shown(p9.estimate(values)) if values else None
