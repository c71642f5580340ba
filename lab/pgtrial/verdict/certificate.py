"""The evaluation of a self-test's blocks: consecutive studies, measured differences, and the reach of the machine.

The blocks are recorded once and read in three ways.

- Consecutive studies: the first blocks up to the look that decides are a study, the next blocks another one. Servers
  are started anew for every block, so consecutive studies are as independent as studies that are run one after the
  other.
- Measured differences: all blocks of an arm and the baseline. Two equal arms should not differ, and a planted
  difference should be found. What was planted is known from a calibration, whose error is part of the comparison.
- Reach: the sample sizes of `precision` for the spread of these blocks.
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
"""The number of blocks of an A/A study, whose looks are at 8, 10 and 12."""
PLANTED_BLOCKS = 40
"""The largest number of blocks of a study with a planted difference."""


@dataclass(frozen=True)
class Series:
    """The complete blocks of an arm and the baseline, in order."""

    log_ratios: list[float]
    seconds: list[float]
    """The wall time of each block of two arms, seconds."""

    @property
    def spread(self) -> float:
        """Returns the robust standard deviation of a log-ratio."""
        return spread(self.log_ratios)

    @property
    def block_s(self) -> float:
        """Returns the mean wall time of a block of two arms, seconds."""
        return math.fsum(self.seconds) / len(self.seconds)


def series(grid: Grid, arm: str) -> Series:
    """Returns the log-ratios and the times of the complete blocks of an arm and the baseline.

    The time of a block is the part of its wall time that two of its arms take, if all arms take equally long.
    """
    times, share = block_seconds(grid), 2 / len(grid.plan.arms)
    known = counting(grid.ratios(arm, grid.points))
    return Series(list(known.values()), [share * times[block] for block in known])


def consecutive(of: Series, longest: int, margin: float) -> list[StudyRun]:
    """Returns the studies into which these blocks divide, one after the other.

    Each study is planned for `longest` blocks, or for all that remain. Too few remaining blocks for a verdict are no
    study.
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


def measured(of: Series) -> Estimate:
    """Returns the difference of an arm and the baseline by all blocks."""
    return as_difference(p8.interval(of.log_ratios, ALPHA))


def found(of: Series, planted: Planted, margin: float) -> Found:
    """Returns what the blocks of an arm say about its planted difference."""
    return Found(
        planted=planted,
        difference=measured(of),
        studies=consecutive(of, PLANTED_BLOCKS, margin),
        gap=_gap(of, planted),
    )


def _gap(of: Series, planted: Planted) -> Estimate | None:
    """Returns how far the measured difference is from the planted one, with the errors of both."""
    if planted.low is None or planted.high is None:
        return None
    ends = (planted.high, planted.slower_by, planted.low)
    true = p8.Interval(*(math.log1p(-share) if share < 1 else -math.inf for share in ends))
    return as_difference(difference(p8.interval(of.log_ratios, ALPHA), true))


def reach(deviation: float, block_s: float) -> list[Reach]:
    """Returns the blocks and the time that a study needs to find a difference, for differences of several sizes.

    Differences that would need more blocks than a study can have are left out.
    """
    needed = {size: blocks_for(math.inf, 1, deviation, difference=size) for size in _DIFFERENCES}
    return [
        Reach(difference=size, blocks=blocks, seconds=blocks * block_s)
        for size, blocks in needed.items()
        if blocks is not None
    ]
