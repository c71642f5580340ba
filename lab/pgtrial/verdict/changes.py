"""Detects changes of speed within trials. There are two kinds: a change of regime, which is a lasting step from one
speed to another, for each arm and load point, and a trend, which is a steady rise or fall in trials without such a
step."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtrc

from pgtrial.model.records.claims import BlockRatio, When
from pgtrial.model.records.plan import Plan
from pgtrial.model.records.results import CellRegimes, Steadiness
from pgtrial.model.records.trial import Regime, Shape, Trial, TrialRegime
from pgtrial.statistics.describe import spread
from pgtrial.statistics.p8 import TOLERATED
from pgtrial.statistics.regimes import detect
from pgtrial.verdict.grid import Grid
from pgtrial.verdict.metric import Metric

Seconds = Mapping[int, Sequence[int]]
"""The number of committed transactions in each second of the measured part, by the index of the trial."""

Regimes = Mapping[int, Regime]
"""The regime of each trial that is long enough to have one, by the index of the trial. A regime describes the speeds
that a trial goes through."""

TOLERATED_BLOCKS = 2 * TOLERATED
"""The share of blocks that may contain a trial with a lasting change of speed: one in four. It is twice the share of
one in eight that is tolerated for the trials of one arm, since both arms of a comparison may have such trials.

If more blocks have such a trial, the arms are compared separately before and after the change. In this count a block
counts once, whichever of its two trials changes, so that the choice does not depend on which arm is which. If the arms
do not differ, the sign of each block's log-ratio is then still as random as a coin, as the statistical rule requires.
"""

WHEN: tuple[When, ...] = ("before", "after")

_CHANGING: tuple[Shape, ...] = ("warm-up", "slow-down", "collapse", "recovery", "no steady state")
"""The shapes of trials that end at another speed than they began with. The shape `cyclic` is not among them: the speed
of such a trial comes back to its first value, so that the mean describes the trial."""

_NEGLIGIBLE = 0.01
"""A change of the throughput within a trial up to this share does not count as a trend."""

_FEWEST_SECONDS = 4
"""The trend of the throughput is computed only for trials with at least this number of whole seconds."""

_MOST_SPANS = 600

_FEWEST_BLOCKS = 6
"""With fewer blocks than this, the sign test cannot find a trend, so that an arm without a trend does not count as
steady."""


def may_change(plan: Plan) -> bool:
    """True if the speed within a study's trials can change. At a load with a given rate it cannot, since the rate fixes
    the throughput."""
    return plan.measure == "goodput"


def regime_of(trial: Trial, committed: Sequence[int]) -> Regime | None:
    """Returns the regime of a trial: its parts with one speed each, and the kind of change between them. It is computed
    from the commits in each second. Returns None if the trial failed or has too few seconds.

    Only whole seconds count. A second that is missing in `committed` had no commit.
    """
    if trial.status == "failed" or trial.measured is None:
        return None
    whole = np.zeros(math.floor(trial.measured.duration_s + 0.01), dtype=np.int64)
    known = np.asarray(committed, dtype=np.int64)[: len(whole)]
    whole[: len(known)] = known
    return detect(whole)


def regimes_of(trials: Iterable[Trial], seconds: Seconds) -> dict[int, Regime]:
    """Returns the regimes (the speeds that a trial goes through) of all trials for which `seconds` has data, by the
    index of the trial."""
    known = {trial.index: regime_of(trial, seconds[trial.index]) for trial in trials if trial.index in seconds}
    return {index: regime for index, regime in known.items() if regime is not None}


class Changes:
    """The regimes of a study's trials, that is, the lasting changes of speed within them. If `regimes` is None, all
    trials are treated as trials without a change.

    `seconds` is used to find a trend in trials without a change.
    """

    def __init__(self, grid: Grid, regimes: Regimes | None, seconds: Seconds | None = None):
        self._grid = grid
        self.seconds = seconds if may_change(grid.plan) else None
        self._regimes = (regimes or {}) if may_change(grid.plan) else {}
        self._changed: dict[tuple[str, int], dict[int, bool]] = {}
        self._ratios: dict[tuple[str, int | None, frozenset[int], When], list[BlockRatio]] = {}

    def changes(self, trial: Trial) -> bool:
        """True if the trial ended at another speed than it began with, after a lasting change."""
        regime = self._regimes.get(trial.index)
        return regime is not None and regime.shape in _CHANGING

    def between(self, arm: str, point: int, blocks: Collection[int]) -> bool:
        """True if the arm and the baseline must be compared separately before and after a lasting change of speed at
        this load point, because too many of these blocks have a trial with such a change."""
        changed = self._changed_blocks(arm, point)
        known = [changed[block] for block in blocks if block in changed]
        return _many(sum(known), len(known))

    def _changed_blocks(self, arm: str, point: int) -> dict[int, bool]:
        """Returns, for each block with a trial of the arm and one of the baseline, whether the speed of at least one of
        the two trials changes for good."""
        if (arm, point) not in self._changed:
            pairs = ((block, *self._grid.pair(block, point, arm)) for block in self._grid.blocks)
            self._changed[arm, point] = {
                block: self.changes(ours) or self.changes(theirs)
                for block, ours, theirs in pairs
                if ours is not None and theirs is not None
            }
        return self._changed[arm, point]

    def ratios(self, arm: str, point: int | None, blocks: Collection[int]) -> dict[When, list[BlockRatio]]:
        """Returns the log-ratios of the arm to the baseline in all stored blocks, separately before and after a lasting
        change of speed. They are for the load point or, if `point` is None, for the mean over all load points.

        `blocks` are the blocks of a look (interim analysis), and only they decide whether to compare separately. If the
        speed changes in too few of them, the result is empty. If in too many of them the speed is not known after the
        change, the result has only the time before it. At load points without a change, whole trials count both as
        `before` and as `after`.
        """
        split = frozenset(p for p in self._grid.over(point) if self.between(arm, p, blocks))
        if not split:
            return {}
        before, after = (self._by_regime(arm, point, split, when) for when in WHEN)
        at_look = [ratio for ratio in after if ratio.block in blocks]
        unknown = sum(ratio.log_ratio is None and not ratio.failed for ratio in at_look)
        return {"before": before} if _many(unknown, len(at_look)) else {"before": before, "after": after}

    def _by_regime(self, arm: str, point: int | None, split: frozenset[int], when: When) -> list[BlockRatio]:
        """Returns the log-ratios of the blocks before or after the change of speed, as `when` says. `split` are the
        load points at which the speed changes. Each result is computed once and then kept."""
        key = (arm, point, split, when)
        if key not in self._ratios:

            def speed(trial: Trial) -> float | None:
                if self._grid.point_of(trial) not in split or not self._grid.goodput(trial):
                    return self._grid.goodput(trial)
                return self._speed(trial, when)

            metric = Metric(f"goodput {when} the change", "1/s", speed)
            self._ratios[key] = self._grid.ratios(arm, self._grid.over(point), metric)
        return self._ratios[key]

    def _speed(self, trial: Trial, when: When) -> float | None:
        """Returns the goodput of a trial (committed transactions per second) before or after its lasting change of
        speed. For a trial without a change, the value for `before` is that of the whole trial, and the value for
        `after` is None."""
        if not self.changes(trial):
            return self._grid.goodput(trial) if when == "before" else None
        regime = self._regimes[trial.index]
        if when == "before":
            first = regime.segments[0]
            return first.committed / first.end_s
        last_but_one, last = regime.segments[-2:]
        return (last.committed - last_but_one.committed) / (last.end_s - last.start_s) if regime.settled else None

    def cell(self, arm: str, point: int) -> CellRegimes:
        """Returns how the speed changes within the trials of one arm at one load point."""
        known = [(t, self._regimes[t.index]) for t in self._grid.of(arm, point) if t.index in self._regimes]
        changed = [regime for trial, regime in known if self.changes(trial)]
        settled = [regime.segments[-1] for regime in changed if regime.settled]
        first = [regime.segments[0] for regime in changed]
        return CellRegimes(
            arm=arm,
            load_point=point,
            trials=len(known),
            shapes=dict(Counter(regime.shape for _, regime in known).most_common()),
            changes=_many(len(changed), len(known)),
            before=spread([segment.tps for segment in first]),
            after=spread([segment.tps for segment in settled]),
            changed_s=spread([segment.end_s for segment in first]),
            changed_committed=spread([segment.committed for segment in first]),
            settled_s=spread([segment.start_s for segment in settled]),
            not_flat=[
                TrialRegime(index=trial.index, block=trial.block, regime=regime)
                for trial, regime in known
                if regime.shape != "flat"
            ],
        )

    def cells(self) -> list[CellRegimes]:
        """Returns how the speed changes within the trials of each arm at each load point. Load points at which all
        trials keep one speed are left out."""
        plan = self._grid.plan
        of_points = [[self.cell(arm, point) for arm in plan.arms] for point in self._grid.points]
        return [cell for cells in of_points if any(cell.not_flat for cell in cells) for cell in cells]

    def steadiness(self) -> list[Steadiness]:
        """Returns, for each arm, whether its throughput rose or fell steadily within trials that have no lasting change
        of speed. The result is empty if the commits in each second are not known, or if the load has a given rate."""
        return [self._steadiness(arm) for arm in self._grid.plan.arms] if self.seconds is not None else []

    def _steadiness(self, arm: str) -> Steadiness:
        """Tests whether the throughput within an arm's trials rises, or falls, by over 1% in more than half of the
        blocks. It is a two-sided sign test, which finds a trend by mistake in at most 5% of cases."""
        trends = []
        for block in self._grid.counted:
            unchanged = [trial for trial in self._grid.in_block(arm, block) if not self.changes(trial)]
            slopes = [trend(trial, (self.seconds or {}).get(trial.index, ())) for trial in unchanged]
            known = [slope for slope in slopes if slope is not None]
            if known:
                trends.append(math.fsum(known) / len(known))
        rising = sum(value > math.log1p(_NEGLIGIBLE) for value in trends)
        falling = sum(value < math.log1p(-_NEGLIGIBLE) for value in trends)
        state: Literal["steady", "rising", "falling", "unknown"] = "unknown"
        if _majority(rising, len(trends)):
            state = "rising"
        elif _majority(falling, len(trends)):
            state = "falling"
        elif len(trends) >= _FEWEST_BLOCKS:
            state = "steady"
        return Steadiness(
            arm=arm,
            state=state,
            trend=math.expm1(float(np.median(trends))) if trends else None,
            blocks=len(trends),
            rising=rising,
            falling=falling,
        )


def _many(blocks: int, of: int) -> bool:
    return blocks > TOLERATED_BLOCKS * of


def trend(trial: Trial, committed: Sequence[int]) -> float | None:
    """Returns the change of ln(throughput) over the measured part of a trial, by the Theil-Sen slope. Returns None if
    there are too few seconds, or no commit in them.

    The last second counts only if it is whole. A second without a commit counts as half a transaction. In a long trial,
    neighbouring seconds are joined into at most _MOST_SPANS spans, which limits the number of pairs to compute.
    """
    if trial.measured is None:
        return None
    whole = np.asarray(committed[: math.floor(trial.measured.duration_s + 0.01)], dtype=np.float64)
    if len(whole) < _FEWEST_SECONDS or not whole.any():
        return None
    each = math.ceil(len(whole) / _MOST_SPANS)
    spans = whole[: len(whole) // each * each].reshape(-1, each).sum(axis=1)
    logs = np.log(np.maximum(spans, 0.5))
    first, second, apart = _pairs(len(logs))
    return float(np.median((logs[second] - logs[first]) / apart)) * len(logs)


@lru_cache(maxsize=8)
def _pairs(spans: int) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
    """Returns all pairs of spans, which are numbered from 0, as three arrays: the number of the earlier span, the
    number of the later span, and the difference of the two numbers."""
    first, second = np.triu_indices(spans, 1)
    return first, second, second - first


def _majority(hits: int, of: int) -> bool:
    return of > 0 and float(bdtrc(hits - 1, of, 0.5)) <= 0.025
