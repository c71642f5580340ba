"""Trials that measured something else than the arm: the client was a limit itself, or the arm did not keep the rate."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from pgtrial.model.records.study import Finding, Plan, Trial
from pgtrial.model.units import plural
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

_MESSAGES = {
    "busy_client": "The client itself was a limit of {arms} ({where}), in the engine's words: {example}.",
    "schedule_lag": "Transactions of {arms} were started later than their schedule ({where}), in the engine's words: "
    "{example}.",
    "rate_not_kept": "The rate was not kept by {arms} ({where}), for example {example}: beyond an arm's capacity its "
    "response time tells how long the trial was.",
}
_CURES = {
    "busy_client": "Give the load more threads ([load] jobs), use fewer clients, or run pgtrial on another machine "
    "than the server; [verdict] allow_busy_client = true gives the verdict all the same.",
    "schedule_lag": "Give the load more clients or threads ([load] clients, jobs), lower the rate, or run pgtrial on "
    "another machine than the server; [verdict] allow_busy_client = true gives the verdict all the same.",
    "rate_not_kept": "Lower [load] rate to what every arm can serve, or leave it out to compare throughput.",
}
_CLIENT_ALLOWED = "The study allows it ([verdict] allow_busy_client): the client may hide a part of the difference."


@dataclass(frozen=True)
class SpoiltCell:
    """One arm at one load point where more trials are spoilt than is tolerated; `example` is the first one's reason."""

    rule: str
    arm: str
    point: int
    spoilt: int
    trials: int
    example: str


def spoilt_cells(grid: Grid) -> list[SpoiltCell]:
    """Where trials are spoilt, in the order of the arms and load points; every stored trial counts."""
    found = []
    for rule, told in (("busy_client", _busy), ("schedule_lag", _late), ("rate_not_kept", _behind)):
        for arm in grid.plan.arms:
            for point in range(len(grid.plan.load_points)):
                trials = grid.of(arm, point)
                reasons = [reason for trial in trials if (reason := told(trial)) is not None]
                if len(reasons) > TOLERATED * len(trials):
                    found.append(SpoiltCell(rule, arm, point, len(reasons), len(trials), reasons[0]))
    return found


def spoilt_findings(cells: list[SpoiltCell], plan: Plan) -> list[Finding]:
    """One finding for each rule, which withholds the comparisons of its arms, unless the study allows it.

    Where the baseline is spoilt the finding is about it alone, since then every comparison is.
    """
    found = []
    for rule in dict.fromkeys(cell.rule for cell in cells):
        own = [cell for cell in cells if cell.rule == rule]
        arms = list(dict.fromkeys(cell.arm for cell in own))
        allowed = rule != "rate_not_kept" and plan.allow_busy_client
        found.append(
            Finding(
                rule=rule,
                severity="warning" if allowed else "withhold",
                arms=[plan.baseline] if plan.baseline in arms else arms,
                message=_MESSAGES[rule].format(
                    arms=" and ".join(arms), where=_where(own, plan), example=own[0].example
                ),
                cure=_CLIENT_ALLOWED if allowed else _CURES[rule],
            )
        )
    return found


def _where(cells: list[SpoiltCell], plan: Plan) -> str:
    """The first load point with the number of spoilt trials there, and how many more there are."""
    first = cells[0]
    more = len({cell.point for cell in cells}) - 1
    told = f"{first.spoilt} of {plural(first.trials, 'trial')} of {first.arm} at {plan.load_points[first.point].label}"
    return f"{told}, and others at {plural(more, 'more load point')}" if more else told


def _busy(trial: Trial) -> str | None:
    """The engine's first warning of itself, whatever it is about save its schedule."""
    warnings = trial.client.warnings if trial.client else []
    return next((each.message.rstrip(".") for each in warnings if each.kind != _LAG), None)


def _late(trial: Trial) -> str | None:
    """The engine's warning that it did not keep its schedule."""
    warnings = trial.client.warnings if trial.client else []
    return next((each.message.rstrip(".") for each in warnings if each.kind == _LAG), None)


def _behind(trial: Trial) -> str | None:
    """How far a trial with a rate stayed behind it; failed transactions were served, too."""
    rate, measured = trial.load_point.rate, trial.measured
    if rate is None or measured is None or trial.status == "failed":
        return None
    asked = rate * measured.duration_s
    served = measured.transactions + sum(measured.failures.values())
    if served >= _KEPT * asked - 3 * math.sqrt(asked):
        return None
    return f"{served:,} of {asked:,.0f} transactions"
