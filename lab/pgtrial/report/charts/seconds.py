"""What charts over the seconds of a trial share: the axis, where measuring starts, parts that add up, small charts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import altair as alt

from pgtrial.report.charts.parts import Canvas, Figure, arm_colour, arm_dash
from pgtrial.report.data import StudyData

SECONDS = "second of the measured part"
"""Title of the axis."""

_MOST_BINS = 60
"""Bins of one chart, which keeps the page small."""

_LINES_HEIGHT = 130

Line = Sequence[tuple[int, float]]
"""Second and value, in ascending order."""


def bin_width(data: StudyData, multiple_of: int = 1) -> int:
    """Seconds of a bin of a study's charts over its seconds."""
    if data.every_second:
        return multiple_of
    return multiple_of * math.ceil((data.plan.warmup_s + data.observed_s) / _MOST_BINS / multiple_of)


def seconds_axis(first: int, last: int) -> alt.X:
    """The seconds, in a field `s`; the warm-up lies left of zero."""
    return alt.X(
        "s:Q",
        title=SECONDS,
        scale=alt.Scale(domain=[first, max(last, first + 1)], nice=False),
        axis=alt.Axis(grid=False, tickMinStep=1),
    )


def start_of_measuring(canvas: Canvas, first: int, last: int) -> list[Any]:
    """A rule at zero, if that is inside the chart."""
    if not first < 0 < last:
        return []
    rule = canvas.chart([{"at": 0}]).mark_rule(color="--soft", strokeDash=[3, 3])
    return [rule.encode(x=alt.X("at:Q", title=SECONDS))]


def stacked(
    canvas: Canvas,
    seconds: Sequence[int],
    parts: Mapping[str, Sequence[float]],
    colours: Mapping[str, str],
    most: float,
    *,
    unit: str,
    columns: int | None = None,
) -> list[Any]:
    """Layers with the parts stacked in the order of `colours`; each part has a value for every second.

    The axis ends at `most`, so that charts beside each other have one scale; the legend has `columns`, or one row.
    """
    names = list(colours)
    rows = [
        {"part": part, "place": names.index(part), "s": list(seconds), "n": list(values)}
        for part, values in parts.items()
    ]
    legend = alt.Legend() if columns is None else alt.Legend(columns=columns)
    area = (
        canvas.chart(rows)
        .transform_flatten(["s", "n"])
        .mark_area(opacity=0.85, line=False)
        .encode(
            x=seconds_axis(seconds[0], seconds[-1]),
            y=alt.Y("n:Q", title=None, stack="zero", scale=alt.Scale(domain=[0, most])),
            color=alt.Color(
                "part:N",
                title=None,
                sort=None,
                scale=alt.Scale(domain=names, range=list(colours.values())),
                legend=legend,
            ),
            order=alt.Order("place:Q"),
            tooltip=[alt.Tooltip("part:N"), alt.Tooltip("s:Q"), alt.Tooltip("n:Q", format=".2f", title=unit)],
        )
    )
    return [area, *start_of_measuring(canvas, seconds[0], seconds[-1])]


def small_lines(
    title: str,
    unit: str,
    arms: list[str],
    lines: Mapping[str, Line],
    *,
    interpolate: Literal["linear", "step-after"] = "linear",
) -> Figure:
    """One figure with at least one line. Arms without a line are left out; the others keep their colours."""
    rows: list[dict[str, Any]] = [
        {"arm": arm, "s": [second for second, _ in line], "v": [float(f"{value:.4g}") for _, value in line]}
        for arm, line in lines.items()
    ]
    first, last = min(row["s"][0] for row in rows), max(row["s"][-1] for row in rows)
    canvas = Canvas()
    drawn = (
        canvas.chart(rows)
        .transform_flatten(["s", "v"])
        .mark_line(strokeWidth=2, interpolate=interpolate)
        .encode(
            x=seconds_axis(first, last),
            y=alt.Y("v:Q", title=None, scale=alt.Scale(zero=True), axis=alt.Axis(format="~s", tickCount=4)),
            color=arm_colour(arms),
            strokeDash=arm_dash(arms),
            tooltip=[alt.Tooltip("arm:N"), alt.Tooltip("s:Q"), alt.Tooltip("v:Q", format=",.4~g", title=unit)],
        )
    )
    layers: list[Any] = [drawn, *start_of_measuring(canvas, first, last)]
    summary = ", ".join(f"{arm} {sum(v for _, v in line) / len(line):.4g}" for arm, line in lines.items())
    text = f"{title}, {unit}, by second; on average {summary}."
    return canvas.figure(title, layers, _LINES_HEIGHT, text, unit)
