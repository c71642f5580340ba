"""Charts of capacity studies, which search for the highest rate at which an arm keeps a limit of the response time.
They show the response times of all probes (runs at one rate) over their rates, the limit, and the capacities that
follow."""

from __future__ import annotations

from typing import Any

from pgtrial.model.records.capacity import CapacityLoad
from pgtrial.report.charts.parts import Canvas, Figure, arm_colour, arm_shape
from pgtrial.report.charts.vega import channel
from pgtrial.report.data import StudyData


def capacity_charts(data: StudyData) -> list[Figure]:
    """Returns one chart for each load point at which the study searched for a capacity, which is the highest rate at
    which the response time keeps a limit. The result is empty if there is no such load point."""
    points = enumerate(data.plan.load_points)
    figures = (_of_point(data, index, point.capacity) for index, point in points if point.capacity is not None)
    return [figure for figure in figures if figure is not None]


def _of_point(data: StudyData, index: int, promise: CapacityLoad) -> Figure | None:
    rows = _probes(data, index)
    if not rows:
        return None
    canvas = Canvas()
    x = channel("rate:Q", title="transactions per second, as asked", scale={"type": "log", "nice": False})
    y = channel("ms:Q", title=None, scale={"type": "log"}, axis={"format": "~g"})
    arms = data.plan.arms
    dots = canvas.chart(rows).mark("point", size=36, opacity=0.6)
    tooltip = ["arm:N", "block:Q", channel("rate:Q", format=",.0f"), channel("ms:Q", format=",.3g"), "kept:N"]
    layers: list[Any] = []
    capacities = _capacities(data, index)
    bounded = [row for row in capacities if row["low"] is not None and row["high"] is not None]
    colour = arm_colour(arms)
    if bounded:
        band = canvas.chart(bounded).mark("rect", fillOpacity=0.15)
        layers.append(band.encode(x=channel("low:Q", title=None), x2="high:Q", color=colour))
    limit = canvas.chart([{"ms": promise.limit_s * 1000}]).mark("rule", color="--soft", strokeDash=[4, 3])
    lines = canvas.chart(capacities).mark("rule", strokeWidth=2)
    layers += [
        limit.encode(y=y),
        lines.encode(x=x, color=colour),
        dots.encode(x=x, y=y, color=colour, shape=arm_shape(arms), tooltip=tooltip),
    ]
    where = f", {data.labels[index]}" if len(data.labels) > 1 else ""
    title = f"{promise.percentile} over the rate{where}"
    found = "; ".join(f"{row['arm']} {row['rate']:,.0f}/s" for row in capacities)
    return canvas.figure(title, layers, 280, f"{title}: the promise is {promise.label}. Capacities: {found}.", "ms")


def _probes(data: StudyData, index: int) -> list[dict[str, Any]]:
    """Returns a row for each probe (a run at one rate) of the load point with the index `index`. Probes in which the
    percentile of the response time could not be computed are left out."""
    point = data.plan.load_points[index]
    return [
        {
            "arm": trial.arm,
            "block": trial.block + 1,
            "rate": probe.rate,
            "ms": probe.at_percentile_us / 1000,
            "kept": "kept" if probe.kept else "broken",
        }
        for trial in data.trials
        if trial.load_point == point
        for probe in trial.probes
        if probe.at_percentile_us
    ]


def _capacities(data: StudyData, index: int) -> list[dict[str, Any]]:
    return [
        {"arm": level.arm, "rate": level.tps.median, "low": level.tps_low, "high": level.tps_high}
        for level in data.result.levels
        if level.load_point == index and level.tps is not None
    ]
