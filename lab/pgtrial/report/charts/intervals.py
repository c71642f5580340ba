"""Charts of differences with their intervals in comparison with the margin: a row for each claim, whose mark has the
shape of its verdict."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from pgtrial.model.records.claims import Claim
from pgtrial.model.units import as_written, change
from pgtrial.report.charts.parts import ZERO_LABEL, Canvas, Figure, row_axis
from pgtrial.report.charts.vega import Channel, channel

_ROW = 40
"""The height in pixels of a row."""

_VERDICT_SHAPES = {
    "better": "triangle-right",
    "worse": "triangle-left",
    "equivalent": "diamond",
    "undecided": "circle",
    "withheld": "cross",
}
"""The shapes of the marks of comparisons, by their verdict."""


def interval_row(claim: Claim, label: str, name: str) -> dict[str, Any] | None:
    """Returns the row of a claim. `label` stands on its axis, where `|` begins a new line, and `name` in the texts.

    Before the first look (planned interim analysis) the row has the estimate so far, without an interval. Returns None
    if there is no estimate yet.
    """
    difference = claim.difference
    value = difference.value if difference is not None else claim.running
    if value is None:
        return None
    interval = f" ({difference.text()})" if difference is not None and difference.low is not None else ""
    return {
        "label": label,
        "claim": name,
        "value": value,
        "low": difference and difference.low,
        "high": difference and difference.high,
        "verdict": claim.verdict,
        "blocks": claim.blocks,
        "text": f"{change(value)}{interval}",
    }


def bounds_of(rows: Sequence[Mapping[str, Any]]) -> list[float]:
    """Returns all values that the chart of these rows has to show: the estimates and the ends of their intervals."""
    return [value for row in rows for value in (row["low"], row["value"], row["high"]) if value is not None]


def interval_axis(title: str, low: float, high: float, reach: float) -> Callable[[str], Channel]:
    """Returns the horizontal axis from `low` to `high`, as a function of the field that is drawn. If `reach`, the
    largest value without its sign, is small, the labels have a decimal."""
    return partial(
        channel,
        title=title,
        scale={"domain": [low, high], "nice": False},
        axis={"format": "+.1~%" if reach < 0.05 else "+.0%", "tickCount": 6, "labelExpr": ZERO_LABEL},
    )


def interval_chart(
    title: str,
    rows: Sequence[dict[str, Any]],
    x: Callable[[str], Channel],
    margin: float,
    about: str,
    *,
    noun: str = "claim",
    bars: bool = False,
) -> Figure:
    """Returns the chart of these rows (`interval_row`) with the horizontal axis `x`. `about` is the beginning of its
    alternative text, and `noun` says what the rows stand for. With `bars` a bar reaches from zero to each estimate."""
    y = row_axis("label:N", rows, labelExpr="split(datum.label, '|')", labelLimit=190, labelPadding=10)
    shapes = {"domain": list(_VERDICT_SHAPES), "range": list(_VERDICT_SHAPES.values())}
    shape = channel("verdict:N", scale=shapes, legend=None)
    tooltip = [channel("claim:N", title=noun), channel("text:N", title="difference"), "verdict:N", "blocks:Q"]
    canvas = Canvas()
    band = canvas.chart([{"from": -margin, "to": margin}]).mark("rect", color="--band", opacity=1)
    layers: list[Any] = [band.encode(x=x("from:Q"), x2="to:Q")]
    if bars:
        bar = canvas.chart([{**row, "zero": 0} for row in rows]).mark("bar", height=14, color="--accent", opacity=0.25)
        layers.append(bar.encode(x=x("value:Q"), x2="zero:Q", y=y))
    point = canvas.chart(rows).mark("point", filled=True, size=130, opacity=1, color="--accent")
    words = canvas.chart(rows).mark("text", dy=-13, fontSize=11, color="--soft")
    layers += [
        canvas.chart([{"zero": 0}]).mark("rule", color="--soft").encode(x="zero:Q"),
        *canvas.whiskers(rows, x, y),
        point.encode(x=x("value:Q"), y=y, shape=shape, tooltip=tooltip),
        words.encode(x=x("value:Q"), y=y, text="verdict:N"),
    ]
    shown = "; ".join(f"{row['claim']}: {row['text']}, {row['verdict']}" for row in rows)
    alt_text = f"{about}, margin {as_written(margin)}. {shown}."
    return canvas.figure(title, layers, _ROW * len(rows) + 20, alt_text, wide=True)
