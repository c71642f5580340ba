"""How speed changed within trials: changes of regime by arm and load point, and the trend of the other trials."""

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
"""Committed transactions in each second of the measured part, by index of the trial."""

Regimes = Mapping[int, Regime]
"""By index of the trial, of those that are long enough."""

TOLERATED_BLOCKS = 2 * TOLERATED
"""Share of blocks that may hold a trial whose regime changes: one in four, as many as two spoilt arms may spoil.

For a comparison a block counts once, whichever of its two trials changes: then the choice between one claim and one for
each regime does not depend on which arm is which, and the coin stays fair under it.
"""

WHEN: tuple[When, ...] = ("before", "after")

_CHANGING: tuple[Shape, ...] = ("warm-up", "slow-down", "collapse", "recovery", "no steady state")
"""Classes that end on another level than they began with. A cyclic trial comes back, and its average is a level."""

_NEGLIGIBLE = 0.01
"""A trend within a trial, as a share, that is not called a trend."""

_FEWEST_SECONDS = 4
"""Whole seconds below which a slope says nothing."""

_MOST_SPANS = 600

_FEWEST_BLOCKS = 6
"""Blocks below which the sign test cannot find a trend, so that finding none means nothing."""


def may_change(plan: Plan) -> bool:
    """Whether trials have regimes: the throughput at a given rate is steady by construction."""
    return plan.measure == "goodput"


def regime_of(trial: Trial, committed: Sequence[int]) -> Regime | None:
    """The regime of a trial that delivered something, from its seconds; None for too few of them.

    Only whole seconds count; one without a row had no commit.
    """
    if trial.status == "failed" or trial.measured is None:
        return None
    whole = np.zeros(math.floor(trial.measured.duration_s + 0.01), dtype=np.int64)
    known = np.asarray(committed, dtype=np.int64)[: len(whole)]
    whole[: len(known)] = known
    return detect(whole)


def regimes_of(trials: Iterable[Trial], seconds: Seconds) -> dict[int, Regime]:
    """The regimes of all trials whose seconds are given."""
    known = {trial.index: regime_of(trial, seconds[trial.index]) for trial in trials if trial.index in seconds}
    return {index: regime for index, regime in known.items() if regime is not None}


class Changes:
    """The regimes of a study's trials. Without them nothing is known, and nothing changes.

    The seconds show the trend of trials that keep one level.
    """

    def __init__(self, grid: Grid, regimes: Regimes | None, seconds: Seconds | None = None):
        self._grid = grid
        self.seconds = seconds if may_change(grid.plan) else None
        self._regimes = (regimes or {}) if may_change(grid.plan) else {}
        self._changed: dict[tuple[str, int], dict[int, bool]] = {}
        self._ratios: dict[tuple[str, int | None, frozenset[int], When], list[BlockRatio]] = {}

    def changes(self, trial: Trial) -> bool:
        """Whether the trial ended in another regime than it began in."""
        regime = self._regimes.get(trial.index)
        return regime is not None and regime.shape in _CHANGING

    def between(self, arm: str, point: int, blocks: Collection[int]) -> bool:
        """Whether `arm` and the baseline have to be compared by regime at a load point, as these blocks show it."""
        changed = self._changed_blocks(arm, point)
        known = [changed[block] for block in blocks if block in changed]
        return _many(sum(known), len(known))

    def _changed_blocks(self, arm: str, point: int) -> dict[int, bool]:
        """By block with both trials, whether one of them changes its regime."""
        if (arm, point) not in self._changed:
            pairs = ((block, *self._grid.pair(block, point, arm)) for block in self._grid.blocks)
            self._changed[arm, point] = {
                block: self.changes(ours) or self.changes(theirs)
                for block, ours, theirs in pairs
                if ours is not None and theirs is not None
            }
        return self._changed[arm, point]

    def ratios(self, arm: str, point: int | None, blocks: Collection[int]) -> dict[When, list[BlockRatio]]:
        """The log-ratios of all stored blocks by regime, at a load point or (None) as the mean over all.

        What is compared follows from the given `blocks`, those of a look: nothing if the regime does not change in
        them; only the regime before the change, if more than the tolerated blocks have no level after it. Load points
        at which the regime does not change count with their whole trials.
        """
        split = frozenset(p for p in self._grid.over(point) if self.between(arm, p, blocks))
        if not split:
            return {}
        before, after = (self._by_regime(arm, point, split, when) for when in WHEN)
        at_look = [ratio for ratio in after if ratio.block in blocks]
        unknown = sum(ratio.log_ratio is None and not ratio.failed for ratio in at_look)
        return {"before": before} if _many(unknown, len(at_look)) else {"before": before, "after": after}

    def _by_regime(self, arm: str, point: int | None, split: frozenset[int], when: When) -> list[BlockRatio]:
        """The block log-ratios in one regime; `split` holds the load points at which it changes. Computed once."""
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
        """Goodput in one regime. A trial that has not changed counts as before the change."""
        if not self.changes(trial):
            return self._grid.goodput(trial) if when == "before" else None
        regime = self._regimes[trial.index]
        if when == "before":
            first = regime.segments[0]
            return first.committed / first.end_s
        last_but_one, last = regime.segments[-2:]
        return (last.committed - last_but_one.committed) / (last.end_s - last.start_s) if regime.settled else None

    def cell(self, arm: str, point: int) -> CellRegimes:
        """One arm at one load point."""
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
        """All arms at the load points where some trial did not keep one level."""
        plan = self._grid.plan
        of_points = [[self.cell(arm, point) for arm in plan.arms] for point in self._grid.points]
        return [cell for cells in of_points if any(cell.not_flat for cell in cells) for cell in cells]

    def steadiness(self) -> list[Steadiness]:
        """By arm, whether tps still moved within the trials whose regime does not change; empty without the seconds."""
        return [self._steadiness(arm) for arm in self._grid.plan.arms] if self.seconds is not None else []

    def _steadiness(self, arm: str) -> Steadiness:
        """A sign test over blocks: do more than half of them rise, or fall, by more than 1%? 5% error, two-sided."""
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
    """Change of ln tps from start to end of the measured part by the Theil-Sen slope; None for too few seconds.

    The last second counts only if it is whole. A second without a commit counts as half a transaction. Of a long trial
    spans of several seconds count, so that the pairs of them are no more than those of _MOST_SPANS seconds.
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
    """Returns all pairs of so many spans: the first, the second, and how far they are apart."""
    first, second = np.triu_indices(spans, 1)
    return first, second, second - first


def _majority(hits: int, of: int) -> bool:
    return of > 0 and float(bdtrc(hits - 1, of, 0.5)) <= 0.025
