"""The comparisons of the arms by the metrics that a study declares. The first metric decides the verdict of the study
and is compared elsewhere, as its primary claim.

The comparisons by the other metrics, over all arms, form one family: at each look (interim analysis) they share the
allowed probability of a wrong verdict evenly (Bonferroni), so that all their intervals hold together. If there are
several load points, each of these comparisons is about the mean over them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from pgtrial.model.metrics import RESPONSE, TIME
from pgtrial.model.records.claims import Claim
from pgtrial.model.records.plan import Plan
from pgtrial.model.records.results import MetricClaim
from pgtrial.verdict.declared import declared_metric, objection
from pgtrial.verdict.grid import Grid
from pgtrial.verdict.metric import Metric
from pgtrial.verdict.series import Series, read

_AS_TIMES = {RESPONSE: ("us", 1e6), TIME: ("s", 1.0)}
"""Metrics that are compared as speeds (1/s) but shown as times. Each has the unit of the shown time, and how many of
these units are in a second."""


def secondary(plan: Plan) -> int:
    """Returns the number of comparisons by declared metrics other than the first one. At each look (interim analysis)
    these comparisons share the allowed probability of a wrong verdict."""
    return plan.sharing(max(0, len(plan.metrics) - 1) * len(plan.others))


def metric_claims(grid: Grid, primary: Sequence[Claim]) -> list[MetricClaim]:
    """Returns the comparisons of each arm with the baseline by the declared metrics, in the order of the metrics. The
    result is empty if the study declares no metrics."""
    return [
        _primary(grid, claim) if name == grid.plan.metrics[0] else _secondary(grid, name, claim)
        for claim in primary
        for name in grid.plan.metrics
    ]


def undecided_arms(grid: Grid) -> set[str]:
    """Returns the arms for which the comparison by some declared metric, other than the first one, has no verdict
    yet."""
    plan = grid.plan
    return {arm for arm in plan.others for name in plan.metrics[1:] if not _series(grid, name, arm)[1].decided}


def _series(grid: Grid, name: str, arm: str) -> tuple[Metric, Series]:
    metric = declared_metric(grid.plan, name)
    gains = grid.gains(arm, grid.points, metric)
    cut = grid.cut(arm, grid.points, metric)
    return metric, read(grid, gains, secondary(grid.plan), scale=metric.scale, cut=cut, arm=arm)


def _primary(grid: Grid, claim: Claim) -> MetricClaim:
    same = {
        name: getattr(claim, name) for name in ("arm", "baseline", "verdict", "within_margin", "difference", "blocks")
    }
    shown = _shown(grid, grid.plan.metrics[0], grid.primary, claim)
    return MetricClaim(**same, **shown, primary=True, claims=claim.family)


def _secondary(grid: Grid, name: str, claim: Claim) -> MetricClaim:
    metric, series = _series(grid, name, claim.arm)
    pair = (claim.arm, claim.baseline)
    why = objection(grid.plan, name, [trial for trial in grid.trials if trial.arm in pair and grid.goodput(trial)])
    return MetricClaim(
        arm=claim.arm,
        baseline=claim.baseline,
        verdict=series.verdict(withheld=why is not None or claim.verdict == "withheld"),
        within_margin=series.within_margin,
        difference=series.difference,
        blocks=len(series.used),
        **_shown(grid, name, metric, claim),
        primary=False,
        claims=secondary(grid.plan),
        withheld=why,
    )


def _shown(grid: Grid, name: str, metric: Metric, claim: Claim) -> dict[str, object]:
    several = len(grid.plan.load_points) > 1
    values = {} if several else {arm: _median(grid, metric, arm) for arm in (claim.arm, claim.baseline)}
    unit, factor = _AS_TIMES.get(name, (metric.unit, None))
    if factor is not None:
        values = {arm: factor / speed if speed else None for arm, speed in values.items()}
    return {
        "metric": name,
        "unit": unit,
        "better": grid.plan.named_metric(name).better,
        "values": values,
    }


def _median(grid: Grid, metric: Metric, arm: str) -> float | None:
    """Returns the median of a metric over the arm's trials that did not fail. Values that are unknown or infinite are
    left out; None if no value is left."""
    values = [metric.value(trial) for trial in grid.of(arm) if grid.goodput(trial)]
    known = [value for value in values if value is not None and math.isfinite(value)]
    return float(np.median(known)) if known else None
