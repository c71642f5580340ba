"""The canaries of a study one after another, each probe against its own median; disturbed blocks are marked."""

from __future__ import annotations

from statistics import median
from typing import Any

import altair as alt

from pgtrial.report.charts.parts import ZERO_LABEL, Canvas, Figure, arm_colour, arm_dash, arm_shape, numbered
from pgtrial.report.data import StudyData
from pgtrial.statistics.canaries import PROBES, judgements

NAMES = {"cpu_per_s": "CPU loop", "flushes_per_s": "flush probe", "select1_per_s": "SELECT 1 loop"}


def canary_chart(data: StudyData) -> list[Figure]:
    """One chart; none for a study without canaries."""
    rows = [row for probe in PROBES for row in _rows(data, probe)]
    if not rows:
        return []
    marked: list[dict[str, Any]] = [
        {
            "from": each.before + 1,
            "to": canary.number + 1,
            "label": f"block {each.block + 1} {'void' if each.outcome == 'void' else 'noisy'}",
        }
        for canary in data.canaries
        if (each := canary.judged) is not None and each.outcome != "kept"
    ]
    names = [NAMES[probe] for probe in PROBES if any(row["probe"] == NAMES[probe] for row in rows)]
    numbers = sorted({row["canary"] for row in rows})
    y = alt.Y("change:Q", title=None, axis=alt.Axis(format="+.0%", labelExpr=ZERO_LABEL), scale=alt.Scale(zero=True))
    tooltip = ["canary:Q", "probe:N", "value:N", alt.Tooltip("change:Q", format="+.1%", title="against the median"),
               "taken:N"]  # fmt: skip
    canvas = Canvas()
    base = canvas.chart(rows).encode(x=numbered("canary:Q", "canary", numbers), y=y, color=arm_colour(names, "probe:N"))
    spans = canvas.chart(marked)
    words = spans.transform_calculate(middle="(datum.from + datum.to) / 2")
    layers: list[Any] = [
        spans.mark_rect(color="--band", opacity=1).encode(x="from:Q", x2="to:Q"),
        canvas.chart([{"zero": 0}]).mark_rule(color="--soft").encode(y="zero:Q"),
        words.mark_text(color="--soft", fontSize=11, baseline="bottom", dy=-2).encode(
            x="middle:Q", y=alt.value(0), text="label:N"
        ),
        base.mark_line(strokeWidth=1.5, opacity=0.6).encode(strokeDash=arm_dash(names, "probe:N")),
        base.mark_point(filled=True, size=60, opacity=1).encode(shape=arm_shape(names, "probe:N"), tooltip=tooltip),
    ]
    widest = max(rows, key=lambda row: abs(row["change"]))
    alt_text = (
        f"{len(data.canaries)} canaries, each probe against its median; the widest deviation is "
        f"{widest['change']:+.1%}, {widest['probe']} of canary {widest['canary']}. "
        f"Disturbed: {', '.join(each['label'] for each in marked) or 'no block'}; "
        f"{len(judgements(data.canaries))} blocks were judged."
    )
    return [canvas.figure("Canaries", layers, 220, alt_text, "against the median", wide=True)]


def _rows(data: StudyData, probe: str) -> list[dict[str, Any]]:
    known = [(canary, value) for canary in data.canaries if (value := getattr(canary.reading, probe)) is not None]
    usual = median(value for _, value in known) if known else 0
    return [
        {
            "canary": canary.number + 1,
            "probe": NAMES[probe],
            "change": value / usual - 1,
            "value": f"{value:,.0f} {PROBES[probe]}",
            "taken": canary.reading.taken.replace("T", " ")[:19],
        }
        for canary, value in known
        if usual
    ]
