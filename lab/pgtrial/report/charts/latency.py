"""Latency percentiles per arm, one chart per load point: the median trial and the spread of the trials."""

from __future__ import annotations

import math

import altair as alt

from pgtrial.report.charts.parts import Canvas, Figure, Rows, arm_colour, arm_dash, arm_shape
from pgtrial.report.data import StudyData


def latency_charts(data: StudyData) -> list[Figure]:
    """Percentiles over a logarithmic scale of milliseconds."""
    return [figure for point in range(len(data.plan.load_points)) if (figure := _figure(data, point)) is not None]


def _figure(data: StudyData, point: int) -> Figure | None:
    arms = data.plan.arms
    rows = [
        {
            "arm": level.arm,
            "percentile": name,
            "median": spread.median / 1000,
            "lowest": spread.lowest / 1000,
            "highest": spread.highest / 1000,
        }
        for level in data.result.levels
        if level.load_point == point
        for name, spread in level.latency_us.items()
        if spread is not None and name != "mean" and spread.lowest > 0
    ]
    if not rows:
        return None
    label = data.plan.load_points[point].label
    order = [name for name in ("p50", "p90", "p95", "p99", "p99.9") if any(row["percentile"] == name for row in rows)]
    canvas = Canvas()
    base = canvas.chart(rows).encode(
        x=alt.X(
            "percentile:N",
            sort=order,
            title=None,
            scale=alt.Scale(paddingInner=0.4),
            axis=alt.Axis(labelAngle=0, grid=False),
        ),
        xOffset=alt.XOffset("arm:N", sort=arms, scale=alt.Scale(paddingInner=0.5, paddingOuter=1)),
        color=arm_colour(arms),
    )
    y = alt.Y("median:Q", title=None, scale=alt.Scale(type="log"), axis=alt.Axis(format="~g", values=_ticks(rows)))
    tooltip = [
        "arm:N",
        "percentile:N",
        alt.Tooltip("median:Q", format=".3~g", title="median trial, ms"),
        alt.Tooltip("lowest:Q", format=".3~g", title="lowest trial, ms"),
        alt.Tooltip("highest:Q", format=".3~g", title="highest trial, ms"),
    ]
    whisker = base.mark_rule(strokeWidth=2).encode(y=alt.Y("lowest:Q", title=None), y2="highest:Q")
    line = base.mark_line(strokeWidth=1, opacity=0.5).encode(y=y, strokeDash=arm_dash(arms))
    dot = base.mark_point(filled=True, size=80, opacity=1).encode(y=y, shape=arm_shape(arms), tooltip=tooltip)
    summary = "; ".join(f"{row['arm']} {row['percentile']} {row['median']:.3g} ms" for row in rows)
    alt_text = f"Latency percentiles, {label}: {summary}."
    return canvas.figure(label, [line, whisker, dot], 240, alt_text, "ms")


def _ticks(rows: Rows) -> list[float]:
    """1, 2, 5, 10, 20, ... over the range; only powers of ten over a wide range."""
    low = math.floor(math.log10(min(row["lowest"] for row in rows)))
    high = math.ceil(math.log10(max(row["highest"] for row in rows)))
    steps = (1, 2, 5) if high - low <= 3 else (1,)
    return [step * 10.0**power for power in range(low, high + 1) for step in steps]
