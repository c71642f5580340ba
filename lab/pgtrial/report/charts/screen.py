"""The chart of a screening study: a bar with its interval for each factor, the best one first."""

from __future__ import annotations

from functools import partial
from typing import Any

from pgtrial.model.records.claims import Claim
from pgtrial.model.units import as_written, change
from pgtrial.report.charts.differences import VERDICT_SHAPES
from pgtrial.report.charts.parts import ZERO_LABEL, Canvas, Figure, row_axis
from pgtrial.report.charts.vega import channel
from pgtrial.report.data import StudyData
from pgtrial.report.words import measure_text

_ROW = 40


def factor_chart(data: StudyData) -> list[Figure]:
    """Returns one chart with a row for each factor of a screening study; no chart for other studies, or before the
    factors can be told apart."""
    rows = [row for claim in data.result.primary if (row := _row(claim)) is not None] if data.plan.factors else []
    if not rows:
        return []
    margin = data.plan.margin
    values = [abs(value) for row in rows for value in (row["low"], row["value"], row["high"]) if value is not None]
    reach = 1.1 * max([*values, 1.6 * margin])
    measure = measure_text(data.plan)
    x = partial(
        channel,
        title=f"{measure}, second level against the first",
        scale={"domain": [max(-1.0, -reach), reach], "nice": False},
        axis={"format": "+.1~%" if reach < 0.05 else "+.0%", "tickCount": 6, "labelExpr": ZERO_LABEL},
    )
    y = row_axis("label:N", rows, labelExpr="split(datum.label, '|')", labelLimit=190, labelPadding=10)
    shapes = {"domain": list(VERDICT_SHAPES), "range": list(VERDICT_SHAPES.values())}
    shape = channel("verdict:N", scale=shapes, legend=None)
    tooltip = ["factor:N", channel("text:N", title="difference"), "verdict:N", "blocks:Q"]
    canvas = Canvas()
    band = canvas.chart([{"from": -margin, "to": margin}]).mark("rect", color="--band", opacity=1)
    bars = canvas.chart(rows).mark("bar", height=14, color="--accent", opacity=0.25)
    point = canvas.chart(rows).mark("point", filled=True, size=130, opacity=1, color="--accent")
    words = canvas.chart(rows).mark("text", dy=-13, fontSize=11, color="--soft")
    layers: list[Any] = [
        band.encode(x=x("from:Q"), x2="to:Q"),
        bars.encode(x=x("value:Q"), x2="zero:Q", y=y),
        canvas.chart([{"zero": 0}]).mark("rule", color="--soft").encode(x="zero:Q"),
        *canvas.whiskers(rows, x, y),
        point.encode(x=x("value:Q"), y=y, shape=shape, tooltip=tooltip),
        words.encode(x=x("value:Q"), y=y, text="verdict:N"),
    ]
    shown = "; ".join(f"{row['factor']}: {row['text']}, {row['verdict']}" for row in rows)
    alt_text = f"The effect of each factor, margin {as_written(margin)}. {shown}."
    return [canvas.figure("The effect of each factor", layers, _ROW * len(rows) + 20, alt_text, wide=True)]


def _row(claim: Claim) -> dict[str, Any] | None:
    difference = claim.difference
    value = difference.value if difference is not None else claim.running
    if value is None:
        return None
    interval = f" ({difference.text()})" if difference is not None and difference.low is not None else ""
    name, _, second = claim.arm.partition("=")
    return {
        "label": f"{name}|{second} against {claim.baseline.partition('=')[2]}",
        "factor": f"{claim.arm} against {claim.baseline}",
        "value": value,
        "zero": 0,
        "low": difference and difference.low,
        "high": difference and difference.high,
        "verdict": claim.verdict,
        "blocks": claim.blocks,
        "text": f"{change(value)}{interval}",
    }
