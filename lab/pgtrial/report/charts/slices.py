"""Charts of interleaved trials, in which the arms take turns in slices of a fraction of a second to some seconds. One
chart shows the slices of one block over time, another one the precision that the study had reached over time."""

from __future__ import annotations

from functools import partial
from typing import Any

from pgtrial.model.records.load_point import LoadPoint, rate_unit
from pgtrial.model.units import format_duration, percent
from pgtrial.report.charts.parts import Canvas, Figure, arm_colour, arm_dash, arm_shape
from pgtrial.report.charts.vega import channel
from pgtrial.report.data import StudyData
from pgtrial.report.tables.slices import comparison, middle_block, slice_tps
from pgtrial.statistics.precision import half_width

_MOST_SLICES = 120
"""A chart shows at most this number of slices (turns of the arms), from the start of the measured part. More slices
would be too narrow to see."""


def slice_charts(data: StudyData) -> list[Figure]:
    """Returns a chart of the precision, and, for each load point, a chart with the slices of a block from the middle of
    the study. A slice is the short time in which one arm runs before the next arm takes its turn. The result is empty
    if the arms did not take turns within trials."""
    if data.plan.interleaving is None:
        return []
    figures = [_precision(data), *(_slices(data, point) for point in data.plan.load_points)]
    return [figure for figure in figures if figure is not None]


def _slices(data: StudyData, point: LoadPoint) -> Figure | None:
    """Returns a chart of the throughput in each slice (the time in which an arm has its turn) or, for a load at a given
    rate, of its mean response time. Each bar is as wide as the slice really was, and dotted lines are the planned
    borders."""
    arms = data.plan.arms
    paced = point.rate is not None
    what, digits = ("mean response time, ms", ",.3f") if paced else (rate_unit(data.plan.load_points), ",.0f")
    all_of_block = middle_block(data, point)
    rows: list[dict[str, Any]] = [
        {
            "arm": trial.arm,
            "round": row.round + 1,
            "begin": round(row.begin_s, 4),
            "end": round(row.end_s, 4),
            "middle": round((row.planned_begin_s + row.planned_end_s) / 2, 4),
            "planned": f"{row.planned_begin_s:.3f} to {row.planned_end_s:.3f}",
            "value": round(value, 3 if paced else 1),
        }
        for trial, row in all_of_block[:_MOST_SLICES]
        if row.begin_s is not None
        and row.end_s is not None
        and (value := row.mean_us and row.mean_us / 1000 if paced else slice_tps(trial, row)) is not None
    ]
    if not rows:
        return None
    shown = [row for _, row in all_of_block[:_MOST_SLICES]]
    borders = sorted({round(at, 4) for row in shown for at in (row.planned_begin_s, row.planned_end_s)})
    x_scale = {"domain": [borders[0], max(borders[-1], *(row["end"] for row in rows))], "nice": False, "zero": False}
    x = partial(channel, title="seconds since the start of the load", scale=x_scale, axis={"grid": False})
    y = channel("value:Q", title=None, scale={"zero": True}, axis={"format": "~s"})
    tooltip = ["arm:N", "round:Q", "planned:N", channel("begin:Q", format=".3f", title="really from"),
               channel("end:Q", format=".3f", title="to"),
               channel("value:Q", format=digits, title=what)]  # fmt: skip
    canvas = Canvas()
    base = canvas.chart(rows)
    planned = canvas.chart([{"at": at} for at in borders])
    layers: list[Any] = [
        planned.mark("rule", color="--soft", strokeDash=[1, 3], opacity=0.7).encode(x=x("at:Q")),
        base.mark("bar", opacity=0.6).encode(x=x("begin:Q"), x2="end:Q", y=y, color=arm_colour(arms), tooltip=tooltip),
        base.mark("point", filled=True, size=36, opacity=1).encode(
            x=x("middle:Q"), y=y, color=arm_colour(arms), shape=arm_shape(arms), tooltip=tooltip
        ),
    ]
    block, left = all_of_block[0][0].block + 1, len(all_of_block) - len(shown)
    speeds = "; ".join(f"{arm} {_range([row['value'] for row in rows if row['arm'] == arm], digits)}" for arm in arms)
    latest = max(row.end_s - row.planned_end_s for row in shown if row.end_s is not None)
    alt_text = (
        f"{what} of {len(rows)} slices in turn, {point.label}, block {block}: {speeds}. "
        f"The last transactions of a slice ended up to {latest * 1000:.0f} ms after its planned end."
    )
    if left:
        alt_text += f" {left} later slices are not drawn."
    name = f"{point.label}, block {block}" if len(data.plan.load_points) > 1 else f"Slices of block {block}"
    return canvas.figure(name, layers, 220, alt_text, what, wide=True)


def _range(values: list[float], digits: str) -> str:
    return f"{min(values):{digits}} to {max(values):{digits}}" if values else "none"


def _precision(data: StudyData) -> Figure | None:
    """Returns a chart that shows how precise the result was at each time of the study, as half the width of the
    interval of the difference. A line shows the interval from all blocks so far, and marks show the intervals at the
    looks (planned interim analyses), which are wider because several looks share the allowed error.

    The axis is logarithmic, because one failed trial can make an interval a thousand times as wide.
    """
    steps = [step for step in data.reached if half_width(step[1].difference)]
    if not steps:
        return None
    names = list(dict.fromkeys(comparison(claim) for claim, _ in steps))
    in_minutes = steps[-1][1].spent.wall_s >= 120
    rows: list[dict[str, Any]] = [
        {
            "arms": comparison(claim),
            "time": round(step.spent.wall_s / (60 if in_minutes else 1), 3),
            "units": step.units,
            "width": half_width(step.difference),
            "look": half_width(step.at_look),
            "measured": f"{step.spent.measured:.0%}",
        }
        for claim, step in steps
    ]
    unit = data.unit
    tooltip = ["arms:N", channel("units:Q", title=f"{unit}s"), channel("width:Q", format=".2%", title="95%"),
               channel("look:Q", format=".2%", title="sequential"), "measured:N"]  # fmt: skip
    x = channel(
        "time:Q",
        title=f"{'minutes' if in_minutes else 'seconds'} of trials, with their preparation",
        scale={"zero": True, "nice": True},
        axis={"grid": False},
    )
    width = channel("width:Q", title=None, scale={"type": "log"}, axis={"format": ".1~%", "tickCount": 5})
    canvas = Canvas()
    base = canvas.chart(rows).encode(x=x, color=arm_colour(names, "arms:N"), tooltip=tooltip)
    looks = base.transform({"filter": "datum.look !== null"}).encode(y=channel("look:Q", title=None))
    margin = canvas.chart([{"margin": data.plan.margin}])
    layers: list[Any] = [
        margin.mark("rule", color="--soft", strokeDash=[3, 3]).encode(y=channel("margin:Q", title=None)),
        base.mark("line", strokeWidth=2, point=True).encode(y=width, strokeDash=arm_dash(names, "arms:N")),
        looks.mark("point", filled=True, size=90, opacity=1).encode(shape=arm_shape(names, "arms:N")),
    ]
    last = steps[-1][1]
    alt_text = (
        f"Half-width of the 95% interval after each {unit}, with marks for the sequential interval at planned looks "
        f"and a line for the margin: {rows[-1]['arms']} {percent(rows[-1]['width'])} after {last.units} {unit}s "
        f"and {format_duration(last.spent.wall_s)}, of which {rows[-1]['measured']} were measured."
    )
    return canvas.figure("Precision over time", layers, 220, alt_text, "half-width of the 95% interval", wide=True)
