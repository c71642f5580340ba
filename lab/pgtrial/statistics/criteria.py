"""The criteria of a comparison on tasks, as a published table has them: one row each, with a winner that is a verdict.

The mean is the study's primary claim. The others are a secondary family within a comparison: at each look they share
its error evenly (Bonferroni), so that their intervals hold together. Times are compared as speeds are, by the log-ratio
within a block. Numbers of tasks may be zero; they are compared by their difference within a block, as a share of all
tasks: under the coin its sign is as random as a log-ratio's, and the rule P8 is as exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np

from pgtrial.model.records.results import Claim, Criterion
from pgtrial.model.records.trial import TaskSummary, Trial
from pgtrial.statistics import p8
from pgtrial.statistics.claims import Outcome, outcome
from pgtrial.statistics.levels import NOTABLE_SHARE
from pgtrial.statistics.ratios import Grid

MEAN = "mean"
FAILURES = "failures"


@dataclass(frozen=True)
class Kind:
    """A criterion: its name, its unit, which of two values is better, and its value in a trial's tasks."""

    name: str
    unit: Literal["s", "tasks"]
    better: Literal["less", "more"]
    of: Callable[[TaskSummary], float | None]


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
"""As published, and Nielsen's limits of response times: at once, without a break in thought, with attention kept."""

SECONDARY = len(KINDS) - 1


def criteria(grid: Grid, primary: Sequence[Claim], withheld: Collection[str]) -> list[Criterion]:
    """The rows of the table for each comparison, in its order; none of a study without tasks.

    `withheld` holds the arms whose comparison is withheld.
    """
    if not any(trial.tasks is not None for trial in grid.trials):
        return []
    return [_criterion(grid, kind, claim, withheld=claim.arm in withheld) for claim in primary for kind in KINDS]


def _criterion(grid: Grid, kind: Kind, claim: Claim, *, withheld: bool) -> Criterion:
    primary = kind.name == MEAN
    found: Claim | Outcome = claim if primary else _outcome(grid, kind, claim.arm)
    return Criterion(
        what=kind.name,
        unit=kind.unit,
        better=kind.better,
        arm=claim.arm,
        baseline=claim.baseline,
        primary=primary,
        values={arm: _value(grid, kind, arm) for arm in (claim.arm, claim.baseline)},
        verdict="withheld" if withheld and not primary else found.verdict,
        within_margin=found.within_margin,
        by="ratio" if kind.unit == "s" else "difference",
        difference=found.difference,
        claims=claim.family if primary else SECONDARY,
        blocks=found.blocks,
    )


def _value(grid: Grid, kind: Kind, arm: str) -> float | None:
    """The median over the trials; for failures the sum, since a median would hide rare ones."""
    known = [value for trial in grid.of(arm) if (value := _of(kind, trial)) is not None]
    if not known:
        return None
    return math.fsum(known) if kind.name == FAILURES else float(np.median(known))


def _of(kind: Kind, trial: Trial) -> float | None:
    """The criterion's value in a trial; None if the trial failed, or for a time if no task was completed."""
    return kind.of(trial.tasks) if trial.tasks is not None and trial.status == "completed" else None


def _gain(grid: Grid, kind: Kind, arm: str, block: int, point: int) -> float | None:
    """How much better the arm is in a block: a log-ratio of times, or a difference of shares of all tasks.

    A failed trial is the worst there is, a pair of them says nothing.
    """
    pair = grid.pair(block, point, arm)
    ours, theirs = (_of(kind, trial) if trial is not None else None for trial in pair)
    if ours is None and theirs is None:
        return None
    worst = p8.WORST if kind.unit == "s" else 1.0
    if ours is None or theirs is None:
        return -worst if ours is None else worst
    if kind.unit == "s":
        return math.log(theirs / ours) if ours > 0 and theirs > 0 else 0.0
    gained = _share(ours, pair[0]) - _share(theirs, pair[1])
    return gained if kind.better == "more" else -gained


def _share(number: float, trial: Trial | None) -> float:
    planned = trial.tasks.planned if trial is not None and trial.tasks is not None else 0
    return number / planned if planned else 0.0


def _outcome(grid: Grid, kind: Kind, arm: str) -> Outcome:
    """By the units of the study, with the criterion's own limits; of tasks the difference is a share of all tasks."""
    margin = NOTABLE_SHARE if kind.name == FAILURES else grid.plan.margin
    gains = grid.block_means([0], partial(_gain, grid, kind, arm))
    if kind.unit == "s":
        return outcome(grid, gains, p8.ratio_limits(margin), SECONDARY)
    return outcome(grid, gains, (-margin, margin), SECONDARY, scale=float)
