"""The stored trials of a study by block, load point and arm. The module also computes, for each block, by how much an
arm is better than the baseline, as the logarithm of the ratio of a metric."""

from __future__ import annotations

from bisect import insort
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from itertools import takewhile
from operator import attrgetter
from statistics import fmean

from pgtrial.model.records.claims import BlockRatio
from pgtrial.model.records.plan import Plan
from pgtrial.model.records.trial import Trial
from pgtrial.verdict.declared import primary_metric
from pgtrial.verdict.metric import Metric
from pgtrial.verdict.speed import goodput
from pgtrial.verdict.units import Units


class Grid:
    """The stored trials of a study by block, load point and arm. The grid also knows which blocks count for verdicts:
    only complete blocks without an incomplete block before them."""

    def __init__(self, plan: Plan, trials: Iterable[Trial]):
        self.plan = plan
        self.units = Units(plan)
        self.points = range(len(plan.load_points))
        """The indexes of the load points."""
        self.primary = primary_metric(plan)
        """The metric that decides the verdicts of the study, by default the speed."""
        self.trials: list[Trial] = []
        """The stored trials, in the order of execution."""
        self.blocks: list[int] = []
        """The blocks that have a stored trial, in order."""
        self.counted: list[int] = []
        """The blocks that count: the complete blocks before the first incomplete block. Each look (interim analysis)
        reads the first n blocks. If an incomplete block were skipped and completed later, the first n blocks, and so
        the result of an earlier look, would change."""
        self._points: dict[int, int | None] = {}
        self._goodput: dict[int, float] = {}
        self._cells: dict[tuple[int, int, str], Trial] = {}
        self._of: defaultdict[tuple[str, int | None], list[Trial]] = defaultdict(list)
        self._in_blocks: defaultdict[int, list[Trial]] = defaultdict(list)
        self._stored: Counter[int] = Counter()
        self._planned = Counter(planned.block for planned in plan.wanted)
        self._orders: defaultdict[tuple[int, int], list[str]] = defaultdict(list)
        for planned in sorted(plan.wanted, key=attrgetter("index")):
            self._orders[planned.block, planned.load_point].append(planned.arm)
        self._ratios: defaultdict[tuple[str, tuple[int, ...], Metric], dict[int, BlockRatio]] = defaultdict(dict)
        self.add(trials)

    def add(self, trials: Iterable[Trial]) -> None:
        """Adds trials that were stored in the meantime. Results that were already computed for complete blocks are
        kept."""
        for trial in trials:
            point = self._points[trial.index] = _load_point_index(self.plan, trial)
            self._goodput[trial.index] = goodput(self.plan, trial)
            of_arm = (self._of[trial.arm, index] for index in {None, point})
            for in_order in (self.trials, self._in_blocks[trial.block], *of_arm):
                insort(in_order, trial, key=attrgetter("index"))
            if point is not None:
                self._stored[trial.block] += (trial.block, point, trial.arm) not in self._cells
                self._cells[trial.block, point, trial.arm] = trial
        self.blocks = sorted(self._stored)
        self.counted = list(takewhile(lambda block: self._stored[block] == self._planned[block], sorted(self._planned)))

    @property
    def by_block(self) -> dict[int, list[Trial]]:
        """Returns the trials of each complete block, in order."""
        return {block: self._in_blocks[block] for block in self.counted}

    def point_of(self, trial: Trial) -> int:
        """Returns the index of the trial's load point in the plan. Raises ValueError if the plan does not have it."""
        point = self._points[trial.index]
        if point is None:
            raise ValueError(f"trial {trial.index} has a load point that is not in the plan")
        return point

    def over(self, point: int | None) -> Sequence[int]:
        """Returns the indexes of the load points that a comparison is about: only `point` or, if `point` is None, all
        load points."""
        return self.points if point is None else [point]

    def trial(self, block: int, point: int, arm: str) -> Trial | None:
        """Returns the stored trial of an arm at a load point of a block, or None."""
        return self._cells.get((block, point, arm))

    def in_block(self, arm: str, block: int) -> list[Trial]:
        """Returns an arm's stored trials of a block, in the order of the load points."""
        return [trial for point in self.points if (trial := self.trial(block, point, arm)) is not None]

    def pair(self, block: int, point: int, arm: str) -> tuple[Trial | None, Trial | None]:
        """Returns the stored trials of an arm and of the baseline at a load point of a block. A trial that is not
        stored is None."""
        return self.trial(block, point, arm), self.trial(block, point, self.plan.baseline)

    def of(self, arm: str, point: int | None = None) -> list[Trial]:
        """Returns an arm's trials in the order of execution, at one load point or, if `point` is None, at all load
        points."""
        return list(self._of.get((arm, point), []))

    def block_means(self, points: Sequence[int], value: Callable[[int, int], float | None]) -> dict[int, float]:
        """Returns, for each complete block, the mean of a value over these load points. A block is left out if the
        value is unknown at one or more of the load points."""
        means = {}
        for block in self.counted:
            known = [of_point for point in points if (of_point := value(block, point)) is not None]
            if len(known) == len(points):
                means[block] = fmean(known)
        return means

    def goodput(self, trial: Trial) -> float:
        """Returns the committed transactions per second of the measured part; 0 for a failed trial."""
        return self._goodput[trial.index]

    def ratios(self, arm: str, points: Sequence[int], metric: Metric | None = None) -> list[BlockRatio]:
        """Returns the gain of `arm` over the baseline in every stored block, as the mean over these load points. The
        gain is by how much the arm is better, such as the log-ratio of the speeds.

        Without `metric`, the gain is measured by the metric that decides the verdicts. A block whose gain is not known
        is in the result without a log-ratio. The gain of a complete block is computed once for each metric.
        """
        key = arm, tuple(points), metric or self.primary
        known, counted = self._ratios[key], set(self.counted)
        ratios = []
        for block in self.blocks:
            ratio = known.get(block) or self._ratio(block, *key)
            if ratio is not None:
                ratios.append(ratio)
                if block in counted:
                    known[block] = ratio
        return ratios

    def gains(self, arm: str, points: Sequence[int], metric: Metric) -> dict[int, float]:
        """Returns by how much the arm is better than the baseline, by a metric, for each complete block in which this
        is known."""
        gains = ((block, _gain(self._pairs(block, arm, points), metric)) for block in self.counted)
        return {block: gain for block, gain in gains if gain is not None}

    def cut(self, arm: str, points: Sequence[int], metric: Metric) -> dict[int, frozenset[str]]:
        """Returns, for each complete block, the arms for which the value of a metric is only a bound, so that the true
        value may be worse. An example is the time of a query that was cancelled at its time limit."""
        arms = ((block, self._cut(self._pairs(block, arm, points), metric)) for block in self.counted)
        return {block: frozenset(of_block) for block, of_block in arms if of_block}

    def _cut(self, pairs: Sequence[tuple[Trial, Trial]], metric: Metric) -> list[str]:
        if self.plan.spending is None:
            return []
        return list(dict.fromkeys(trial.arm for pair in pairs for trial in pair if metric.is_bound(trial)))

    def _ratio(self, block: int, arm: str, points: Sequence[int], metric: Metric) -> BlockRatio | None:
        """Returns the gain of an arm in a block, which is by how much the arm is better than the baseline by the
        metric. Returns None if a trial of the arm or the baseline at one of these load points is not stored."""
        pairs = self._pairs(block, arm, points)
        if not pairs:
            return None
        failed = {trial.arm for pair in pairs for trial in pair if not self.goodput(trial)}
        return BlockRatio(
            block=block,
            log_ratio=_gain(pairs, metric),
            cut=self._cut(pairs, metric),
            counted=block in self.counted,
            failed=[name for name in self.plan.arms if name in failed],
            order=self._orders[block, points[0]] if len(points) == 1 else [],
        )

    def _pairs(self, block: int, arm: str, points: Sequence[int]) -> list[tuple[Trial, Trial]]:
        """Returns the trials of an arm and of the baseline at each of these load points. The result is empty if one of
        these trials is not stored."""
        pairs = [self.pair(block, point, arm) for point in points]
        stored = [(trial, base) for trial, base in pairs if trial is not None and base is not None]
        return stored if len(stored) == len(pairs) else []


def _gain(pairs: Sequence[tuple[Trial, Trial]], metric: Metric) -> float | None:
    """Returns by how much the first trial of each pair is better by the metric, as the mean over the pairs. All pairs
    are of one block. Returns None if the mean is not known."""
    values = [metric.values(trial, base) for trial, base in pairs]
    known = [pair for pair in values if metric.is_known(*pair)]
    counts = known if len(known) == len(pairs) or not metric.at_every_point else []
    gains = [gain for pair in counts if (gain := metric.gain(*pair)) is not None]
    return fmean(gains) if gains else None


def _load_point_index(plan: Plan, trial: Trial) -> int | None:
    """Returns the index of a trial's load point in the plan; None if the plan does not have this load point.

    The planned index is tried first, because searching the plan for a load point takes ten times as long.
    """
    if trial.index < len(plan.trials):
        planned = plan.trials[trial.index].load_point
        if plan.load_points[planned] == trial.load_point:
            return planned
    return plan.load_points.index(trial.load_point) if trial.load_point in plan.load_points else None
