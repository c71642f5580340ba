"""Cliffs over the size of the data: at which size the throughput of each arm falls, whether reads begin at this size,
and which arm's cliff comes at the larger size.

The arms are compared at each single size elsewhere. This module compares the sizes at which the arms have their cliffs,
and these comparisons share an allowed probability of a wrong verdict of their own. In each block, the size of an arm's
cliff is the size at which its curve falls most steeply. The verdict follows from the log-ratios of these sizes, by the
same statistical rule as for speeds.

The curves are broken lines. How many bends (knots) they have is decided at each look (interim analysis) by fitting one
line to the curves with the larger loss of throughput in each block, whichever arm they belong to. There is a verdict
only if both arms have a cliff.
"""

from __future__ import annotations

import math
from collections.abc import Sequence, Set
from itertools import pairwise

import numpy as np

from pgtrial.model.records.claims import Claim
from pgtrial.model.records.sweeps import Cliff, SizeCurve
from pgtrial.statistics.cliffs import BrokenLine, Knot, broken_line, steepest
from pgtrial.statistics.p8 import Floats
from pgtrial.verdict.grid import Grid
from pgtrial.verdict.series import Question, Series, follow
from pgtrial.verdict.sweeps import (
    Sweep,
    bounds,
    changing_arms,
    curves,
    family_of,
    line_of_loser,
    of_units,
    readings,
    spoilt,
    sweeps,
)
from pgtrial.verdict.transaction_costs import READS

_NARROW = 1.1
"""The smallest ratio between two neighbouring sizes. No further size is proposed for a gap if halving it would give a
smaller ratio."""


def cliffs(grid: Grid, primary: Sequence[Claim]) -> list[SizeCurve]:
    """Returns the curve of the throughput of each arm over each sweep, which is a group of load points that differ only
    in the size of the data. The result is empty if the study has no sweep."""
    found = sweeps(grid.plan, "scale")
    return [of_arm for sweep in found for of_arm in _arms(grid, sweep, primary, family_of(grid.plan, found))]


def _arms(grid: Grid, sweep: Sweep, primary: Sequence[Claim], family: int) -> list[SizeCurve]:
    plan, changing = grid.plan, changing_arms(grid, primary)
    rows = {arm: of_units(grid, sweep, curves(grid, sweep, arm)) for arm in plan.arms}
    lines = {arm: broken_line(sweep.numbers, of_arm) if arm not in changing else None for arm, of_arm in rows.items()}
    with_cliff = {arm for arm, line in lines.items() if line is not None and line.cliffs}
    claims = {claim.arm: claim for claim in primary}
    made = []
    for arm in plan.arms:
        line = lines[arm]
        claim = claims.get(arm)
        compares = claim is not None and {arm, plan.baseline} <= with_cliff
        series = _compared(grid, sweep, arm, family) if compares else None
        withheld = claim is not None and claim.verdict == "withheld"
        made.append(
            SizeCurve(
                arm=arm,
                load_points=list(sweep.points),
                scales=list(sweep.numbers),
                blocks=len(rows[arm]),
                left_out=spoilt(grid, sweep, arm),
                line=_line(sweep, line) if line is not None else [],
                cliffs=[_cliff(grid, sweep, arm, knot) for knot in line.cliffs] if line is not None else [],
                between=_between(sweep, rows[arm], line.cliffs[0]) if line is not None and line.cliffs else [],
                verdict=series.verdict(withheld=withheld) if series is not None else None,
                difference=series.difference if series is not None else None,
                claims=family,
            )
        )
    return made


def _line(sweep: Sweep, line: BrokenLine) -> list[tuple[float, float]]:
    """Returns the points of a fitted broken line as pairs of scale and throughput, at the measured sizes and at the
    bends (knots) of the line between them."""
    known = dict(zip((math.log(scale) for scale in sweep.numbers), line.values, strict=True))
    first = sweep.numbers[0]

    def value(log_size: float) -> float:
        base, slope = line.values[0], line.knots[0].before
        bends = sum(
            (knot.after - knot.before) * max(0.0, log_size - math.log(knot.size.estimate)) for knot in line.knots
        )
        return base + slope * (log_size - math.log(first)) + bends

    known |= {
        log_size: value(log_size) for knot in line.knots if (log_size := math.log(knot.size.estimate)) not in known
    }
    return [(math.exp(log_size), math.exp(known[log_size])) for log_size in sorted(known)]


def _cliff(grid: Grid, sweep: Sweep, arm: str, knot: Knot) -> Cliff:
    step = max(later / earlier for earlier, later in pairwise(sweep.numbers))
    turning: list[str] = []
    known = False
    for kind in READS:
        reads = of_units(grid, sweep, readings(grid, sweep, arm, kind.of))
        line = broken_line(sweep.numbers, reads)
        if line is None:
            continue
        known = True
        rising = reads.mean(axis=0).max() - reads.mean(axis=0).min() > kind.negligible
        near = any(
            rise.size.low <= step * knot.size.high and knot.size.low <= step * rise.size.high for rise in line.rises
        )
        turning += [kind.name] if rising and near else []
    return Cliff(scale=bounds(knot.size), change=knot.change, reads=turning if known else None)


def _between(sweep: Sweep, rows: Floats, cliff: Knot) -> list[int]:
    """Returns up to two scales at which a further measurement would narrow down the position of a cliff, by bisection.

    One is the middle of the gap in which the curve falls most steeply, the other one the middle of that half of the gap
    that contains the cliff. The result is empty if the gap is already narrow.
    """
    log_sizes = np.log(sweep.numbers)
    gap = int(np.argmin(np.diff(rows.mean(axis=0)) / np.diff(log_sizes)))
    low, high = log_sizes[gap], log_sizes[gap + 1]
    middle = (low + high) / 2
    half = (low + middle) / 2 if math.log(cliff.size.estimate) <= middle else (middle + high) / 2
    if high - low < 2 * math.log(_NARROW):
        return []
    return sorted({round(math.exp(log_size)) for log_size in (middle, half)} - set(sweep.numbers))


def _compared(grid: Grid, sweep: Sweep, arm: str, family: int) -> Series | None:
    """Compares the sizes of the data at which the throughput of the arm and of the baseline falls most steeply, as far
    as the looks (interim analyses) so far allow. Returns None if no look has found a cliff."""
    ours, theirs = curves(grid, sweep, arm), curves(grid, sweep, grid.plan.baseline)

    def choice(blocks: Set[int], _: Set[None]) -> dict[None, Question] | None:
        line = line_of_loser(grid, sweep, arm, blocks)
        if line is None or not line.cliffs:
            return None
        sizes = [
            {block: math.log(steepest(sweep.numbers, curve, len(line.knots))) for block, curve in of_arm.items()}
            for of_arm in (ours, theirs)
        ]
        gains = {block: size - sizes[1][block] for block, size in sizes[0].items() if block in sizes[1]}
        return {None: Question(grid.units.means(gains, grid.counted), family, grid.plan.margin)}

    return follow(grid, choice).get(None)
