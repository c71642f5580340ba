"""Trials that forbid a verdict: the client was the limit, the rate was not kept, or the quality of answers differs."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import product
from statistics import median

from pgtrial.model.records.plan import Plan, Quality
from pgtrial.model.records.trial import Trial
from pgtrial.statistics.ratios import Grid

TOLERATED = Fraction(1, 8)
"""Share of an arm's trials at a load point that may be spoilt.

Two arms then spoil a quarter of the blocks at most, fewer than the 29% at which the Hodges-Lehmann estimate breaks down
(Hodges 1967, Efficiency in normal samples and tolerance of extreme values); and one trial of the eight of a first look
costs no verdict.
"""

_KEPT = 0.99
"""Share of the asked rate that an arm has to serve, but for three standard deviations of its Poisson count."""

_LAG = "schedule-lag"

CLIENT_RULES = ("busy_client", "schedule_lag")
"""The rules about the client, which a study may allow to be a limit ([verdict] allow_busy_client)."""


@dataclass(frozen=True)
class Cell:
    """One arm at one load point whose trials forbid to compare it with the baseline there."""

    rule: str
    arm: str
    point: int

    def withholds(self, plan: Plan, arm: str, point: int | None) -> bool:
        """Whether there is no verdict on `arm` against the baseline, at a load point or (None) as the mean over all.

        A cell speaks against its own load point only, and against the mean that holds it.
        """
        concerned = self.arm in (arm, plan.baseline) and point in (None, self.point)
        return concerned and not (self.rule in CLIENT_RULES and plan.allow_busy_client)


@dataclass(frozen=True)
class SpoiltCell(Cell):
    """Where more trials are spoilt than is tolerated; `example` is the first one's reason."""

    spoilt: int
    trials: int
    example: str


def spoilt_cells(grid: Grid) -> list[SpoiltCell]:
    """Where trials are spoilt, in the order of the arms and load points; every stored trial counts."""
    found = []
    for (rule, reason_of), arm, point in product(_RULES.items(), grid.plan.arms, grid.points):
        trials = grid.of(arm, point)
        reasons = [reason for trial in trials if (reason := reason_of(trial)) is not None]
        if len(reasons) > TOLERATED * len(trials):
            found.append(SpoiltCell(rule, arm, point, len(reasons), len(trials), reasons[0]))
    return found


def _warning(trial: Trial, *, of_schedule: bool) -> str | None:
    """The engine's first warning about itself: that it did not keep its schedule, or any other."""
    warnings = trial.client.warnings if trial.client else []
    return next((each.message.rstrip(".") for each in warnings if (each.kind == _LAG) == of_schedule), None)


def _behind(trial: Trial) -> str | None:
    """Served of asked transactions, if a trial did not keep its rate; failed transactions were served, too."""
    rate, measured = trial.load_point.rate, trial.measured
    if rate is None or measured is None or trial.status == "failed":
        return None
    asked = rate * measured.duration_s
    served = measured.transactions + sum(measured.failures.values())
    if served >= _KEPT * asked - 3 * math.sqrt(asked):
        return None
    return f"{served:,} of {asked:,.0f} transactions"


_RULES: dict[str, Callable[[Trial], str | None]] = {
    "busy_client": partial(_warning, of_schedule=False),
    "schedule_lag": partial(_warning, of_schedule=True),
    "rate_not_kept": _behind,
}
"""What each rule has against a trial, or None."""

_ROUNDING = 1e-9


@dataclass(frozen=True)
class QualityCell(Cell):
    """Where the quality is too low, or unlike the baseline's."""

    quality: Quality
    value: float
    """The median over its trials."""
    of_baseline: float


def quality_cells(grid: Grid) -> list[QualityCell]:
    """Where the quality is too low or unlike the baseline's, in the order of the load points and arms."""
    found = []
    for point, load_point in enumerate(grid.plan.load_points):
        quality = None if load_point.pack is None else load_point.pack.quality
        if quality is None:
            continue
        # an arm whose trials have all failed is judged by that
        of_trials = {arm: [t.quality for t in grid.of(arm, point) if t.quality is not None] for arm in grid.plan.arms}
        values = {arm: median(known) for arm, known in of_trials.items() if known}
        base = values.get(grid.plan.baseline)
        if base is None:
            continue
        for arm, value in values.items():
            rule = _rule(quality, value, base)
            if rule is not None:
                found.append(QualityCell(rule, arm, point, quality, value, base))
    return found


def _rule(quality: Quality, value: float, base: float) -> str | None:
    if not quality.reaches(value):
        return "quality_not_reached"
    return "unequal_quality" if abs(value - base) > quality.tolerance + _ROUNDING else None
