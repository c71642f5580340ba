"""Describes the result of a study with a single arm: the capacity of this arm, with an interval. A capacity is the
highest rate of transactions at which the response time keeps a limit. Such a study compares nothing and has no
verdict."""

from __future__ import annotations

from pgtrial.model.records.plan import Plan
from pgtrial.model.records.results import Level, StudyResult
from pgtrial.model.units import format_duration, plural, three_digits
from pgtrial.report.words import failures_text
from pgtrial.statistics.describe import FEWEST_FOR_MEDIAN


def capacity_text(level: Level, plan: Plan) -> str:
    """Returns the highest rate that an arm serves within the limit of the response time, as text: `default serves 1,006
    transactions per second with p99 within 20ms`."""
    promise = plan.load_points[level.load_point].capacity
    label = promise.label if promise is not None else ""
    if level.tps is None:
        return f"{level.arm} kept the promise of {label} in no trial"
    served = f"{level.arm} serves {_rate(level.tps.median)} transactions per second with {label}"
    if promise is not None and promise.at_most is not None and level.tps.median >= promise.at_most:
        return f"{served}: the search ended at the highest rate that was allowed, and the capacity may be higher"
    return served


def interval_text(level: Level) -> str:
    """Returns the interval of an arm's capacity, the highest rate within the limit of the response time, as text: `991
    to 1,020 (95% interval of the median, 8 blocks)`. If there are too few blocks for an interval, the text says so."""
    if level.tps_low is None or level.tps_high is None:
        return f"takes {FEWEST_FOR_MEDIAN} blocks without a failed trial, and there are {level.trials}"
    blocks = plural(level.trials, "block")
    return f"{_rate(level.tps_low)} to {_rate(level.tps_high)} (95% interval of the median, {blocks})"


def _rate(value: float) -> str:
    return f"{value:,.0f}" if value >= _WHOLE else three_digits(value)


_WHOLE = 100
"""Rates of at least this many transactions per second are shown without decimals, smaller rates with decimals."""


def alone_measured(result: StudyResult, plan: Plan) -> str:
    """Returns how the highest rate of an arm was measured, as text: `capacity by probes of 5s; 8 blocks in 6min; this
    host`. A probe is a run at one rate."""
    taken = f" in {format_duration(round(result.block_s * result.blocks_complete))}" if result.block_s else ""
    where_it_ran = plan.scope.partition(", ")[0]
    blocks = plural(result.blocks_complete, "block")
    return f"capacity by probes of {format_duration(plan.duration_s)}; {blocks}{taken}; {where_it_ran}"


def withheld_text(level: Level, result: StudyResult) -> str | None:
    """Returns the reasons why the capacity of the single arm is withheld, that is, not reported because the measurement
    is not reliable. Returns None if it is reported."""
    reasons = [finding.message for finding in result.findings if finding.severity == "withhold"]
    return f"No result on {level.arm}: {' '.join(reasons)}" if reasons else None


def alone_sentence(level: Level, result: StudyResult, plan: Plan) -> str:
    """Returns the result at one load point as a whole sentence."""
    if (withheld := withheld_text(level, result)) is not None:
        return withheld
    point = plan.load_points[level.load_point]
    failed = ", ".join(failures_text(counts, plan) for counts in result.failures)
    return (
        f"{capacity_text(level, plan)} ({point.load}, {plural(point.clients, 'client')}); interval "
        f"{interval_text(level)}, probes of {format_duration(plan.duration_s)}, scope: {plan.scope}; failures {failed}."
    )
