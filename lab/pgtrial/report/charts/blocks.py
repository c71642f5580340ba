"""One mark per block, the unit of analysis; its shape shows which arm ran first."""

from __future__ import annotations

import math
from typing import Any

import altair as alt

from pgtrial.model.records.results import BlockRatio, Claim
from pgtrial.model.units import percent
from pgtrial.report.charts.parts import ZERO_LABEL, Canvas, Figure, numbered
from pgtrial.report.data import StudyData
from pgtrial.report.words import in_regime


def block_charts(data: StudyData) -> list[Figure]:
    """One chart per arm against the baseline, with the blocks of one claim; the reader selects the claim."""
    return [figure for claim in data.result.primary if (figure := _figure(data, claim)) is not None]


def _figure(data: StudyData, primary: Claim) -> Figure | None:
    whole = [primary, *data.result.claims(primary.arm)]
    claims = [part for claim in (whole if len(data.plan.load_points) > 1 else whole[1:]) for part in claim.read]
    several = len(claims) > 1
    rows = [row for claim in claims for row in _rows(data, claim)]
    if not rows:
        return None
    names = list(dict.fromkeys(row["claim"] for row in rows))
    chosen = alt.param(
        name="claim", value=names[0], bind=alt.binding_select(options=names, name="Show ") if several else alt.Undefined
    )
    of_chosen = "datum.claim === claim"
    y = alt.Y("value:Q", title=None, axis=alt.Axis(format="+.1~%", labelExpr=ZERO_LABEL), scale=alt.Scale(zero=True))
    blocks = sorted({row["block"] for row in rows})
    orders = list(dict.fromkeys(row["order"] for row in rows))
    canvas = Canvas()
    dot = (
        canvas.chart(rows)
        .transform_filter(of_chosen)
        .mark_point(size=90, opacity=1, color="--accent", fill="--accent")
        .encode(
            x=numbered("block:Q", primary.unit, blocks),
            y=y,
            shape=alt.Shape(
                "order:N", title=None, sort=orders, legend=alt.Legend(symbolFillColor="transparent", labelLimit=320)
            ),
            fillOpacity=alt.FillOpacity("fill:Q", scale=None, legend=None),
            tooltip=["block:Q", alt.Tooltip("text:N", title="difference"), "order:N", "counted:N"],
        )
        .add_params(chosen)
    )
    zero = canvas.chart([{"zero": 0}]).mark_rule(color="--soft").encode(y="zero:Q")
    layers: list[Any] = [zero]
    intervals = [row for claim in claims if (row := _interval(data, claim)) is not None]
    if intervals:
        base = canvas.chart(intervals).transform_filter(of_chosen)
        layers.insert(0, base.mark_rect(color="--band", opacity=1).encode(y=alt.Y("low:Q", title=None), y2="high:Q"))
        layers.append(base.mark_rule(color="--accent", opacity=0.55, strokeWidth=1.5).encode(y="value:Q"))
    shown = ", ".join(row["text"] for row in rows if row["claim"] == names[0])
    alt_text = (
        f"Difference of {primary.arm} against {primary.baseline} {primary.unit} by {primary.unit}, {names[0]}: {shown}."
    )
    title = f"{primary.arm} against {primary.baseline}"
    return canvas.figure(title, [*layers, dot], 240, alt_text, "difference")


def _name(data: StudyData, claim: Claim) -> str:
    if claim.load_point is None:
        return f"mean over all load points{in_regime(claim)}"
    return data.plan.load_points[claim.load_point].label + in_regime(claim)


def _rows(data: StudyData, claim: Claim) -> list[dict[str, Any]]:
    return [
        {
            "claim": _name(data, claim),
            "block": ratio.block + 1,
            "value": math.expm1(ratio.log_ratio),
            "text": percent(math.expm1(ratio.log_ratio), sign=True),
            "order": _order(data, claim, ratio),
            "counted": "yes" if ratio.counted else "no",
            "fill": float(ratio.counted),
        }
        for ratio in claim.ratios
        if ratio.log_ratio is not None
    ]


def _order(data: StudyData, claim: Claim, ratio: BlockRatio) -> str:
    pair = [arm for arm in ratio.order if arm in (claim.arm, claim.baseline)]
    if claim.unit == "deployment":
        return "mean over its blocks"
    did = "ran" if data.plan.interleaving is None else "started"
    return f"{pair[0]} {did} first" if pair else "order drawn at each load point"


def _interval(data: StudyData, claim: Claim) -> dict[str, Any] | None:
    found = claim.difference
    if found is None or found.low is None:
        return None
    return {"claim": _name(data, claim), "low": found.low, "value": found.value, "high": found.high}
