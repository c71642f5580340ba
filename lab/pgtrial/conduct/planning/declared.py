"""Checks before the first trial whether the study meets the requirements of its declared metrics: a rate, long enough
trials, and a server for each arm."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from pgtrial.model import marks
from pgtrial.model.metrics import PER_CENT, percentiles_of, transactions_for
from pgtrial.model.records.load_point import LoadPoint
from pgtrial.model.records.plan import Plan
from pgtrial.model.study.capacity import LONGER
from pgtrial.model.study.design import Design
from pgtrial.model.units import as_written, format_duration
from pgtrial.verdict.units import Units

_DEVIATIONS = 3
"""The number of standard deviations by which more transactions are planned than are needed, since the number of
transactions in a trial at a given rate has a Poisson distribution."""


def least_duration(design: Design) -> float:
    """Returns the length of the shortest measured part, in seconds, in which there are enough transactions for the
    declared percentiles at the rates of the study. Returns 0 if any length is sufficient."""
    points, percentiles = design.load_points, percentiles_of(design.verdict.metrics)
    return max((_duration_for(name, points) or 0.0 for name in percentiles), default=0.0)


def metric_warnings(design: Design, plan: Plan) -> Iterator[str]:
    """Yields warnings and notes about the declared metrics that the user should read before the study begins, one
    sentence each."""
    if repeated := plan.repeated_metrics:
        yield (
            f"a closed loop makes {' and '.join(repeated)} follow from the throughput; give the load a rate "
            f"({marks.key('load', 'rate')}) that all arms can serve"
        )
    if plan.prices and PER_CENT not in plan.metrics:
        yield f"prices are not used: at a given rate of the load, {PER_CENT} follow from the prices alone"
    for name in percentiles_of(plan.metrics):
        needed_s = _duration_for(name, plan.load_points)
        if needed_s is not None and not design.load.ends_itself and needed_s > plan.duration_s:
            slowest = min(point.rate for point in plan.load_points if point.rate is not None)
            yield (
                f"{name} takes {transactions_for(name):,} transactions in each trial, "
                f"{format_duration(math.ceil(needed_s))} at {slowest:,.10g}/s, and trials have "
                f"{format_duration(plan.duration_s)}: it can get no verdict; {_cure(design)}, or the rate"
            )
    costs = [name for name in plan.metrics if plan.named_metric(name).kind == "cost"]
    if costs and plan.shares_server:
        yield (
            f"{' and '.join(costs)} will not be known, since the arms are sessions of one server; write "
            f"{marks.key('load', 'share_server', False)}"
        )


def metrics_in_words(plan: Plan) -> str:
    """Returns the roles of the metrics as a sentence, such as `p99 decides; p50 and wal per transaction share an error
    and are decided after block 9 at the earliest`."""
    first, *others = plan.metrics
    if (promise := plan.load_points[0].capacity) is not None:
        fewest = transactions_for(promise.percentile) / plan.duration_s
        return (
            f"{first} decides, the highest rate with {promise.label} and failures up to "
            f"{as_written(promise.failures)}; at {fewest:,.0f}/s or more a probe has 100 transactions that are slower "
            f"than the percentile, and at lower rates it is up to {LONGER} times as long"
        )
    if not others:
        return f"{first} decides"
    claims = len(others) * len(plan.others)
    several = len(others) > 1
    share = "share an error and are" if several else "has an error of its own and is"
    units = Units(plan)
    earliest = f"{units.unit} {units.fewest(claims)}"
    return f"{first} decides; {' and '.join(others)} {share} decided after {earliest} at the earliest"


def _cure(design: Design) -> str:
    chosen = design.load.given_s[1] is None
    if chosen:
        return f"raise {marks.key('verdict', 'budget')}, which sets their length"
    return f"raise {marks.key('load', 'duration')}"


def _duration_for(percentile: str, points: Sequence[LoadPoint]) -> float | None:
    """Returns the length of the measured part, in seconds, that a percentile needs at the lowest rate of the load
    points; None if they have no rate."""
    rates = [point.rate for point in points if point.rate is not None]
    needed = transactions_for(percentile)
    return (needed + _DEVIATIONS * math.sqrt(needed)) / min(rates) if rates else None
