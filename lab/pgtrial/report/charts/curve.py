"""Charts of percentiles: how much the response times of an arm differ from the baseline's at each percentile, with a
band of intervals."""

from __future__ import annotations

from itertools import product
from typing import Any

from pgtrial.model.metrics import PERCENTILES
from pgtrial.model.records.results import CurvePoint
from pgtrial.model.units import change
from pgtrial.report.charts.parts import ZERO_LABEL, Canvas, Figure
from pgtrial.report.charts.vega import channel
from pgtrial.report.data import StudyData


def curve_charts(data: StudyData) -> list[Figure]:
    """Returns one chart for each load point and each arm except the baseline. The result is empty before the first
    look, the first planned interim analysis of the study."""
    cells = product(data.plan.others, range(len(data.labels)))
    return [figure for arm, point in cells if (figure := _curve(data, arm, point)) is not None]


def _curve(data: StudyData, arm: str, load_point: int) -> Figure | None:
    points = [point for point in data.result.curve if (point.arm, point.load_point) == (arm, load_point)]
    rows = [row for point in points if (row := _row(point)) is not None]
    if not rows:
        return None
    x = channel("percentile:N", sort=list(PERCENTILES), title=None, axis={"labelAngle": 0, "grid": False})
    axis = {"format": "+.1~%", "labelExpr": ZERO_LABEL}
    y = channel("value:Q", title=None, axis=axis, scale={"zero": True})
    tooltip = ["percentile:N", channel("text:N", title="difference"), "blocks:Q"]
    canvas = Canvas()
    layers: list[Any] = [canvas.chart([{"zero": 0}]).mark("rule", color="--soft").encode(y="zero:Q")]
    bounded = [row for row in rows if row["low"] is not None and row["high"] is not None]
    if bounded:
        band = canvas.chart(bounded).mark("area", color="--band", opacity=1)
        bar = canvas.chart(bounded).mark("rule", strokeWidth=4, strokeCap="round", color="--accent", opacity=0.45)
        low = channel("low:Q", title=None, axis=axis)
        layers = [band.encode(x=x, y=low, y2="high:Q"), *layers, bar.encode(x=x, y=low, y2="high:Q")]
    base = canvas.chart(rows).encode(x=x, y=y)
    layers += [
        base.mark("line", strokeWidth=1, color="--accent", opacity=0.5),
        base.mark("point", filled=True, size=80, opacity=1, color="--accent").encode(tooltip=tooltip),
    ]
    where = f", {data.labels[load_point]}" if len(data.labels) > 1 else ""
    title = f"{arm} against {data.plan.baseline}{where}"
    shown = "; ".join(f"{row['percentile']} {row['text']}" for row in rows)
    return canvas.figure(title, layers, 240, f"Difference of response times, {title}: {shown}.", "difference")


def _row(point: CurvePoint) -> dict[str, Any] | None:
    if point.difference is None:
        return None
    return {
        "percentile": point.percentile,
        "value": point.difference.value,
        "low": point.difference.low,
        "high": point.difference.high,
        "text": f"{change(point.difference.value)} ({point.difference.text()})",
        "blocks": point.blocks,
    }
