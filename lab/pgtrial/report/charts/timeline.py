"""Every second of every trial, one chart per load point: a thin line per trial, a thick one for each arm's median."""

from __future__ import annotations

import math
from typing import Any

import altair as alt

from pgtrial.report.charts import Figure, chart
from pgtrial.report.charts.parts import Canvas, arm_colour, arm_dash
from pgtrial.report.data import StudyData, whole_seconds

_MOST_POINTS = 150
"""Points of one line; longer trials are averaged over several seconds, which keeps the page small."""


@chart("timeline")
def timelines(data: StudyData) -> list[Figure]:
    """tps by second; the warm-up lies left of zero. A block can be singled out."""
    return [figure for point in range(len(data.plan.load_points)) if (figure := _figure(data, point)) is not None]


def _figure(data: StudyData, point: int) -> Figure | None:
    arms, load_point = data.plan.arms, data.plan.load_points[point]
    rows: list[dict[str, Any]] = [
        {"arm": t.arm, "block": t.block + 1, "trial": t.index + 1, "s": seconds, "tps": tps}
        for t in data.trials
        if t.load_point == load_point
        for seconds, tps in [_thinned(whole_seconds(t, data.timelines[t.index]))]
        if seconds
    ]
    if not rows:
        return None
    blocks = sorted({row["block"] for row in rows})
    block = alt.param(
        name="block",
        value=None,
        bind=alt.binding_select(
            options=[None, *blocks], labels=["all blocks", *(f"block {b}" for b in blocks)], name="Show "
        ),
    )
    first, last = min(row["s"][0] for row in rows), max(row["s"][-1] for row in rows)
    x = alt.X(
        "s:Q",
        title="second of the measured part",
        scale=alt.Scale(domain=[first, last], nice=False),
        axis=alt.Axis(grid=False, tickMinStep=1),
    )
    y = alt.Y("tps:Q", title=None, scale=alt.Scale(zero=True), axis=alt.Axis(format="~s"))
    canvas = Canvas()
    base = (
        canvas.chart(rows).transform_flatten(["s", "tps"]).transform_filter("block === null || datum.block === block")
    )
    tooltip = ["arm:N", "block:Q", "trial:Q", "s:Q", alt.Tooltip("tps:Q", format=",.0f")]
    layers: list[Any] = []
    if first < 0:
        warmup = canvas.chart([{"from": first, "to": 0}]).mark_rect(color="--band", opacity=0.7)
        layers.append(warmup.encode(x=alt.X("from:Q", title="second of the measured part"), x2="to:Q"))
    layers.append(
        base.mark_line(strokeWidth=1, opacity=0.35)
        .encode(x=x, y=y, color=arm_colour(arms), detail="trial:N", tooltip=tooltip)
        .add_params(block)
    )
    layers.append(
        base.transform_aggregate(tps="median(tps)", groupby=["arm", "s"])
        .mark_line(strokeWidth=2.5)
        .encode(x=x, y=y, color=arm_colour(arms), strokeDash=arm_dash(arms))
    )
    alt_text = (
        f"tps by second of {len(rows)} trials, {load_point.label}, from second {first} (warm-up) to {last}; "
        "the same numbers are in each trial's timeline.parquet."
    )
    return Figure(load_point.label, alt_text, canvas.finish(layers, 220, alt_text), "tps")


def _thinned(rows: list[tuple[int, int]]) -> tuple[list[int], list[float]]:
    """Seconds and tps of one trial; averaged so that the line has at most `_MOST_POINTS` points."""
    step = math.ceil(len(rows) / _MOST_POINTS) if rows else 1
    groups = [rows[i : i + step] for i in range(0, len(rows), step)]
    return [group[0][0] for group in groups], [round(sum(n for _, n in group) / len(group), 1) for group in groups]
