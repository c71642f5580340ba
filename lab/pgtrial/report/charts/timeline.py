"""Charts of every second of every trial, one for each load point. Thin lines are single trials, and thick lines are the
medians of the arms."""

from __future__ import annotations

import math
from typing import Any

from pgtrial.model.records.load_point import rate_unit
from pgtrial.report.charts.parts import SECONDS, Canvas, Figure, arm_colour, arm_dash, seconds_axis
from pgtrial.report.charts.vega import Channel, channel
from pgtrial.report.data import StudyData, whole_seconds

_MOST_POINTS = 150
"""A line has at most this number of points. Longer trials are averaged over several seconds, which keeps the page
small."""


def timelines(data: StudyData) -> list[Figure]:
    """Returns charts of the throughput in each second. The warm-up is left of zero. The reader of the page can select
    one block."""
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
    labels = ["all blocks", *(f"block {b}" for b in blocks)]
    select = {"input": "select", "options": [None, *blocks], "labels": labels, "name": "Show "}
    block = {"name": "block", "value": None, "bind": select}
    first, last = min(row["s"][0] for row in rows), max(row["s"][-1] for row in rows)
    x = seconds_axis(first, last)
    y = channel("tps:Q", title=None, scale={"zero": True}, axis={"format": "~s"})
    canvas, unit = Canvas(), rate_unit(data.plan.load_points)
    warmup = canvas.chart([{"from": first, "to": 0}] if first < 0 else []).mark("rect", color="--band", opacity=0.7)
    base = canvas.chart(rows).transform({"flatten": ["s", "tps"]})
    base = base.transform({"filter": "block === null || datum.block === block"})
    colour = arm_colour(arms)
    tooltip = ["arm:N", "block:Q", "trial:Q", "s:Q", channel("tps:Q", format=",.0f")]
    layers: list[Any] = [
        warmup.encode(x=channel("from:Q", title=SECONDS), x2="to:Q"),
        base.mark("line", strokeWidth=1, opacity=0.35)
        .encode(x=x, y=y, color=colour, detail="trial:N", tooltip=tooltip)
        .choice(block),
        base.transform({"aggregate": [{"op": "median", "field": "tps", "as": "tps"}], "groupby": ["arm", "s"]})
        .mark("line", strokeWidth=2.5)
        .encode(x=x, y=y, color=colour, strokeDash=arm_dash(arms)),
    ]
    levels = _levels(data, point)
    if levels:
        shown = (
            canvas.chart(levels)
            .transform({"filter": "block === datum.block"})
            .encode(color=colour, tooltip=_shown(unit))
        )
        level = shown.mark("rule", strokeWidth=3, opacity=0.9, clip=True)
        change = shown.transform({"filter": "datum.changed"}).mark("rule", strokeWidth=1.5, strokeDash=[2, 3])
        layers.append(level.encode(x=channel("from:Q", title=SECONDS), x2="to:Q", y="tps:Q"))
        layers.append(change.encode(x=channel("to:Q", title=SECONDS)))
    alt_text = (
        f"{unit} by second of {len(rows)} trials, {load_point.label}, from second {first} (warm-up) to {last}; "
        "the same numbers are in each trial's timeline.parquet."
    )
    medians = [row for row in levels if row["block"] is None]
    if medians:
        alt_text += " Levels: " + "; ".join(
            f"{row['arm']} {row['tps']:,.0f} from second {row['from']:.0f} to {row['to']:.0f}" for row in medians
        )
    return canvas.figure(load_point.label, layers, 220, alt_text, unit)


def _shown(unit: str) -> list[str | Channel]:
    """Returns the lines of the tooltip of a level, which is the median throughput in a part of a trial between two
    changes of speed."""
    return [
        "arm:N",
        channel("tps:Q", format=",.0f", title=f"level, {unit}"),
        channel("from:Q", format=".0f", title="from second"),
        channel("to:Q", format=".0f", title="to second"),
    ]


def _levels(data: StudyData, point: int) -> list[dict[str, Any]]:
    """Returns the rows of the chart for the levels, which are the parts of a trial with one speed, with the seconds at
    which they begin and end. If the speed of an arm changes within its trials, there are rows for the median trial,
    before and after the change, and rows for each trial whose speed was not the same all the time."""
    rows: list[dict[str, Any]] = []
    for cell in data.result.regimes:
        if cell.load_point != point:
            continue
        if cell.changes and cell.before and cell.changed_s:
            rows.append(_level(cell.arm, None, 0, cell.changed_s.median, cell.before.median, changed=True))
            if cell.after and cell.settled_s:
                end = data.measured_s
                rows.append(_level(cell.arm, None, cell.settled_s.median, end, cell.after.median, changed=False))
        for trial in cell.not_flat:
            parts = trial.regime.segments
            rows += [
                _level(cell.arm, trial.block + 1, part.start_s, part.end_s, part.tps, changed=part is not parts[-1])
                for part in parts
            ]
    return rows


def _level(arm: str, block: int | None, start: float, end: float, tps: float, *, changed: bool) -> dict[str, Any]:
    return {"arm": arm, "block": block, "from": start, "to": end, "tps": tps, "changed": changed}


def _thinned(rows: list[tuple[int, int]]) -> tuple[list[int], list[float]]:
    """Returns the seconds and the throughput of one trial, averaged so that the line has at most `_MOST_POINTS`
    points."""
    step = math.ceil(len(rows) / _MOST_POINTS) if rows else 1
    groups = [rows[i : i + step] for i in range(0, len(rows), step)]
    return [group[0][0] for group in groups], [round(sum(n for _, n in group) / len(group), 1) for group in groups]
