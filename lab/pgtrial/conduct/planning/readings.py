"""Reads the results that a running study has so far. They are computed again after every block, but each trial is read
from the disk only once."""

from __future__ import annotations

from collections.abc import Sequence

from pgtrial.model.records.trial import Regime, Trial
from pgtrial.store.directory import StudyDirectory
from pgtrial.store.tables import committed_per_second
from pgtrial.verdict.changes import Regimes, may_change, regime_of
from pgtrial.verdict.grid import Grid


class Readings:
    """The stored trials of a study, and the levels of performance through which each of them went (its regime)."""

    def __init__(self, study: StudyDirectory) -> None:
        self._study = study
        self.trials: tuple[Trial, ...] = tuple(study.trials())
        """The stored trials, in the order of execution."""
        self._regimes: dict[int, Regime] = {}
        self._without_regime: set[int] = set()
        self._grid = Grid(study.plan, self.trials)

    def add(self, trials: Sequence[Trial]) -> None:
        """Adds trials that have just been stored."""
        self.trials = (*self.trials, *trials)
        self._grid.add(trials)

    def grid(self) -> Grid:
        """Returns all stored trials by block, load point and arm, according to the present plan."""
        if self._grid.plan is not self._study.plan:
            self._grid = Grid(self._study.plan, self.trials)
        return self._grid

    def regimes(self) -> Regimes:
        """Returns the regimes of all trials that are long enough to have one. Reads the timelines of trials that are
        new since the last call. Raises StoreError."""
        for trial in self.trials if may_change(self._study.plan) else ():
            if trial.index in self._regimes or trial.index in self._without_regime:
                continue
            regime = regime_of(trial, committed_per_second(self._study.timeline(trial)))
            if regime is None:
                self._without_regime.add(trial.index)
            else:
                self._regimes[trial.index] = regime
        return self._regimes
