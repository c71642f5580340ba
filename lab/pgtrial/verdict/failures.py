"""The comparison of the shares of failed transactions, which is made in addition to the comparison of the speeds.

An arm looks fast if it fails the transactions that would take long. Therefore, as soon as a transaction has failed in
an arm or in the baseline, the study makes two primary claims on the arm: one on its speed and one on its share of
failures. At each look (interim analysis) the plan allows a certain probability of a wrong verdict, and each of the two
claims gets half of it. The shares of failures are compared block by block, by their difference. If the arms do not
differ, the sign of this difference is as random as a fair coin, as the statistical rule requires.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence, Set
from dataclasses import dataclass

from pgtrial.model.records.trial import Trial
from pgtrial.statistics import screening
from pgtrial.verdict.grid import Grid
from pgtrial.verdict.metric import DIFFERENCE
from pgtrial.verdict.screening import read_factor, signs_of, trials_with
from pgtrial.verdict.series import Question, Series, follow


@dataclass(frozen=True)
class Shares:
    """The shares of failed transactions of an arm and of the baseline, and what each look (interim analysis) has said
    about their difference. In a screening study the second level of a factor takes the place of the arm, and its first
    level that of the baseline."""

    arm: float
    baseline: float
    excess: float
    """The arm's share of failed transactions minus the baseline's; it is negative if the arm fails fewer. For a factor
    it is without the effects of the other factors."""
    series: Series

    def differ_notably(self, margin: float) -> bool:
        """True if a look (interim analysis) has found that the two shares of failures differ, or if they differ by more
        than the margin."""
        return self.series.decided or abs(self.excess) > margin


def failed_in(grid: Grid, arm: str, points: Sequence[int], blocks: Collection[int]) -> bool:
    """True if a transaction of the arm or of the baseline failed in these blocks. Always false for a study that was
    planned with P8, the statistical rule of older versions of pgtrial.

    The result is the same if the two arms are exchanged. A decision that depends on it, such as the number of claims
    (comparisons), can therefore favour neither arm.
    """
    if grid.plan.spending is None:
        return False
    pairs = (grid.pair(block, point, arm) for block in blocks for point in points)
    return any(failed(trial) for pair in pairs for trial in pair if trial is not None)


def failed(trial: Trial) -> int:
    """Returns how many transactions failed in the measured part of a trial, including those that were skipped or timed
    out."""
    served = trial.served
    return sum(served.failures.values()) if served is not None else 0


def shares(grid: Grid, arm: str, family: int) -> Shares | None:
    """Returns the shares of failures of an arm and of the baseline. Returns None if no transaction failed, or if the
    study was planned with P8, the statistical rule of older versions of pgtrial.

    `family` is the number of comparisons of speeds among which each look (interim analysis) divides its allowed
    probability of a wrong verdict.
    """
    if not failed_in(grid, arm, grid.points, grid.blocks):
        return None
    values = {block: gain for block in grid.counted if (gain := _gain(grid, arm, block)) is not None}
    of_units = grid.units.means(values, grid.counted)

    def choice(blocks: Set[int], _: Set[None]) -> dict[None, Question] | None:
        if not failed_in(grid, arm, grid.points, blocks):
            return None
        # with a margin of zero no look finds equivalence, so that a later look can still find a difference
        return {None: Question(of_units, 2 * family, 0.0, DIFFERENCE)}

    series = follow(grid, choice)[None]
    ours, theirs = _share(grid.of(arm)), _share(grid.of(grid.plan.baseline))
    return Shares(ours, theirs, ours - theirs, series)


def factor_shares(grid: Grid, family: int) -> list[Shares | None]:
    """Returns the shares of failed transactions with the levels of each factor of a screening study, in the order of
    the plan. None stands for a factor whose effect is not known, and for all factors if no transaction failed.

    The shares are compared like speeds: block by block, without the effects of the other factors (`read_factor`).
    """
    plan, arm = grid.plan, grid.plan.others[0]
    gains = {block: gain for block in grid.counted if (gain := _gain(grid, arm, block)) is not None}
    signs = signs_of(plan, gains)
    fitted = screening.effects(signs, list(gains.values()))
    if fitted is None or not failed_in(grid, arm, grid.points, gains):
        return [None] * len(plan.factors)
    question = Question(gains, 2 * family, 0.0, DIFFERENCE)
    return [
        Shares(
            _share(trials_with(grid, factor, "1")),
            _share(trials_with(grid, factor, "0")),
            -float(fitted[0][factor]),
            read_factor(grid, factor, question, gains),
        )
        for factor in range(len(plan.factors))
    ]


def _gain(grid: Grid, arm: str, block: int) -> float | None:
    """Returns the baseline's share of failures in a block minus the arm's share, so that a positive value is in favour
    of the arm. Returns None if a trial of the block failed."""
    ours, theirs = grid.in_block(arm, block), grid.in_block(grid.plan.baseline, block)
    if any(not grid.goodput(trial) for trial in (*ours, *theirs)):
        return None
    return _share(theirs) - _share(ours)


def _share(trials: Sequence[Trial]) -> float:
    served = [trial.served for trial in trials if trial.served is not None]
    lost = sum(sum(phase.failures.values()) for phase in served)
    ended = lost + sum(phase.transactions for phase in served)
    return lost / ended if ended else 0.0
