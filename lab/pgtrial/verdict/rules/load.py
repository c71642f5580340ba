"""Rules on the load. They find trials in which the load engine was the bottleneck, transactions started late, or the
rate was not kept."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product

from pgtrial.model.metrics import PERCENTILES, RESPONSE
from pgtrial.model.records.plan import Plan
from pgtrial.model.records.trial import Trial
from pgtrial.model.units import plural
from pgtrial.statistics.p8 import TOLERATED
from pgtrial.verdict.percentiles import percentile_of
from pgtrial.verdict.rules.case import Case, Concern, Severity, listed, rule

_KEPT = 0.99
"""An arm keeps the rate if it serves at least this share of the transactions. A further three standard deviations of
the Poisson count are tolerated."""

_LAG = "schedule-lag"
_ALLOWED = "The study allows it ([verdict] allow_busy_client): the client may hide a part of the difference."


@rule("busy_client", "the client was a limit", over_trials=True)
def busy_client(case: Case) -> Iterator[Concern]:
    """Finds trials in which the load engine reports that it was the bottleneck itself, so that a faster server would
    not look faster."""
    yield from _spoilt(
        case,
        lambda trial: _warning(trial, of_schedule=False),
        "The client itself was a limit of {arms} ({where}), in the engine's words: {example}.",
        "Give the load more threads ([load] threads), use fewer clients, or run pgtrial on another machine than the "
        "server; [verdict] allow_busy_client = true gives the verdict all the same.",
        allowed=case.plan.allow_busy_client,
    )


@rule("schedule_lag", "transactions started late", over_trials=True)
def schedule_lag(case: Case) -> Iterator[Concern]:
    """Finds trials in which the load engine reports that it began transactions late although a client was free.

    More clients cannot help then. The engine compares its delay with the median response time. If the study compares a
    far longer time, the delay is negligible and there is no concern.
    """
    yield from _spoilt(
        case,
        lambda trial: _lateness(case.plan, trial, case.plan.primary_metric),
        "Transactions of {arms} were started later than their schedule ({where}), in the engine's words: {example}.",
        "Give the load more threads ([load] threads), lower the rate, or run pgtrial on another machine than the "
        "server; [verdict] allow_busy_client = true gives the verdict all the same.",
        allowed=case.plan.allow_busy_client,
    )
    for name in case.plan.metrics[1:]:
        if case.plan.named_metric(name).follows_throughput:
            yield from _spoilt(
                case,
                partial(_lateness_of_other, case.plan, name),
                f"{name} of {{arms}} includes late starts ({{where}}), in the engine's words: {{example}}.",
                f"Read {name} with care, or run pgtrial on another machine than the server.",
                severity="warning",
            )


@rule("rate_not_kept", "the rate was not kept", over_trials=True)
def rate_not_kept(case: Case) -> Iterator[Concern]:
    """Finds trials in which the load did not keep the rate that the study sets. If the rate is above the highest rate
    that an arm can serve, its queue grows as long as the trial lasts, so that response times mean nothing."""
    yield from _spoilt(
        case,
        _behind,
        "The rate was not kept by {arms} ({where}), for example {example}: beyond an arm's capacity its response time "
        "tells how long the trial was.",
        "Lower [load] rate to what every arm can serve, or leave it out to compare throughput.",
    )


@rule("ceiling", "the search ended at the highest rate allowed", over_trials=True)
def ceiling(case: Case) -> Iterator[Concern]:
    """Finds searches for a capacity (the highest rate at which the response time keeps a limit) that ended at the
    highest rate that the study allows.

    If both arms of a comparison reach this rate, nothing is known about their difference, and there is no verdict.
    """
    for index, point in enumerate(case.plan.load_points):
        most = point.capacity.at_most if point.capacity is not None else None
        at_most = [arm for arm in case.plan.arms if most is not None and _reach(case.grid.of(arm, index), most)]
        others = [arm for arm in at_most if arm != case.baseline]
        both = case.baseline in at_most and bool(others)
        if at_most and case.others:
            yield Concern(
                others if both else at_most,
                f"{listed(at_most)} kept the promise at {most:,.10g}/s, the highest rate that the study allows "
                f"({point.label}): the capacity may be higher"
                + (", and how the arms compare is not known." if both else ", and the difference larger."),
                "Allow a higher rate ([load] capacity.at_most), if the server may be loaded so much.",
                "withhold" if both else "warning",
            )


def _reach(trials: Sequence[Trial], rate: float) -> bool:
    """True if too many of these trials reached this rate, the highest that the search tries. A small share of such
    trials is tolerated."""
    return sum((trial.capacity or 0.0) >= rate for trial in trials) > TOLERATED * len(trials)


def _spoilt(
    case: Case,
    reason_of: Callable[[Trial], str | None],
    message: str,
    cure: str,
    *,
    allowed: bool = False,
    severity: Severity = "withhold",
) -> Iterator[Concern]:
    """Yields one concern (problem) if, at some load point, too many trials are spoilt. A trial is spoilt if `reason_of`
    returns a reason for it. A small share of spoilt trials, out of all trials with failed ones included, is tolerated.

    If trials of the baseline are spoilt, the concern names only the baseline, since every comparison is then spoilt.
    """
    grid, plan = case.grid, case.plan
    cells: list[tuple[str, int, list[str], int]] = []
    for arm, point in product(plan.arms, grid.points):
        trials = grid.of(arm, point)
        reasons = [reason for trial in trials if (reason := reason_of(trial)) is not None]
        if len(reasons) > TOLERATED * len(trials):
            cells.append((arm, point, reasons, len(trials)))
    if not cells:
        return
    (first, at, reasons, trials_there), arms = cells[0], list(dict.fromkeys(arm for arm, *_ in cells))
    more = len({point for _, point, *_ in cells}) - 1
    where = f"{len(reasons)} of {plural(trials_there, 'trial')} of {first} at {plan.load_points[at].label}"
    where += f", and others at {plural(more, 'more load point')}" if more else ""
    yield Concern(
        [plan.baseline] if plan.baseline in arms else arms,
        message.format(arms=" and ".join(arms), where=where, example=reasons[0]),
        _ALLOWED if allowed else cure,
        "warning" if allowed else severity,
        cells=[(arm, point) for arm, point, *_ in cells],
    )


def _warning(trial: Trial, *, of_schedule: bool) -> str | None:
    """Returns the first warning in which the load engine says that it was a bottleneck itself in a trial; None if there
    is none. With `of_schedule`, only warnings about transactions that began late are considered; without it, all other
    warnings."""
    warnings = trial.client.warnings if trial.client else []
    return next((warning.message.rstrip(".") for warning in warnings if (warning.kind == _LAG) == of_schedule), None)


_DELAY = re.compile(r"began ([\d.]+) ms late")
"""Matches the delay in the load engine's warning."""
_TOLERATED_DELAY = 0.1
"""A delay is tolerated up to this share of the time that the study compares. The load engine tolerates the same share
of the median response time."""


def _lateness(plan: Plan, trial: Trial, metric: str | None) -> str | None:
    """Returns the load engine's warning that it began transactions late. Returns None if the delay is small in
    comparison with the time that the study compares."""
    warning = _warning(trial, of_schedule=True)
    delay = _DELAY.search(warning) if warning is not None else None
    compared_us = _time_us(plan, trial, metric)
    if delay is not None and compared_us is not None and 1000 * float(delay[1]) <= _TOLERATED_DELAY * compared_us:
        return None
    return warning


def _lateness_of_other(plan: Plan, metric: str, trial: Trial) -> str | None:
    """Returns the load engine's warning that it began transactions late, if the delay matters for the given metric but
    not for the metric that decides the verdict; otherwise None."""
    concerns_all = _lateness(plan, trial, plan.primary_metric) is not None
    return None if concerns_all else _lateness(plan, trial, metric)


def _time_us(plan: Plan, trial: Trial, metric: str | None) -> float | None:
    """Returns the time in microseconds that a metric compares in a trial: a percentile or the mean of the response
    time.

    If `metric` is None, the default metric is meant. Returns None if the metric is not a response time, or if the time
    is not known.
    """
    if metric is not None and metric in PERCENTILES:
        return percentile_of(plan, metric).value(trial)
    if metric not in (None, RESPONSE) or trial.measured is None or trial.measured.latency_us is None:
        return None
    return trial.measured.latency_us.mean


def _behind(trial: Trial) -> str | None:
    """If a trial did not keep its rate, returns in words how many of its scheduled transactions were served; otherwise
    None.

    Failed transactions count as served.
    """
    rate, measured = trial.load_point.rate, trial.measured
    if rate is None or measured is None or trial.status == "failed":
        return None
    asked = rate * measured.duration_s
    served = measured.transactions + sum(measured.failures.values())
    if served >= _KEPT * asked - 3 * math.sqrt(asked):
        return None
    return f"{served:,} of {asked:,.0f} transactions"
