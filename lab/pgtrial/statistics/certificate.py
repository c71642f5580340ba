"""What the blocks of a self-test say about the machine: consecutive studies, relabelled studies, and their reach.

The blocks are recorded once and read in three ways.

- Consecutive studies: the first blocks up to the look that decides are a study, the next blocks another one. Servers
  are started anew for every block, so consecutive studies are as independent as studies that are run one after the
  other.
- Relabelled studies: in each recorded block the roles of the two arms that are alike are drawn anew. Under the rule at
  most 5% of such orders may give a verdict, whatever the noise was (docs/method.md).
- Reach: the sample sizes of `precision` for the spread of these blocks.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from pgtrial.model.records.certificate import Found, Planted, Reach, Selftest, StudyRun
from pgtrial.model.records.study import Plan, Trial
from pgtrial.statistics import p8
from pgtrial.statistics.claims import as_difference, decide
from pgtrial.statistics.over_time import ALPHA, under_way_s
from pgtrial.statistics.precision import blocks_to_find, spread
from pgtrial.statistics.ratios import Grid

_DIFFERENCES = (0.01, 0.02, 0.03, 0.05, 0.1)
_SAME_BLOCKS = 12
"""Blocks of an A/A study: the first two looks of the table."""
_PLANTED_BLOCKS = 40
"""Most blocks of a study with a planted difference."""
_ORDERS = 1000


def consecutive(log_ratios: Sequence[float], seconds: Sequence[float], longest: int, margin: float) -> list[StudyRun]:
    """The studies that these blocks hold, in their order. A study is planned for `longest` blocks, or for the rest.

    `seconds` has the time of each block. A rest that is too short for a verdict is no study.
    """
    found = []
    at = 0
    while len(log_ratios) - at >= p8.first_look():
        planned = p8.looks(min(longest, len(log_ratios) - at))
        run = _study(log_ratios[at:], planned, margin)
        found.append(StudyRun(blocks=run[0], seconds=math.fsum(seconds[at : at + run[0]]), verdict=run[1]))
        at += run[0]
    return found


def _study(log_ratios: Sequence[float], planned: Sequence[int], margin: float) -> tuple[int, p8.Verdict]:
    readings = p8.decide(log_ratios[: planned[-1]], margin, planned=planned).readings
    decided = (reading for reading in readings if reading.verdict != "undecided")
    last = next(decided, readings[-1])
    return last.look.blocks, last.verdict


def blocks_of(grid: Grid, arm: str) -> tuple[list[float], list[float]]:
    """By counted block: the log-ratio of an arm to the baseline, and the wall time of two arms, seconds."""
    times = {block: under_way_s([each for each in grid.trials if each.block == block]) for block in grid.counted}
    share = 2 / len(grid.plan.arms)
    known = [(each.block, each.log_ratio) for each in grid.ratios(arm, None) if each.counted]
    pairs = [(value, share * times[block]) for block, value in known if value is not None]
    return [value for value, _ in pairs], [time for _, time in pairs]


def same_studies(plan: Plan, trials: Sequence[Trial], same: str) -> list[StudyRun]:
    """The A/A studies of the arm that is set up like the baseline."""
    log_ratios, seconds = blocks_of(Grid(plan, trials), same)
    return consecutive(log_ratios, seconds, _SAME_BLOCKS, plan.margin)


def found(plan: Plan, trials: Sequence[Trial], planted: Planted) -> Found:
    """What the blocks say about a planted difference."""
    log_ratios, seconds = blocks_of(Grid(plan, trials), planted.arm)
    return Found(
        planted=planted,
        difference=as_difference(p8.interval(log_ratios, ALPHA)),
        studies=consecutive(log_ratios, seconds, _PLANTED_BLOCKS, plan.margin),
    )


def largest_spread(plan: Plan, trials: Sequence[Trial]) -> float:
    """Robust standard deviation of a block's log-ratio against the baseline; of all arms the largest."""
    grid = Grid(plan, trials)
    return max(spread(blocks_of(grid, arm)[0]) for arm in plan.arms if arm != plan.baseline)


def pair_block_s(plan: Plan, trials: Sequence[Trial]) -> float:
    """Wall time of a block of two arms, seconds, mean."""
    _, seconds = blocks_of(Grid(plan, trials), next(arm for arm in plan.arms if arm != plan.baseline))
    return math.fsum(seconds) / len(seconds)


def reach(deviation: float, block_s: float) -> list[Reach]:
    """The blocks and the time in which differences are found; those that take more than can be run are left out."""
    needed = {difference: blocks_to_find(difference, 1, deviation) for difference in _DIFFERENCES}
    return [
        Reach(difference=difference, blocks=blocks, seconds=blocks * block_s)
        for difference, blocks in needed.items()
        if blocks is not None
    ]


def relabelled(plan: Plan, trials: Sequence[Trial], selftest: Selftest) -> tuple[int, int]:
    """Orders drawn for the two arms that are alike, and how many of them the rule calls different.

    Each order goes through everything that turns trials into a verdict, with a margin of zero: no order can end as
    equivalent.
    """
    alike = {plan.baseline: selftest.same, selftest.same: plan.baseline}
    pair = plan.model_copy(
        update={
            "arms": [plan.baseline, selftest.same],
            "trials": [each for each in plan.trials if each.arm in alike],
            "looks": p8.looks(plan.max_blocks),
            "margin": 0.0,
        }
    )
    own = [trial for trial in trials if trial.arm in alike]
    draw = np.random.Generator(np.random.Philox(plan.seed))
    false = sum(_differs(pair, own, alike, swapped) for swapped in _orders(draw, plan.max_blocks))
    return _ORDERS, false


def _orders(draw: np.random.Generator, blocks: int) -> Iterator[set[int]]:
    """The blocks in which the roles are swapped, of each order."""
    for _ in range(_ORDERS):
        yield set(np.flatnonzero(draw.integers(0, 2, blocks)).tolist())


def _differs(plan: Plan, trials: Sequence[Trial], alike: dict[str, str], swapped: set[int]) -> bool:
    planned = [
        each.model_copy(update={"arm": alike[each.arm]}) if each.block in swapped else each for each in plan.trials
    ]
    renamed = [each.model_copy(update={"arm": alike[each.arm]}) if each.block in swapped else each for each in trials]
    compared = decide(plan.model_copy(update={"trials": planned}), renamed)
    return any(each.decided for each in compared)
