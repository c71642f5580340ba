"""Charts of differences from the baseline with their intervals: of the speed in comparison with the margin, of the
speed block by block, and of the costs (such as CPU time or WAL)."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from pgtrial.model.records.claims import BlockRatio, Claim
from pgtrial.model.records.results import Cost
from pgtrial.model.units import change
from pgtrial.report.charts.intervals import bounds_of, interval_axis, interval_chart, interval_row
from pgtrial.report.charts.parts import ZERO_LABEL, Canvas, Figure, log_ticks, numbered, row_axis
from pgtrial.report.charts.vega import channel
from pgtrial.report.data import StudyData
from pgtrial.report.words import cost_text, in_regime, is_wide, measure_text, side_of
from pgtrial.verdict.declared import primary_metric
from pgtrial.verdict.metrics.costs import clearly

_COST_ROW = 22
"""The height in pixels of a row in a chart of costs."""


def forest(data: StudyData) -> list[Figure]:
    """Returns one chart of intervals for each comparison of an arm with the baseline. The row at the top is the primary
    claim, which decides the verdict, and the comparisons at the single load points follow below it."""
    return [figure for claim in data.result.primary if (figure := _forest(data, claim)) is not None]


def block_charts(data: StudyData) -> list[Figure]:
    """Returns one chart for each comparison of an arm with the baseline. It has a mark for each block at the difference
    that this block alone shows, and the shape of the mark shows which arm ran first in the block.

    If there are several load points, the reader of the page selects which of them the chart shows, or their mean.
    """
    return [figure for claim in data.result.primary if (figure := _blocks(data, claim)) is not None]


def cost_charts(data: StudyData) -> list[Figure]:
    """Returns one chart for each arm except the baseline. It shows the costs of a transaction, such as CPU time and
    WAL, relative to the baseline, with the largest change at the top. If there are several load points, it shows the
    mean over them."""
    arms = [arm for arm in data.plan.arms if arm != data.plan.baseline]
    return [figure for arm in arms if (figure := _costs(data, arm)) is not None]


def _forest(data: StudyData, primary: Claim) -> Figure | None:
    several = len(data.labels) > 1
    claims = [part for claim in [primary, *(data.result.claims(primary.arm) if several else [])] for part in claim.read]
    rows = [row for claim in claims if (row := _row(data, claim)) is not None]
    if not rows:
        return None
    margin = data.plan.margin
    bounds = bounds_of(rows)
    reach = max(abs(value) for value in [*bounds, margin * 1.6])
    low, high = min(-0.15 * reach, *bounds), max(0.15 * reach, *bounds)
    pad = 0.06 * (high - low)
    title = f"{primary.arm} against {primary.baseline}"
    measure = measure_text(data.plan)
    speed = f"speed by {measure}" if measure.startswith(("mean", "time of the job")) else measure
    x = interval_axis(f"{speed} of {title}", low - pad, high + pad, reach)
    return interval_chart(title, rows, x, margin, f"Difference of {title}")


def _row(data: StudyData, claim: Claim) -> dict[str, Any] | None:
    """Returns the row of the chart for a claim, which is the comparison of an arm with the baseline at one load point
    or over all of them."""
    side = side_of(claim)
    measured_at = _load_point(data, claim) or f"{side or f'all {len(data.labels)} load points'}, mean (primary)"
    regime = "" if side else in_regime(claim).replace(", ", "|")
    return interval_row(claim, measured_at.replace(", ", ",|", 1) + regime, _name(data, claim))


def _load_point(data: StudyData, claim: Claim) -> str | None:
    """Returns the label of the load point that a claim (a comparison of an arm with the baseline) is about. Returns
    None if the claim is about the mean over several load points."""
    return None if claim.load_point is None and len(data.labels) > 1 else data.labels[claim.load_point or 0]


def _name(data: StudyData, claim: Claim) -> str:
    return side_of(claim) or (_load_point(data, claim) or "mean over all load points") + in_regime(claim)


def _blocks(data: StudyData, primary: Claim) -> Figure | None:
    whole = [primary, *data.result.claims(primary.arm)]
    claims = [part for claim in (whole if len(data.labels) > 1 else whole[1:]) for part in claim.read]
    rows = [row for claim in claims for row in _ratios(data, claim)]
    if not rows:
        return None
    names = list(dict.fromkeys(row["claim"] for row in rows))
    select = {"input": "select", "options": names, "name": "Show "}
    chosen = {"name": "claim", "value": names[0], **({"bind": select} if len(claims) > 1 else {})}
    of_chosen = "datum.claim === claim"
    y = channel("value:Q", title=None, axis={"format": "+.1~%", "labelExpr": ZERO_LABEL}, scale={"zero": True})
    orders = list(dict.fromkeys(row["order"] for row in rows))
    legend = {"symbolFillColor": "transparent", "labelLimit": 320}
    canvas = Canvas()
    dot = (
        canvas.chart(rows)
        .transform({"filter": of_chosen})
        .mark("point", size=90, opacity=1, color="--accent", fill="--accent")
        .encode(
            x=numbered("block:Q", primary.unit, sorted({row["block"] for row in rows})),
            y=y,
            shape=channel("order:N", title=None, sort=orders, legend=legend),
            fillOpacity=channel("fill:Q", scale=None, legend=None),
            tooltip=["block:Q", channel("text:N", title="difference"), "order:N", "counted:N"],
        )
        .choice(chosen)
    )
    zero = canvas.chart([{"zero": 0}]).mark("rule", color="--soft").encode(y="zero:Q")
    intervals = [
        {"claim": _name(data, claim), **dict(claim.difference)}
        for claim in claims
        if claim.difference is not None and None not in (claim.difference.low, claim.difference.high)
    ]
    layers: list[Any] = [zero]
    if intervals:
        base = canvas.chart(intervals).transform({"filter": of_chosen})
        band = base.mark("rect", color="--band", opacity=1).encode(y=channel("low:Q", title=None), y2="high:Q")
        estimate = base.mark("rule", color="--accent", opacity=0.55, strokeWidth=1.5).encode(y="value:Q")
        layers = [band, zero, estimate]
    shown = ", ".join(row["text"] for row in rows if row["claim"] == names[0])
    title = f"{primary.arm} against {primary.baseline}"
    alt_text = f"Difference of {title} {primary.unit} by {primary.unit}, {names[0]}: {shown}."
    return canvas.figure(title, [*layers, dot], 240, alt_text, "difference")


def _ratios(data: StudyData, claim: Claim) -> list[dict[str, Any]]:
    shown = primary_metric(data.plan).scale.shown
    return [
        {
            "claim": _name(data, claim),
            "block": ratio.block + 1,
            "value": shown(ratio.log_ratio),
            "text": change(shown(ratio.log_ratio)),
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


def _costs(data: StudyData, arm: str) -> Figure | None:
    point = 0 if len(data.labels) == 1 else None
    costs = [cost for cost in data.result.costs if cost.arm == arm and cost.load_point == point]
    rows = [row for cost in costs if (row := _cost_row(cost, data.plan.margin)) is not None]
    rows.sort(key=lambda row: -abs(math.log(row["value"])))
    if not rows:
        return None
    low, high = min(row["low"] for row in rows), max(row["high"] for row in rows)
    low, high = min(low, 0.9) / 1.05, max(high, 1.1) * 1.05
    ticks = [tick for tick in log_ticks(low, high) if low <= tick <= high]
    x = partial(
        channel,
        title=f"cost of a transaction, {arm} / {data.plan.baseline}",
        scale={"type": "log", "domain": [low, high], "nice": False},
        axis={"values": ticks, "labelExpr": "datum.value === 1 ? 'same' : 'x ' + datum.value"},
    )
    y = row_axis("what:N", rows, labelLimit=190)
    colour = channel("colour:N", scale=None)
    tooltip = [channel("what:N", title="cost"), channel("text:N", title="difference"), "blocks:Q"]
    canvas = Canvas()
    estimate = canvas.chart(rows).mark("point", filled=True, size=90, opacity=1)
    layers: list[Any] = [
        canvas.chart([{"same": 1}]).mark("rule", color="--soft").encode(x=x("same:Q")),
        *canvas.whiskers(rows, x, y, color=colour),
        estimate.encode(x=x("value:Q"), y=y, color=colour, tooltip=tooltip),
    ]
    title = f"{arm} against {data.plan.baseline}"
    words = "; ".join(f"{row['what']} {row['text']}" for row in rows)
    alt_text = f"Costs of a transaction of {title}, largest change first: {words}."
    return canvas.figure(title, layers, _COST_ROW * len(rows) + 30, alt_text, wide=True)


def _cost_row(cost: Cost, margin: float) -> dict[str, Any] | None:
    """Returns the row of the chart for a cost of a transaction, such as CPU time or WAL. Returns None if the difference
    from the baseline is not known well enough to be drawn."""
    difference = cost.difference
    if difference is None or difference.low is None or difference.high is None or is_wide(difference):
        return None
    return {
        "what": cost.what,
        "value": 1 + difference.value,
        "low": 1 + difference.low,
        "high": 1 + difference.high,
        "colour": "--accent" if clearly(cost, margin) else "--soft",
        "text": cost_text(cost),
        "blocks": cost.blocks,
    }
