"""Charts that compare published figures with this study: ratios of the arms, and throughput over clients if both
studies have it.

The marks of published figures are hollow and in a quiet colour; the marks of this study are filled.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from pgtrial.model.published import Figure as PublishedFigure
from pgtrial.report.charts.levels import CLIENTS, Readings, cells, horizontal, lines, readings
from pgtrial.report.charts.parts import Canvas, Figure, log_ticks, row_axis
from pgtrial.report.charts.vega import channel
from pgtrial.report.data import StudyData
from pgtrial.report.published import Contrast, beside, published_text, ratio_text

_ROW = 58
_THEIRS, _OURS = "published", "this study"
_SHAPES = {_THEIRS: "diamond", _OURS: "circle"}
_LABEL = "slice(split(datum.label, '|'), 1)"
"""The Vega expression for the lines of a row's label. The text before the first bar is not shown; it distinguishes rows
with equal labels."""

_NARROW = 1.5
"""If the largest ratio is less than this factor above the smallest one, Vega chooses the ticks of the axis. Otherwise
the ticks are 1, 2, 5, 10 and so on."""


def published_charts(data: StudyData) -> list[Figure]:
    """Returns one chart with all ratios, and charts of each published figure that is over the number of clients or over
    minutes. Over clients there is a chart with the throughput of both studies for each scale and rate of the figure's
    workload."""
    both = beside(data)
    if both is None:
        return []
    figures = [_ratios(both.contrasts)] if both.contrasts else []
    for published in both.published.figures:
        if published.over == "clients" and published.per_second is not None:
            figures += _over_clients(data, published, published.per_second)
        elif published.over == "minute":
            figures.append(_over_minutes(published))
    return figures


def _ratios(contrasts: list[Contrast]) -> Figure:
    rows = _rows(contrasts)
    reach = [value for row in rows for value in (row["low"], row["value"], row["high"]) if value] + [1.0]
    low, high = min(reach), max(reach)
    is_wide = high / low >= _NARROW
    pad = (high / low) ** 0.08
    low, high = low / pad, high * pad
    ticks = {"values": [tick for tick in log_ticks(low, high) if low <= tick <= high]} if is_wide else {}
    x = partial(
        channel,
        title="times as fast as the baseline",
        scale={"type": "log", "domain": [low, high], "nice": False},
        axis={"format": ".3~f", "labelExpr": "datum.label && datum.label + 'x'", **ticks, "tickCount": 5},
    )
    y = row_axis("row:N", rows, labelExpr=_LABEL, labelLimit=210, labelPadding=10)
    shapes = {"domain": list(_SHAPES), "range": list(_SHAPES.values())}
    shape = channel("who:N", title=None, scale=shapes, legend={"symbolFillColor": "transparent"})
    tooltip = ["who:N", channel("text:N", title="ratio"), channel("what:N", title="arms")]
    encoded = {"x": x("value:Q"), "y": y, "shape": shape, "tooltip": tooltip}
    canvas = Canvas()
    theirs, ours = (canvas.chart([row for row in rows if row["who"] == who]) for who in (_THEIRS, _OURS))
    layers: list[Any] = [
        canvas.chart([{"one": 1}]).mark("rule", color="--soft").encode(x=x("one:Q")),
        *canvas.whiskers(rows, x, y),
        theirs.mark("point", size=120, opacity=1, strokeWidth=2, color="--soft").encode(**encoded),
        ours.mark("point", size=120, opacity=1, filled=True, color="--accent").encode(**encoded),
        canvas.chart(rows)
        .mark("text", dy=-13, fontSize=11, color="--soft")
        .encode(x=x("value:Q"), y=y, text="label:N"),
    ]
    summary = "; ".join(f"{row['what']}: {row['who']} {row['text']}" for row in rows)
    alt_text = f"How many times as fast one arm is as another, published and in this study. {summary}."
    height = _ROW * len(rows) + 20
    return canvas.figure("How far the arms are apart", layers, height, alt_text, wide=True)


def _rows(contrasts: list[Contrast]) -> list[dict[str, Any]]:
    """Returns the rows of the chart. Each published pair of arms has a row with its published ratio, followed by rows
    with the ratios that this study measured for the same pair."""
    rows: dict[str, dict[str, Any]] = {}
    for contrast in contrasts:
        where = ", ".join(part for part in (contrast.figure, contrast.at) if part)
        key = f"{contrast.series} /|{contrast.baseline}|{where}"
        rows[key] = {
            "row": f"|{key}",
            "who": _THEIRS,
            "value": contrast.published,
            "low": None,
            "high": None,
            "label": published_text(contrast),
            "text": published_text(contrast),
            "what": f"{contrast.series} / {contrast.baseline}",
        }
        ours = contrast.ours
        if ours is not None and ours.value is not None:
            pair = f"{ours.arm} / {ours.baseline}"
            rows[f"{key}|{pair}|{ours.where}"] = {
                "row": f"{len(rows)}|{pair}|{ours.where}",
                "who": _OURS,
                "value": ours.value,
                "low": ours.low,
                "high": ours.high,
                "label": ratio_text(ours).partition(" ")[0],
                "text": ratio_text(ours),
                "what": f"{pair} ({ours.where})",
            }
    return list(rows.values())


def _over_clients(data: StudyData, published: PublishedFigure, per_second: float) -> list[Figure]:
    """Returns a chart for each scale and rate of the workload of a published figure."""
    theirs = [
        {"place": point.at, "tps": point.value * per_second, "series": series.name, "exact": series.exact}
        for series in published.series
        for point in series.points
    ]
    figures = []
    for (workload, scale, _), inside in cells(data, lambda point: (point.workload, point.scale, point.rate)).items():
        ours = readings(data, inside, CLIENTS)
        if workload == published.workload and ours.levels:
            figures.append(_levels(f"{published.title}; here at scale {scale}", theirs, ours))
    return figures


def _levels(title: str, theirs: list[dict[str, Any]], ours: Readings) -> Figure:
    everywhere = [row for row in theirs if row["place"] is None]
    somewhere = [row for row in theirs if row["place"] is not None]
    positions = sorted({*ours.positions, *(row["place"] for row in somewhere)})
    canvas = Canvas()
    layers: list[Any] = lines(canvas, ours, positions)
    y = channel("tps:Q", title=None)
    tooltip: list[Any] = ["series:N", channel("tps:Q", format=",.0f", title="published tps"), "exact:N"]
    if everywhere:
        level = canvas.chart(everywhere).encode(y=y, tooltip=tooltip)
        words = level.mark("text", color="--soft", align="left", dy=-7, fontSize=11)
        layers.append(level.mark("rule", color="--soft", strokeDash=[5, 4], strokeWidth=1.5))
        layers.append(words.encode(x={"value": 4}, text="series:N"))
    if somewhere:
        point = canvas.chart(somewhere).encode(x=horizontal(CLIENTS, positions), y=y, tooltip=tooltip)
        layers.append(point.mark("point", shape="diamond", size=110, strokeWidth=2, color="--soft", opacity=1))
        layers.append(point.mark("text", color="--soft", align="right", dx=-11, fontSize=11).encode(text="series:N"))
    summary = "; ".join(f"{row['series']} {row['tps']:,.0f}" for row in theirs)
    alt_text = f"{title}, transactions per second. Published: {summary}. This study: {ours.in_words()}."
    return canvas.figure(title, layers, 280, alt_text, "tps, two machines")


def _over_minutes(published: PublishedFigure) -> Figure:
    rows = [
        {"minute": point.at, "value": point.value, "series": series.name}
        for series in published.series
        for point in series.points
    ]
    canvas = Canvas()
    base = canvas.chart(rows).encode(
        x=channel("minute:Q", title="minute", axis={"grid": False, "tickMinStep": 1}),
        y=channel("value:Q", title=None, scale={"zero": True}, axis={"format": "~s"}),
        detail="series:N",
    )
    value = channel("value:Q", format=",.1f", title=f"published {published.unit}")
    point = base.mark("point", shape="diamond", size=80, strokeWidth=2, color="--soft", opacity=1)
    layers = [
        base.mark("line", color="--soft", strokeWidth=1.5, strokeDash=[5, 4]),
        point.encode(tooltip=["series:N", "minute:Q", value]),
    ]
    summary = ", ".join(f"{row['value']:,.10g}" for row in rows)
    alt_text = f"{published.title}, {published.unit}, as published: {summary}. {published.note}"
    return canvas.figure(published.title, layers, 220, alt_text, f"{published.unit}, as published")
