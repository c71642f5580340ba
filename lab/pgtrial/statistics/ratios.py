"""From trials to the unit of analysis: one block's log-ratio of speed, per load point or as their mean."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import cached_property
from itertools import takewhile

from pgtrial.model.records.plan import Plan
from pgtrial.model.records.results import BlockRatio
from pgtrial.model.records.trial import Trial
from pgtrial.statistics.deployments import Units
from pgtrial.statistics.p8 import WORST

Speed = Callable[[Trial], float | None]
"""What is compared of a trial, the larger the better; None: unknown."""


class Grid:
    """The stored trials by block, load point and arm, and which blocks count."""

    def __init__(self, plan: Plan, trials: Iterable[Trial]):
        self.plan = plan
        self.units = Units(plan)
        self.trials = sorted(trials, key=lambda trial: trial.index)
        points = {point: index for index, point in enumerate(plan.load_points)}
        self._cells = {(t.block, points[t.load_point], t.arm): t for t in self.trials if t.load_point in points}
        self._of: dict[tuple[str, int | None], list[Trial]] = {}
        for stored_trial in self.trials:
            for point in {None, points.get(stored_trial.load_point)}:
                self._of.setdefault((stored_trial.arm, point), []).append(stored_trial)
        planned: dict[int, int] = {}
        for trial in plan.wanted:
            planned[trial.block] = planned.get(trial.block, 0) + 1
        stored: dict[int, int] = {}
        for block, _, _ in self._cells:
            stored[block] = stored.get(block, 0) + 1
        self.blocks = sorted(stored)
        # A look reads the first n blocks, so a gap ends the count: filling it later would change looks already read.
        self.counted = list(takewhile(lambda block: stored.get(block) == planned[block], sorted(planned)))
        self._orders: dict[tuple[int, int], list[str]] = {}
        for trial in sorted(plan.wanted, key=lambda trial: trial.index):
            self._orders.setdefault((trial.block, trial.load_point), []).append(trial.arm)

    @cached_property
    def by_block(self) -> dict[int, list[Trial]]:
        """The trials of each complete block, in order."""
        found: dict[int, list[Trial]] = {block: [] for block in self.counted}
        for trial in self.trials:
            if trial.block in found:
                found[trial.block].append(trial)
        return found

    @cached_property
    def looked_at(self) -> list[int]:
        """The blocks of the last planned look that was reached; before the first all blocks that are stored."""
        units = self.units.complete(self.counted)
        reached = [look for look in self.units.planned if look <= len(units)]
        return sorted(self.units.blocks(units[: reached[-1]])) if reached else self.blocks

    def point_of(self, trial: Trial) -> int:
        """Index of the trial's load point in the plan."""
        return self.plan.load_points.index(trial.load_point)

    def trial(self, block: int, point: int, arm: str) -> Trial | None:
        """The stored trial, if there is one."""
        return self._cells.get((block, point, arm))

    def pair(self, block: int, point: int, arm: str) -> tuple[Trial | None, Trial | None]:
        """The stored trials of an arm and of the baseline."""
        return self.trial(block, point, arm), self.trial(block, point, self.plan.baseline)

    def of(self, arm: str, point: int | None = None) -> list[Trial]:
        """An arm's trials, at one load point or at all, in the order of execution."""
        return list(self._of.get((arm, point), []))

    def goodput(self, trial: Trial) -> float:
        """Committed transactions per second, from the scheduled start to the scheduled end; 0 for a failed trial.

        A run that ended early is divided by the time that it should have lasted.
        """
        if trial.status == "failed" or trial.measured is None:
            return 0.0
        return trial.measured.transactions / max(trial.measured.duration_s, self.plan.duration_s)

    def speed(self, trial: Trial) -> float:
        """What claims compare, the larger the better; 0 for a failed trial.

        The goodput, or with a rate the inverse of the mean response time, 1/s. The mean over tasks counts a failed one
        with the time until it failed: without it, an arm would be the faster the more tasks it fails.
        """
        goodput = self.goodput(trial)
        if self.plan.measure == "goodput" or not goodput:
            return goodput
        if trial.tasks is not None:
            mean = trial.tasks.mean_us
            return 1e6 / mean if mean else 0.0
        latency = trial.measured.latency_us if trial.measured else None
        return 1e6 / latency.mean if latency else 0.0

    def ratios(self, arm: str, point: int | None, speed: Speed | None = None) -> list[BlockRatio]:
        """Every stored block's log-ratio of `arm` to the baseline, at a load point or (None) as the mean over all.

        Compares the speeds of whole trials unless given another `speed`; a block with an unknown one has no log-ratio.
        """
        speed = speed or self.speed
        points = range(len(self.plan.load_points)) if point is None else [point]
        counted = set(self.counted)
        found = []
        for block in self.blocks:
            pairs = [self.pair(block, p, arm) for p in points]
            present = [(ours, theirs) for ours, theirs in pairs if ours is not None and theirs is not None]
            if len(present) < len(pairs):
                continue
            speeds = [(speed(ours), speed(theirs)) for ours, theirs in present]
            known = [(ours, theirs) for ours, theirs in speeds if ours is not None and theirs is not None]
            pairs_ratios = [_log_ratio(*pair) for pair in known] if len(known) == len(speeds) else []
            values = [value for value in pairs_ratios if value is not None]
            failed = {trial.arm for pair in present for trial in pair if not self.goodput(trial)}
            found.append(
                BlockRatio(
                    block=block,
                    log_ratio=math.fsum(values) / len(values) if values else None,
                    counted=block in counted,
                    failed=[name for name in self.plan.arms if name in failed],
                    order=self._orders[block, points[0]] if len(points) == 1 else [],
                )
            )
        return found


def _log_ratio(arm: float, baseline: float) -> float | None:
    """The log-ratio of a pair's speeds; None if both committed nothing. A failure counts as a 1000-fold loss."""
    if not arm and not baseline:
        return None
    if not arm or not baseline:
        return WORST if arm else -WORST
    return math.log(arm / baseline)
