"""tps over clients, or arm beside arm where there is one number of clients; one chart per workload, scale and rate."""

from __future__ import annotations

from typing import Any

import altair as alt

from pgtrial.report.charts import Figure, chart
from pgtrial.report.charts.parts import Canvas, arm_colour, arm_dash, arm_shape
from pgtrial.report.data import StudyData


@chart("tps")
def tps_charts(data: StudyData) -> list[Figure]:
    """The median trial of each arm, with its interval, and every trial behind it."""
    points = data.plan.load_points
    cells = dict.fromkeys((point.workload, point.scale, point.rate) for point in points)
    figures = []
    for workload, scale, rate in cells:
        inside = [i for i, p in enumerate(points) if (p.workload, p.scale, p.rate) == (workload, scale, rate)]
        if any(level.tps for level in data.result.levels if level.load_point in inside):
            given = f", {rate:,.10g}/s" if rate is not None else ""
            figures.append(_figure(data, f"{workload}, scale {scale}{given}", inside))
    return figures


def _figure(data: StudyData, title: str, inside: list[int]) -> Figure:
    points, arms = data.plan.load_points, data.plan.arms
    levels: list[dict[str, Any]] = [
        {
            "arm": level.arm,
            "clients": points[level.load_point].clients,
            "tps": level.tps.median,
            "low": level.tps.lowest if level.tps_low is None else level.tps_low,
            "high": level.tps.highest if level.tps_high is None else level.tps_high,
        }
        for level in data.result.levels
        if level.load_point in inside and level.tps
    ]
    trials = [
        {
            "arm": t.arm,
            "clients": t.load_point.clients,
            "tps": t.measured.tps,
            "trial": t.index + 1,
            "block": t.block + 1,
        }
        for t in data.trials
        if t.measured and t.measured.transactions and points.index(t.load_point) in inside
    ]
    clients = sorted({level["clients"] for level in levels})
    canvas = Canvas()
    medians, dots = canvas.chart(levels), canvas.chart(trials)
    layers = _over_clients(medians, dots, arms, clients) if len(clients) > 1 else _side_by_side(medians, dots, arms)
    height = 260 if len(clients) > 1 else 40 + 48 * len(arms)
    told = "; ".join(f"{level['arm']} at {level['clients']} clients {level['tps']:,.0f}" for level in levels)
    alt_text = f"Throughput in transactions per second, {title}: {told}."
    return Figure(title, alt_text, canvas.finish(layers, height, alt_text), "tps")


_TRIAL = ["arm:N", "clients:Q", "block:Q", "trial:Q", alt.Tooltip("tps:Q", format=",.0f")]
_MEDIAN = [
    "arm:N",
    "clients:Q",
    alt.Tooltip("tps:Q", format=",.0f", title="median tps"),
    alt.Tooltip("low:Q", format=",.0f", title="from"),
    alt.Tooltip("high:Q", format=",.0f", title="to"),
]


def _over_clients(medians: alt.Chart, dots: alt.Chart, arms: list[str], clients: list[int]) -> list[alt.Chart]:
    """Lines over the number of clients, logarithmic."""
    x = alt.X(
        "clients:Q",
        title="clients",
        scale=alt.Scale(type="log", base=2, nice=False, padding=24),
        axis=alt.Axis(values=clients, format="d", grid=False, labelOverlap=True),
    )
    y = alt.Y("tps:Q", title=None, scale=alt.Scale(zero=True), axis=alt.Axis(format="~s"))
    base = medians.encode(x=x, color=arm_colour(arms))
    return [
        base.mark_line(strokeWidth=1.5).encode(y=y, strokeDash=arm_dash(arms)),
        dots.mark_circle(size=18, opacity=0.35).encode(x=x, y=y, color=arm_colour(arms), tooltip=_TRIAL),
        base.mark_rule(strokeWidth=2).encode(y=alt.Y("low:Q", title=None), y2="high:Q"),
        base.mark_point(filled=True, size=90, opacity=1).encode(y=y, shape=arm_shape(arms), tooltip=_MEDIAN),
    ]


def _side_by_side(medians: alt.Chart, dots: alt.Chart, arms: list[str]) -> list[alt.Chart]:
    """A row per arm; not from zero, so that the spread of the trials can be seen."""
    y = alt.Y("arm:N", title=None, sort=arms)
    x = alt.X("tps:Q", title="tps", scale=alt.Scale(zero=False, padding=16), axis=alt.Axis(format=",~r"))
    colour, shape = arm_colour(arms, legend=None), arm_shape(arms, legend=None)
    base = medians.encode(y=y, color=colour)
    return [
        dots.mark_circle(size=36, opacity=0.4, yOffset=12).encode(x=x, y=y, color=colour, tooltip=_TRIAL),
        base.mark_rule(strokeWidth=4, strokeCap="round", opacity=0.6).encode(
            x=alt.X("low:Q", title="tps"), x2="high:Q"
        ),
        base.mark_point(filled=True, size=130, opacity=1).encode(x=x, shape=shape, tooltip=_MEDIAN),
    ]
