"""The stored trials by block, load point and arm, and what a metric says of each block."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from itertools import takewhile
from statistics import fmean

from pgtrial.model.records.plan import Plan
from pgtrial.model.records.results import BlockRatio
from pgtrial.model.records.trial import Trial
from pgtrial.model.units import grouped
from pgtrial.verdict.metric import Metric
from pgtrial.verdict.speed import goodput, speed_of
from pgtrial.verdict.units import Units


class Grid:
    """The stored trials by block, load point and arm, and which blocks count."""

    def __init__(self, plan: Plan, trials: Iterable[Trial]):
        self.plan = plan
        self.units = Units(plan)
        self.points = range(len(plan.load_points))
        """The load points, by index."""
        self.trials = sorted(trials, key=lambda trial: trial.index)
        self._points = {trial.index: _place(plan, trial) for trial in self.trials}
        self._goodput = {trial.index: goodput(plan, trial) for trial in self.trials}
        self._cells = {
            (trial.block, point, trial.arm): trial
            for trial in self.trials
            if (point := self._points[trial.index]) is not None
        }
        self.speed = speed_of(plan)
        """What the primary claims compare."""
        self._ratios: dict[tuple[str, tuple[int, ...], Metric], list[BlockRatio]] = {}
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
        found = grouped((trial.block, trial) for trial in self.trials)
        return {block: found[block] for block in self.counted}

    def point_of(self, trial: Trial) -> int:
        """Index of the trial's load point in the plan. Raises ValueError if it has none."""
        point = self._points[trial.index]
        if point is None:
            raise ValueError(f"trial {trial.index} has a load point that is not in the plan")
        return point

    def over(self, point: int | None) -> Sequence[int]:
        """The load points that a claim is about: one, or (None) all."""
        return self.points if point is None else [point]

    def trial(self, block: int, point: int, arm: str) -> Trial | None:
        """The stored trial, if there is one."""
        return self._cells.get((block, point, arm))

    def in_block(self, arm: str, block: int) -> list[Trial]:
        """An arm's stored trials of a block, in the order of the load points."""
        return [trial for point in self.points if (trial := self.trial(block, point, arm)) is not None]

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
        """Committed transactions per second of the measured part; 0 for a failed trial."""
        return self._goodput[trial.index]

    def ratios(self, arm: str, points: Sequence[int], metric: Metric | None = None) -> list[BlockRatio]:
        """Every stored block's gain of `arm` over the baseline, the mean over these load points; by speed unless said.

        A block of which the metric is not known has no log-ratio. Computed once for each metric.
        """
        key = arm, tuple(points), metric or self.speed
        if key not in self._ratios:
            self._ratios[key] = self._ratios_of(*key)
        return self._ratios[key]

    def gains(self, arm: str, points: Sequence[int], metric: Metric) -> dict[int, float]:
        """By complete block, of those that say something, how much better the arm is by a metric."""
        gains = ((block, _gain(self._pairs(block, arm, points), metric)) for block in self.counted)
        return {block: gain for block, gain in gains if gain is not None}

    def _ratios_of(self, arm: str, points: Sequence[int], metric: Metric) -> list[BlockRatio]:
        counted = set(self.counted)
        found = []
        for block in self.blocks:
            pairs = self._pairs(block, arm, points)
            if not pairs:
                continue
            failed = {trial.arm for pair in pairs for trial in pair if not self.goodput(trial)}
            found.append(
                BlockRatio(
                    block=block,
                    log_ratio=_gain(pairs, metric),
                    counted=block in counted,
                    failed=[name for name in self.plan.arms if name in failed],
                    order=self._orders[block, points[0]] if len(points) == 1 else [],
                )
            )
        return found

    def _pairs(self, block: int, arm: str, points: Sequence[int]) -> list[tuple[Trial, Trial]]:
        """The trials of an arm and of the baseline at each load point; none if one of them is not stored."""
        pairs = [self.pair(block, point, arm) for point in points]
        stored = [(own, base) for own, base in pairs if own is not None and base is not None]
        return stored if len(stored) == len(pairs) else []


def _gain(pairs: Sequence[tuple[Trial, Trial]], metric: Metric) -> float | None:
    """The mean over a block's pairs of how much better the first is; None: they say nothing."""
    values = [(metric.value(own), metric.value(base)) for own, base in pairs]
    known = [pair for pair in values if metric.is_known(*pair)]
    counts = known if len(known) == len(pairs) or not metric.at_every_point else []
    gains = [gain for pair in counts if (gain := metric.gain(*pair)) is not None]
    return fmean(gains) if gains else None


def _place(plan: Plan, trial: Trial) -> int | None:
    """Index of a trial's load point in the plan; None if it has none. To hash a load point takes ten times as long."""
    if trial.index < len(plan.trials):
        planned = plan.trials[trial.index].load_point
        if plan.load_points[planned] == trial.load_point:
            return planned
    return plan.load_points.index(trial.load_point) if trial.load_point in plan.load_points else None
