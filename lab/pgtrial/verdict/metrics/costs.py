"""Compares the arms by the costs of a committed transaction, such as CPU time, WAL, buffers, flushes, context switches
and bytes.

Each cost is a ratio within one trial. Costs are compared in the same way as speeds: by the logarithm of the ratio of
the two arms within a block, and with the same statistical rule. The intervals of a cost are valid for this cost alone,
without a correction for the number of costs. Costs explain the verdict but are not part of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np

from pgtrial.model.records.claims import Claim
from pgtrial.model.records.results import Cost
from pgtrial.model.records.trial import Trial
from pgtrial.statistics.describe import median_interval
from pgtrial.verdict.family import sharing
from pgtrial.verdict.grid import Grid
from pgtrial.verdict.metric import Metric
from pgtrial.verdict.series import described
from pgtrial.verdict.transaction_costs import KINDS, Kind


def costs(grid: Grid, primary: Sequence[Claim]) -> list[Cost]:
    """Returns every known cost, such as CPU time or WAL, by arm and load point. If there are several load points, each
    cost has another entry with the mean over them."""
    per_arm = []
    for kind in KINDS:
        readings = _Costs(grid, kind)
        known = [point for point in grid.points if readings.is_notable(point)]
        means = [None] if known and len(grid.points) > 1 else []
        for point, arm in product([*known, *means], grid.plan.arms):
            over, family = (known, len(primary)) if point is None else ([point], sharing(grid.plan))
            per_arm.append(readings.cost(arm, point, over, family=family))
    return [cost for cost in per_arm if cost is not None]


class _Costs:
    """The values of one cost (such as CPU time or WAL) in all trials that did not fail. The cost of each trial is
    computed once."""

    def __init__(self, grid: Grid, kind: Kind) -> None:
        self._grid, self._kind = grid, kind
        values = {trial.index: kind.of(trial) for trial in grid.trials if grid.goodput(trial)}
        self._known = {index: value for index, value in values.items() if value is not None}
        self._metric = Metric(kind.name, kind.unit, self._value, "neither", at_every_point=False)

    def _value(self, trial: Trial) -> float | None:
        return self._known.get(trial.index)

    def _values(self, arm: str, point: int | None) -> list[float]:
        """Returns the known costs of an arm's trials, in ascending order."""
        return sorted(self._known[trial.index] for trial in self._grid.of(arm, point) if trial.index in self._known)

    def is_notable(self, point: int) -> bool:
        """True if, for any arm, the median cost (such as CPU time or WAL) at a load point is above the value that
        counts as negligible."""
        of_arms = (self._values(arm, point) for arm in self._grid.plan.arms)
        return any(values and float(np.median(values)) > self._kind.negligible for values in of_arms)

    def cost(self, arm: str, point: int | None, over: list[int], *, family: int) -> Cost | None:
        """Returns the cost (such as CPU time or WAL) of an arm and its difference from the baseline's cost. Returns
        None if the cost is not known."""
        values = self._values(arm, point)
        if not values or (point is None and arm == self._grid.plan.baseline):
            return None
        low, high = median_interval(values) if point is not None else (None, None)
        blocks, difference = 0, None
        if arm != self._grid.plan.baseline:
            blocks, difference = described(self._grid, self._grid.gains(arm, over, self._metric), family)
        return Cost(
            what=self._kind.name,
            unit=self._kind.unit,
            arm=arm,
            load_point=point,
            trials=len(values),
            median=float(np.median(values)) if point is not None else None,
            low=low,
            high=high,
            blocks=blocks,
            difference=difference,
        )


def clearly(cost: Cost, margin: float) -> bool:
    """True if a cost (such as CPU time or WAL) differs clearly: the interval of its difference from the baseline lies
    completely above the margin, or completely below the negative margin."""
    difference = cost.difference
    if difference is None or difference.low is None or difference.high is None:
        return False
    return difference.low > margin or difference.high < -margin
