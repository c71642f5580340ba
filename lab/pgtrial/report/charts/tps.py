"""tps over clients, or arm beside arm where there is one number of clients; one chart per workload, scale and rate."""

from __future__ import annotations

import altair as alt

from pgtrial.report.charts import Figure, chart
from pgtrial.report.charts.levels import CLIENTS, MEDIAN, TRIAL, lines, readings
from pgtrial.report.charts.parts import Canvas, arm_colour, arm_shape
from pgtrial.report.data import StudyData


@chart("tps")
def tps_charts(data: StudyData) -> list[Figure]:
    """The median trial of each arm, with its interval, and every trial behind it."""
    points = data.plan.load_points
    cells = dict.fromkeys((point.load, point.rate) for point in points)
    figures = []
    for load, rate in cells:
        inside = [i for i, p in enumerate(points) if (p.load, p.rate) == (load, rate)]
        if any(level.tps or level.tps_before for level in data.result.levels if level.load_point in inside):
            given = f", {rate:,.10g}/s" if rate is not None else ""
            figures.append(_figure(data, f"{load}{given}", inside))
    return figures


def _figure(data: StudyData, title: str, inside: list[int]) -> Figure:
    arms, found = data.plan.arms, readings(data, inside, CLIENTS)
    canvas = Canvas()
    medians, dots = canvas.chart(found.levels), canvas.chart(found.trials)
    several = len(found.places) > 1
    layers = lines(medians, dots, arms, CLIENTS, found.places) if several else _side_by_side(medians, dots, arms)
    height = 260 if several else 40 + 48 * len(arms)
    alt_text = f"Throughput in transactions per second, {title}: {found.told()}."
    return Figure(title, alt_text, canvas.finish(layers, height, alt_text), "tps")


def _side_by_side(medians: alt.Chart, dots: alt.Chart, arms: list[str]) -> list[alt.Chart]:
    """A row per arm; not from zero, so that the spread of the trials can be seen."""
    y = alt.Y("arm:N", title=None, sort=arms)
    x = alt.X("tps:Q", title="tps", scale=alt.Scale(zero=False, padding=16), axis=alt.Axis(format=",~r"))
    colour, shape = arm_colour(arms, legend=None), arm_shape(arms, legend=None)
    base = medians.encode(y=y, color=colour)
    return [
        dots.mark_circle(size=36, opacity=0.4, yOffset=12).encode(x=x, y=y, color=colour, tooltip=TRIAL),
        base.mark_rule(strokeWidth=4, strokeCap="round", opacity=0.6).encode(
            x=alt.X("low:Q", title="tps"), x2="high:Q"
        ),
        base.mark_point(filled=True, size=130, opacity=1).encode(x=x, shape=shape, tooltip=MEDIAN),
    ]
