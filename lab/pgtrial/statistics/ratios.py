"""From trials to the unit of analysis: one block's log-ratio of speed, per load point or as their mean."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from itertools import takewhile
from statistics import fmean

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
        self.points = range(len(plan.load_points))
        """The load points, by index."""
        self.trials = sorted(trials, key=lambda trial: trial.index)
        self._points = {trial.index: _place(plan, trial) for trial in self.trials}
        self._cells = {
            (trial.block, point, trial.arm): trial
            for trial in self.trials
            if (point := self._points[trial.index]) is not None
        }
        self._by_goodput = plan.measure == "goodput"
        self._ratios: dict[tuple[str, int | None], list[BlockRatio]] = {}
        self._of: defaultdict[tuple[str, int | None], list[Trial]] = defaultdict(list)
        for trial in self.trials:
            for place in {None, self._points[trial.index]}:
                self._of[trial.arm, place].append(trial)
        planned = Counter(each.block for each in plan.wanted)
        stored = Counter(block for block, _, _ in self._cells)
        self.blocks = sorted(stored)
        # A look reads the first n blocks, so a gap ends the count: filling it later would change looks already read.
        self.counted = list(takewhile(lambda block: stored[block] == planned[block], sorted(planned)))
        self._orders: defaultdict[tuple[int, int], list[str]] = defaultdict(list)
        for each in sorted(plan.wanted, key=lambda each: each.index):
            self._orders[each.block, each.load_point].append(each.arm)

    @cached_property
    def by_block(self) -> dict[int, list[Trial]]:
        """The trials of each complete block, in order."""
        return {block: [trial for trial in self.trials if trial.block == block] for block in self.counted}

    def point_of(self, trial: Trial) -> int:
        """Index of the trial's load point in the plan. Raises ValueError if it has none."""
        point = self._points[trial.index]
        if point is None:
            raise ValueError(f"trial {trial.index} has a load point that is not in the plan")
        return point

    def trial(self, block: int, point: int, arm: str) -> Trial | None:
        """The stored trial, if there is one."""
        return self._cells.get((block, point, arm))

    def pair(self, block: int, point: int, arm: str) -> tuple[Trial | None, Trial | None]:
        """The stored trials of an arm and of the baseline."""
        return self.trial(block, point, arm), self.trial(block, point, self.plan.baseline)

    def of(self, arm: str, point: int | None = None) -> list[Trial]:
        """An arm's trials, at one load point or at all, in the order of execution."""
        return list(self._of.get((arm, point), []))

    def block_means(self, points: Sequence[int], value: Callable[[int, int], float | None]) -> dict[int, float]:
        """By complete block the mean over load points of a value of a block and a load point, where all are known."""
        found = {}
        for block in self.counted:
            known = [each for point in points if (each := value(block, point)) is not None]
            if len(known) == len(points):
                found[block] = fmean(known)
        return found

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
        if self._by_goodput or not goodput:
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
        if speed is not None:
            return self._ratios_of(arm, point, speed)
        if (arm, point) not in self._ratios:
            self._ratios[arm, point] = self._ratios_of(arm, point, self.speed)
        return self._ratios[arm, point]

    def _ratios_of(self, arm: str, point: int | None, speed: Speed) -> list[BlockRatio]:
        points = self.points if point is None else [point]
        counted = set(self.counted)
        found = []
        for block in self.blocks:
            pairs = [self.pair(block, p, arm) for p in points]
            present = [(ours, theirs) for ours, theirs in pairs if ours is not None and theirs is not None]
            if len(present) < len(pairs):
                continue
            speeds = [(speed(ours), speed(theirs)) for ours, theirs in present]
            known = [(ours, theirs) for ours, theirs in speeds if ours is not None and theirs is not None]
            pairs_ratios = [log_ratio(*pair) for pair in known] if len(known) == len(speeds) else []
            values = [value for value in pairs_ratios if value is not None]
            failed = {trial.arm for pair in present for trial in pair if not self.goodput(trial)}
            found.append(
                BlockRatio(
                    block=block,
                    log_ratio=fmean(values) if values else None,
                    counted=block in counted,
                    failed=[name for name in self.plan.arms if name in failed],
                    order=self._orders[block, points[0]] if len(points) == 1 else [],
                )
            )
        return found


def _place(plan: Plan, trial: Trial) -> int | None:
    """Index of a trial's load point in the plan; None if it has none. To hash a load point takes ten times as long."""
    if trial.index < len(plan.trials):
        planned = plan.trials[trial.index].load_point
        if plan.load_points[planned] == trial.load_point:
            return planned
    return plan.load_points.index(trial.load_point) if trial.load_point in plan.load_points else None


def log_ratio(arm: float, baseline: float) -> float | None:
    """The log-ratio of a pair's speeds or costs; None if both are zero. One that is zero counts as 1000-fold less."""
    if not arm and not baseline:
        return None
    if not arm or not baseline:
        return WORST if arm else -WORST
    return math.log(arm / baseline)
