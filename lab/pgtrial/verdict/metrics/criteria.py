"""The criteria by which a study of tasks (transactions of an application that wait for a connection of its pool)
compares arms, such as the mean time and the number of failed tasks. They are the rows of a table in an article that
compares PostgreSQL on Linux and on Windows. Here each of them gets a verdict.

The criterion `mean` decides the verdict of the study. The other criteria of a comparison share the probability of a
wrong verdict that each look (interim analysis) allows, in equal parts (Bonferroni), so that all their intervals hold
together. Times are compared in the same way as speeds, by the log-ratio within a block. Numbers of tasks may be zero,
so they are compared by their difference within a block, as a share of all tasks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from pgtrial.model.records.claims import Claim
from pgtrial.model.records.plan import Plan
from pgtrial.model.records.results import Criterion
from pgtrial.model.records.trial import TaskSummary, Trial
from pgtrial.verdict.grid import Grid
from pgtrial.verdict.levels import NOTABLE_SHARE
from pgtrial.verdict.metric import DIFFERENCE, RATIO, Metric
from pgtrial.verdict.series import read

MEAN = "mean"
FAILURES = "failures"


@dataclass(frozen=True)
class Kind:
    """A criterion for a study of tasks, such as the longest time of a task: its name, its unit, which of two values is
    better, and how it is computed from the tasks of a trial."""

    name: str
    unit: Literal["s", "tasks"]
    better: Literal["less", "more"]
    of: Callable[[TaskSummary], float | None]

    def value(self, trial: Trial) -> float | None:
        """Returns the criterion's value in a trial. It is None if the trial failed. A criterion that is a time is also
        None if no task completed."""
        return self.of(trial.tasks) if trial.tasks is not None and trial.status == "completed" else None

    def share(self, trial: Trial) -> float | None:
        """Returns a criterion that is a number of tasks, divided by the number of planned tasks of the trial."""
        number = self.value(trial)
        planned = trial.tasks.planned if trial.tasks is not None else 0
        return number if number is None or not planned else number / planned

    @property
    def metric(self) -> Metric:
        """Returns the metric by which arms are compared on this criterion. A failed trial counts as the worst result of
        all."""
        if self.unit == "s":
            return Metric(self.name, "s", self.value, self.better, RATIO, missing="worst")
        return Metric(self.name, "share", self.share, self.better, DIFFERENCE, missing="worst")


def _seconds(name: Literal["min", "max", "median"]) -> Callable[[TaskSummary], float | None]:
    def of(tasks: TaskSummary) -> float | None:
        value = getattr(tasks.response_us, name) if tasks.response_us else None
        return None if value is None else value / 1e6

    return of


KINDS = (
    Kind(FAILURES, "tasks", "less", lambda tasks: tasks.failed),
    Kind("shortest", "s", "less", _seconds("min")),
    Kind("longest", "s", "less", _seconds("max")),
    Kind(MEAN, "s", "less", lambda tasks: None if tasks.mean_us is None else tasks.mean_us / 1e6),
    Kind("median", "s", "less", _seconds("median")),
    Kind("under 5 s", "tasks", "more", lambda tasks: tasks.under_5_s),
    Kind("within 0.1 s", "tasks", "more", lambda tasks: tasks.within("0.1_s")),
    Kind("within 1 s", "tasks", "more", lambda tasks: tasks.within("1_s")),
    Kind("within 10 s", "tasks", "more", lambda tasks: tasks.within("10_s")),
)
"""The criteria of the published comparison, followed by Nielsen's limits of response times: 0.1 s feels immediate, 1 s
does not interrupt the user's thought, and 10 s keeps the user's attention."""

SECONDARY = len(KINDS) - 1


def secondary(plan: Plan) -> int:
    """Returns among how many comparisons by criteria other than the mean each look (interim analysis) divides its
    allowed probability of a wrong verdict."""
    return plan.sharing(SECONDARY, in_each_comparison=True)


def criteria(grid: Grid, primary: Sequence[Claim]) -> list[Criterion]:
    """Returns the comparison of each arm with the baseline by each criterion, in the order of KINDS. The result is
    empty if the study has no tasks."""
    if not any(trial.tasks is not None for trial in grid.trials):
        return []
    return [
        _primary(grid, kind, claim) if kind.name == MEAN else _secondary(grid, kind, claim)
        for claim in primary
        for kind in KINDS
    ]


def _primary(grid: Grid, kind: Kind, claim: Claim) -> Criterion:
    same = {
        name: getattr(claim, name) for name in ("arm", "baseline", "verdict", "within_margin", "difference", "blocks")
    }
    return Criterion(**same, **_shown(grid, kind, claim), primary=True, claims=claim.family)


def _secondary(grid: Grid, kind: Kind, claim: Claim) -> Criterion:
    margin = NOTABLE_SHARE if kind.name == FAILURES else grid.plan.margin
    metric = kind.metric
    series = read(grid, grid.gains(claim.arm, [0], metric), secondary(grid.plan), margin, metric.scale)
    return Criterion(
        arm=claim.arm,
        baseline=claim.baseline,
        verdict=series.verdict(withheld=claim.verdict == "withheld"),
        within_margin=series.within_margin,
        difference=series.difference,
        blocks=len(series.used),
        **_shown(grid, kind, claim),
        primary=False,
        claims=secondary(grid.plan),
    )


def _shown(grid: Grid, kind: Kind, claim: Claim) -> dict[str, object]:
    return {
        "what": kind.name,
        "unit": kind.unit,
        "better": kind.better,
        "by": kind.metric.scale.name,
        "values": {arm: _value(grid, kind, arm) for arm in (claim.arm, claim.baseline)},
    }


def _value(grid: Grid, kind: Kind, arm: str) -> float | None:
    """Returns the median of a criterion over an arm's trials. For failures it returns the sum, since a median would
    hide rare failures."""
    known = [value for trial in grid.of(arm) if (value := kind.value(trial)) is not None]
    if not known:
        return None
    return math.fsum(known) if kind.name == FAILURES else float(np.median(known))
