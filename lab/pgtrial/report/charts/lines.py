"""A small chart of one quantity over the seconds of a trial, a line for each arm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import altair as alt

from pgtrial.report.charts import Figure
from pgtrial.report.charts.parts import Canvas, arm_colour, arm_dash
from pgtrial.report.charts.seconds import seconds_axis, start_of_measuring

Line = Sequence[tuple[int, float]]
"""Second and value, in ascending order."""

_HEIGHT = 130


def small_lines(
    title: str,
    unit: str,
    arms: list[str],
    lines: Mapping[str, Line],
    *,
    interpolate: Literal["linear", "step-after"] = "linear",
) -> Figure:
    """One figure; arms without a line are left out of it, and keep their colour. Needs one line at least."""
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
    told = ", ".join(f"{arm} {sum(v for _, v in line) / len(line):.4g}" for arm, line in lines.items())
    text = f"{title}, {unit}, by second; on average {told}."
    return Figure(title, text, canvas.finish(layers, _HEIGHT, text), unit)
