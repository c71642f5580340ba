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
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pgtrial.model.records.machine import Found, Planted, Reach, StudyRun
from pgtrial.model.records.plan import Plan, Spending
from pgtrial.model.records.trial import Trial
from pgtrial.statistics import p8, p9
from pgtrial.statistics.paired_t import ALPHA
from pgtrial.statistics.precision import blocks_for
from pgtrial.statistics.rules import Looks, planned
from pgtrial.statistics.shamos import spread
from pgtrial.verdict.claims import comparisons
from pgtrial.verdict.family import counting
from pgtrial.verdict.grid import Grid
from pgtrial.verdict.pace import block_seconds
from pgtrial.verdict.series import as_difference

_DIFFERENCES = (0.01, 0.02, 0.03, 0.05, 0.1)
SAME_BLOCKS = 12
"""Blocks of an A/A study, whose looks are at 8, 10 and 12."""
PLANTED_BLOCKS = 40
"""Most blocks of a study with a planted difference."""
_ORDERS = 1000


@dataclass(frozen=True)
class Series:
    """The complete blocks of an arm and the baseline, in order."""

    log_ratios: list[float]
    seconds: list[float]
    """Wall time of each block of two arms."""

    @property
    def spread(self) -> float:
        """Robust standard deviation of a log-ratio."""
        return spread(self.log_ratios)

    @property
    def block_s(self) -> float:
        """Mean wall time of a block of two arms, seconds."""
        return math.fsum(self.seconds) / len(self.seconds)


def series(grid: Grid, arm: str) -> Series:
    """The complete blocks of an arm and the baseline. All arms have an equal share of a block's time."""
    times, share = block_seconds(grid), 2 / len(grid.plan.arms)
    known = counting(grid.ratios(arm, grid.points))
    return Series(list(known.values()), [share * times[block] for block in known])


def consecutive(of: Series, longest: int, margin: float) -> list[StudyRun]:
    """The studies that these blocks hold, in their order. A study is planned for `longest` blocks, or for the rest.

    A rest that is too short for a verdict is no study.
    """
    runs = []
    at = 0
    while len(of.log_ratios) - at >= p9.first_look(kept=0.0):
        last = _last_reading(of.log_ratios[at:], planned(min(longest, len(of.log_ratios) - at), 1, 0.0), margin)
        end = at + last.look.blocks
        runs.append(StudyRun(blocks=end - at, seconds=math.fsum(of.seconds[at:end]), verdict=last.verdict))
        at = end
    return runs


def _last_reading(log_ratios: Sequence[float], looks: Looks, margin: float) -> p8.Reading:
    """Returns what the first look that decides says, or the last one."""
    read: list[p8.Reading] = []
    for reading in looks.readings(log_ratios, p8.ratio_limits(margin)):
        read.append(reading)
        if reading.verdict != "undecided":
            break
    return read[-1]


def found(of: Series, planted: Planted, margin: float) -> Found:
    """What the blocks of an arm say about its planted difference."""
    return Found(
        planted=planted,
        difference=as_difference(p8.interval(of.log_ratios, ALPHA)),
        studies=consecutive(of, PLANTED_BLOCKS, margin),
    )


def reach(deviation: float, block_s: float) -> list[Reach]:
    """The blocks and the time in which differences are found; those that take more than can be run are left out."""
    needed = {difference: blocks_for(math.inf, 1, deviation, difference=difference) for difference in _DIFFERENCES}
    return [
        Reach(difference=difference, blocks=blocks, seconds=blocks * block_s)
        for difference, blocks in needed.items()
        if blocks is not None
    ]


def relabelled(grid: Grid, same: str) -> tuple[int, int]:
    """Orders drawn for the baseline and the arm that is like it, and how many of them the rule calls different.

    Each order goes through everything that turns trials into a verdict, with a margin of zero: no order can end as
    equivalent.
    """
    plan = grid.plan
    alike = {plan.baseline: same, same: plan.baseline}
    pair = plan.model_copy(
        update={
            "arms": [plan.baseline, same],
            "trials": [trial for trial in plan.trials if trial.arm in alike],
            "looks": list(planned(plan.max_blocks, 1, 0.0).planned),
            "spending": Spending(end=plan.max_blocks, kept=0.0),
            "margin": 0.0,
        }
    )
    trials = [trial for trial in grid.trials if trial.arm in alike]
    draw = np.random.Generator(np.random.Philox(plan.seed))
    swapped = (set(np.flatnonzero(draw.integers(0, 2, plan.max_blocks)).tolist()) for _ in range(_ORDERS))
    return _ORDERS, sum(_differs(pair, trials, alike, blocks) for blocks in swapped)


def _differs(plan: Plan, trials: Sequence[Trial], alike: dict[str, str], swapped: set[int]) -> bool:
    planned = [
        trial.model_copy(update={"arm": alike[trial.arm]}) if trial.block in swapped else trial for trial in plan.trials
    ]
    renamed = [
        trial.model_copy(update={"arm": alike[trial.arm]}) if trial.block in swapped else trial for trial in trials
    ]
    compared = comparisons(Grid(plan.model_copy(update={"trials": planned}), renamed))
    return any(comparison.decided for comparison in compared)
