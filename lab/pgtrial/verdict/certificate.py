"""Evaluates the blocks of a self-test, in which pgtrial compares equal servers and servers that it has made slower by a
known share, in three ways.

- Consecutive studies: the first blocks, up to the look (interim analysis) that gives a verdict, count as one study, the
  next blocks as another study, and so on. Servers are started again for every block, so consecutive studies are as
  independent as separate studies.
- Measured differences: the difference of each arm from the baseline over all blocks. Two equal arms should not differ,
  and the difference that was built into an arm should be found. The size of the built-in difference is known from a
  calibration, whose error is part of the comparison.
- Reach: the numbers of blocks that studies on this machine need, computed by `precision` from the spread of these
  blocks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pgtrial.model.records.claims import Estimate
from pgtrial.model.records.machine import Found, Planted, Reach, StudyRun
from pgtrial.statistics import p8, p9
from pgtrial.statistics.paired_t import ALPHA
from pgtrial.statistics.precision import blocks_for
from pgtrial.statistics.recovery import difference
from pgtrial.statistics.rules import Looks, planned
from pgtrial.statistics.shamos import spread
from pgtrial.verdict.family import counting
from pgtrial.verdict.grid import Grid
from pgtrial.verdict.pace import block_seconds
from pgtrial.verdict.series import as_difference

_DIFFERENCES = (0.01, 0.02, 0.03, 0.05, 0.1)
SAME_BLOCKS = 12
"""The number of blocks of a study of two equal arms. It has looks (interim analyses) at 8, 10 and 12 blocks."""
PLANTED_BLOCKS = 40
"""The largest number of blocks of a study in which one arm is slower by a built-in difference."""


@dataclass(frozen=True)
class Series:
    """The logarithms of the ratios of an arm's throughput to the baseline's, and the times, of the complete blocks in
    order."""

    log_ratios: list[float]
    seconds: list[float]
    """The wall time of each block in seconds. If the self-test has more than two arms, it is computed as if the block
    had only two."""

    @property
    def spread(self) -> float:
        """Returns the robust standard deviation of the log-ratios of single blocks."""
        return spread(self.log_ratios)

    @property
    def block_s(self) -> float:
        """Returns the mean wall time of a block in seconds, if the block had only two arms."""
        return math.fsum(self.seconds) / len(self.seconds)


def series(grid: Grid, arm: str) -> Series:
    """Returns the log-ratios and the times of the complete blocks of an arm and the baseline.

    The time of a block is the share of its wall time that two of its arms take, on the assumption that all arms take
    equally long.
    """
    times, share = block_seconds(grid), 2 / len(grid.plan.arms)
    known = counting(grid.ratios(arm, grid.points))
    return Series(list(known.values()), [share * times[block] for block in known])


def consecutive(of: Series, longest: int, margin: float) -> list[StudyRun]:
    """Returns the studies into which the blocks are divided, one after the other.

    Each study is planned for `longest` blocks, or for all remaining blocks if these are fewer. If the remaining blocks
    are too few for a verdict, they form no study.
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
    """Returns the result of the first look (planned interim analysis) that gives a verdict, or of the last look if none
    does."""
    read: list[p8.Reading] = []
    for reading in looks.readings(log_ratios, p8.ratio_limits(margin)):
        read.append(reading)
        if reading.verdict != "undecided":
            break
    return read[-1]


def measured(of: Series) -> Estimate:
    """Returns the difference of an arm from the baseline over all blocks."""
    return as_difference(p8.interval(of.log_ratios, ALPHA))


def found(of: Series, planted: Planted, margin: float) -> Found:
    """Returns how well the blocks of an arm show the difference that was built into this arm: in which of the
    consecutive studies it was found, and how large it was measured."""
    return Found(
        planted=planted,
        difference=measured(of),
        studies=consecutive(of, PLANTED_BLOCKS, margin),
        gap=_gap(of, planted),
    )


def _gap(of: Series, planted: Planted) -> Estimate | None:
    """Returns the measured difference minus the built-in difference, with an interval that includes the errors of both.
    Returns None if the built-in difference has no interval."""
    if planted.low is None or planted.high is None:
        return None
    ends = (planted.high, planted.slower_by, planted.low)
    true = p8.Interval(*(math.log1p(-share) if share < 1 else -math.inf for share in ends))
    return as_difference(difference(p8.interval(of.log_ratios, ALPHA), true))


def reach(deviation: float, block_s: float) -> list[Reach]:
    """Returns how many blocks and how much time a study on this machine needs to find differences of several sizes.

    Differences that would need more than ten million blocks are left out.
    """
    needed = {size: blocks_for(math.inf, 1, deviation, difference=size) for size in _DIFFERENCES}
    return [
        Reach(difference=size, blocks=blocks, seconds=blocks * block_s)
        for size, blocks in needed.items()
        if blocks is not None
    ]
