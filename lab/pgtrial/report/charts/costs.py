"""What a transaction costs each arm against the baseline: costs with their intervals, the largest change first."""

from __future__ import annotations

import math
from typing import Any

import altair as alt

from pgtrial.model.records.results import Cost
from pgtrial.report.charts.parts import Canvas, Figure
from pgtrial.report.data import StudyData
from pgtrial.report.words import cost_text, is_wide
from pgtrial.statistics.costs import clearly

_ROW = 22
"""Pixels."""
_TICKS = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100]


def cost_charts(data: StudyData) -> list[Figure]:
    """One chart for each arm but the baseline; with several load points of the mean over them."""
    point = 0 if len(data.plan.load_points) == 1 else None
    found = (_figure(data, arm, point) for arm in data.plan.arms if arm != data.plan.baseline)
    return [figure for figure in found if figure is not None]


def _figure(data: StudyData, arm: str, point: int | None) -> Figure | None:
    own = [cost for cost in data.result.costs if cost.arm == arm and cost.load_point == point]
    rows = sorted(
        (row for cost in own if (row := _row(cost, data.plan.margin)) is not None),
        key=lambda row: -abs(math.log(row["ratio"])),
    )
    if not rows:
        return None
    low, high = min(row["low"] for row in rows), max(row["high"] for row in rows)
    low, high = min(low, 0.9) / 1.05, max(high, 1.1) * 1.05
    scale = alt.Scale(type="log", domain=[low, high], nice=False)
    axis = alt.Axis(
        values=[tick for tick in _TICKS if low <= tick <= high],
        labelExpr="datum.value === 1 ? 'same' : 'x ' + datum.value",
    )
    title = f"cost of a transaction, {arm} / {data.plan.baseline}"
    canvas = Canvas()
    same = canvas.chart([{"same": 1}]).mark_rule(color="--soft").encode(x=alt.X("same:Q", scale=scale))
    y = alt.Y(
        "what:N",
        sort=[row["what"] for row in rows],
        title=None,
        axis=alt.Axis(ticks=False, domain=False, labelLimit=190),
    )
    tooltip = [alt.Tooltip("what:N", title="cost"), alt.Tooltip("text:N", title="difference"), "blocks:Q"]
    layers: list[Any] = [same]
    for clear, colour in ((True, "--accent"), (False, "--soft")):
        drawn = [row for row in rows if row["clear"] == clear]
        if not drawn:
            continue
        chart = canvas.chart(drawn)
        whisker = chart.mark_rule(strokeWidth=4, strokeCap="round", color=colour, opacity=0.45)
        layers.append(whisker.encode(x=alt.X("low:Q", scale=scale, axis=axis, title=title), x2="high:Q", y=y))
        estimate = chart.mark_point(filled=True, size=90, opacity=1, color=colour)
        layers.append(estimate.encode(x=alt.X("ratio:Q", scale=scale, axis=axis, title=title), y=y, tooltip=tooltip))
    words = "; ".join(f"{row['what']} {row['text']}" for row in rows)
    return canvas.figure(
        f"{arm} against {data.plan.baseline}",
        layers,
        _ROW * len(rows) + 30,
        f"Costs of a transaction of {arm} against {data.plan.baseline}, largest change first: {words}.",
        wide=True,
    )


def _row(cost: Cost, margin: float) -> dict[str, Any] | None:
    """A cost as a row of the chart; None where its difference is not known well enough to be drawn."""
    found = cost.difference
    if found is None or found.low is None or found.high is None or is_wide(found):
        return None
    return {
        "what": cost.what,
        "ratio": 1 + found.value,
        "low": 1 + found.low,
        "high": 1 + found.high,
        "clear": clearly(cost, margin),
        "text": cost_text(cost),
        "blocks": cost.blocks,
    }
