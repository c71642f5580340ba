"""The forest plot: each load point's difference with its interval, against the margin; the primary claim on top."""

from __future__ import annotations

from typing import Any

import altair as alt

from pgtrial.model.records.results import Claim
from pgtrial.model.units import as_written, percent
from pgtrial.report.charts.parts import ZERO_LABEL, Canvas, Figure
from pgtrial.report.data import StudyData
from pgtrial.report.words import in_regime, interval_text

_ROW = 40
_VERDICTS = ["better", "worse", "equivalent", "undecided", "withheld"]
_SHAPES = ["triangle-right", "triangle-left", "diamond", "circle", "cross"]


def forest(data: StudyData) -> list[Figure]:
    """One chart per arm against the baseline."""
    return [figure for claim in data.result.primary if (figure := _figure(data, claim)) is not None]


def _figure(data: StudyData, primary: Claim) -> Figure | None:
    several = len(data.plan.load_points) > 1
    claims = [part for claim in [primary, *(data.result.claims(primary.arm) if several else [])] for part in claim.read]
    rows = [row for claim in claims if (row := _row(data, claim)) is not None]
    if not rows:
        return None
    bounds = [value for row in rows for value in (row["low"], row["value"], row["high"]) if value is not None]
    reach = max(abs(value) for value in [*bounds, data.plan.margin * 1.6])
    low, high = min(-0.15 * reach, *bounds), max(0.15 * reach, *bounds)
    pad = 0.06 * (high - low)
    x_scale = alt.Scale(domain=[low - pad, high + pad], nice=False)
    axis = alt.Axis(format="+.1~%" if reach < 0.05 else "+.0%", tickCount=6, labelExpr=ZERO_LABEL)
    speed = "goodput" if data.plan.measure == "goodput" else "speed by mean response time"
    title = f"{speed} of {primary.arm} against {primary.baseline}"
    y = alt.Y(
        "label:N",
        sort=None,
        title=None,
        axis=alt.Axis(labelExpr="split(datum.label, '|')", labelLimit=190, ticks=False, domain=False, labelPadding=10),
    )
    canvas = Canvas()
    band = (
        canvas.chart([{"from": -data.plan.margin, "to": data.plan.margin}])
        .mark_rect(color="--band", opacity=1)
        .encode(x=alt.X("from:Q", scale=x_scale, axis=axis, title=title), x2="to:Q")
    )
    zero = canvas.chart([{"zero": 0}]).mark_rule(color="--soft").encode(x="zero:Q")
    bounded = [row for row in rows if row["low"] is not None]
    base = alt.X("value:Q", scale=x_scale, axis=axis, title=title)
    verdict = alt.Shape("verdict:N", scale=alt.Scale(domain=_VERDICTS, range=_SHAPES), legend=None)
    tooltip = [
        alt.Tooltip("claim:N", title="claim"),
        alt.Tooltip("text:N", title="difference"),
        alt.Tooltip("verdict:N"),
        alt.Tooltip("blocks:Q"),
    ]
    point = (
        canvas.chart(rows)
        .mark_point(filled=True, size=130, opacity=1, color="--accent")
        .encode(x=base, y=y, shape=verdict, tooltip=tooltip)
    )
    words = canvas.chart(rows).mark_text(dy=-13, fontSize=11, color="--soft").encode(x=base, y=y, text="verdict:N")
    layers: list[Any] = [band, zero]
    if bounded:
        whisker = canvas.chart(bounded).mark_rule(strokeWidth=4, strokeCap="round", color="--accent", opacity=0.45)
        layers.append(whisker.encode(x=alt.X("low:Q", scale=x_scale, axis=axis, title=title), x2="high:Q", y=y))
    shown = "; ".join(f"{row['claim']}: {row['text']}, {row['verdict']}" for row in rows)
    alt_text = (
        f"Difference of {primary.arm} against {primary.baseline}, margin {as_written(data.plan.margin)}. {shown}."
    )
    layers += [point, words]
    height = _ROW * len(rows) + 20
    return canvas.figure(f"{primary.arm} against {primary.baseline}", layers, height, alt_text, wide=True)


def _row(data: StudyData, claim: Claim) -> dict[str, Any] | None:
    """A claim as a row of the chart; before the first look the running estimate, without an interval."""
    value = claim.difference.value if claim.difference else claim.running
    if value is None:
        return None
    low, high = (claim.difference.low, claim.difference.high) if claim.difference else (None, None)
    if claim.load_point is None:
        only = len(data.plan.load_points) == 1
        label = _two_lines(data, 0) if only else f"all {len(data.plan.load_points)} load points,|mean (primary)"
        name = data.plan.load_points[0].label if only else "mean over all load points"
    else:
        label, name = _two_lines(data, claim.load_point), data.plan.load_points[claim.load_point].label
    label, name = label + in_regime(claim).replace(", ", "|"), name + in_regime(claim)
    interval = f" ({interval_text(claim.difference, sign=True)})" if claim.difference and low is not None else ""
    return {
        "label": label,
        "claim": name,
        "value": value,
        "low": low,
        "high": high,
        "verdict": claim.verdict,
        "blocks": claim.blocks,
        "text": f"{percent(value, sign=True)}{interval}",
    }


def _two_lines(data: StudyData, point: int) -> str:
    workload, _, rest = data.plan.load_points[point].label.partition(", ")
    return f"{workload},|{rest}"
