"""The tables of the metrics that the study file declares, and of the curve of percentiles of the response time. Also
text about the comparison of an arm with the baseline by one metric."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from pgtrial.model.metrics import METRICS
from pgtrial.model.records.load_point import rate_unit
from pgtrial.model.records.plan import Plan
from pgtrial.model.records.results import CurvePoint, MetricClaim
from pgtrial.model.units import as_written, decimals_for, plural
from pgtrial.report.data import StudyData
from pgtrial.report.table import Column, Table, number
from pgtrial.report.tables.results import digits, milliseconds, verdict_text
from pgtrial.report.words import bounds_text, signed
from pgtrial.verdict.units import Units


def metric_tables(data: StudyData) -> list[Table[MetricClaim]]:
    """Returns one table for each comparison of an arm with the baseline, with a row for each metric that the study file
    declares. The result is empty if the study declares no metrics."""
    arms = dict.fromkeys(row.arm for row in data.result.metrics)
    return [_of_arm(data, [row for row in data.result.metrics if row.arm == arm]) for arm in arms]


def curve_table(data: StudyData) -> Table[CurvePoint]:
    """Returns the table that compares the percentiles of the response time, from the median to p99.9, of each arm with
    those of the baseline."""
    points = data.result.curve
    claims = points[0].claims if points else 0
    return Table(
        "Response times compared with those of the baseline, percentile by percentile. The difference is "
        f"that of the values: -20% means four fifths of the time. {claims} percentiles share the error of each "
        "look, so that their intervals hold together. They describe where the arms differ; verdicts are "
        "given on declared metrics only.",
        points,
        [
            Column("arms", lambda point: f"{point.arm} / {point.baseline}"),
            Column("load point", lambda point: data.labels[point.load_point]),
            Column("percentile", lambda point: point.percentile),
            number("difference", lambda point: point.difference and signed(point.difference.value)),
            number("95% interval", lambda point: point.difference and point.difference.text()),
            number(f"{Units(data.plan).unit}s", lambda point: point.blocks),
        ],
    )


def _of_arm(data: StudyData, rows: list[MetricClaim]) -> Table[MetricClaim]:
    arm, baseline, units = rows[0].arm, rows[0].baseline, Units(data.plan)
    rate = rate_unit(data.plan.load_points)
    others = [row for row in rows if not row.primary]
    shared = (
        f" The others are secondary claims, {plural(others[0].claims, 'claim')} in all. They share "
        "the error of each look evenly, so that "
        f"they hold together, and are decided after {units.fewest(others[0].claims)} {units.unit}s at the earliest."
        if others
        else ""
    )
    return Table(
        f"{arm} against {baseline} by the declared metrics, margin {as_written(data.plan.margin)}. The first is the "
        f"primary claim.{shared} Values are of the median trial. A difference is one of values, of {rate}, response "
        "and time one of speed. In a percentile a failed transaction counts as one that took the whole measured part.",
        rows,
        [
            Column("metric", partial(_noun, data.plan)),
            *(number(name, _value_of(name, rate)) for name in (baseline, arm)),
            number("difference", lambda row: row.difference and signed(row.difference.value)),
            number("95% interval", lambda row: row.difference and row.difference.text()),
            Column("verdict", verdict_text, verdict=lambda row: row.verdict),
            number(f"{units.unit}s", lambda row: row.blocks),
            Column("remark", lambda row: row.withheld or ""),
        ],
        lambda row: row.primary,
    )


def _noun(plan: Plan, row: MetricClaim) -> str:
    return plan.named_metric(row.metric).noun + (" (primary)" if row.primary else "")


def _value_of(arm: str, rate: str) -> Callable[[MetricClaim], str | None]:
    return lambda row: metric_value(row, arm, rate)


def metric_value(row: MetricClaim, arm: str, rate: str) -> str | None:
    """Returns the value of a metric in an arm as text, such as `8.12 ms` or `1,234 bytes`; None if it is not known.
    `rate` is the unit in which the throughput is shown, such as `tps`."""
    value = row.values.get(arm)
    if value is None:
        return None
    if row.unit == "us":
        return f"{milliseconds(value)} ms"
    unit = rate if row.unit == "1/s" and row.metric in METRICS else row.unit
    return f"{digits(value)} {unit}".rstrip()


def metric_text(row: MetricClaim, rate: str) -> str:
    """Returns the comparison of two arms by a metric as text: the value of the arm, the value of the baseline, the
    difference with its interval, and the verdict. An example is `9.1 ms against 8.1 ms, +12% (+8 to +17%), worse`."""
    if row.withheld is not None:
        return f"no verdict: {row.withheld}"
    pair = [metric_value(row, name, rate) for name in (row.arm, row.baseline)]
    parts = [" against ".join(text for text in pair if text)] if all(pair) else []
    if row.difference is not None:
        value = signed(row.difference.value, decimals_for(row.difference.known))
        parts.append(f"{value} ({bounds_text(row.difference)})")
    return ", ".join([*parts, verdict_text(row)])
