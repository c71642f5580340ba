"""The canaries of a study one after another, each probe against its own median."""

from __future__ import annotations

from statistics import median
from typing import Any

from pgtrial.report.charts.parts import ZERO_LABEL, Canvas, Figure, arm_colour, arm_dash, arm_shape, numbered
from pgtrial.report.charts.vega import channel
from pgtrial.report.data import StudyData

PROBES = {
    "cpu_per_s": "MiB hashed a second",
    "flushes_per_s": "flushes a second",
    "select1_per_s": "transactions of SELECT 1 a second",
}
"""Fields of CanaryReading that are drawn, with their units."""
NAMES = {"cpu_per_s": "CPU loop", "flushes_per_s": "flush probe", "select1_per_s": "SELECT 1 loop"}


def canary_chart(data: StudyData) -> list[Figure]:
    """One chart; none for a study without canaries."""
    rows = [row for probe in PROBES for row in _rows(data, probe)]
    if not rows:
        return []
    names = [NAMES[probe] for probe in PROBES if any(row["probe"] == NAMES[probe] for row in rows)]
    numbers = sorted({row["canary"] for row in rows})
    y = channel("change:Q", title=None, axis={"format": "+.0%", "labelExpr": ZERO_LABEL}, scale={"zero": True})
    tooltip = ["canary:Q", "probe:N", "value:N", channel("change:Q", format="+.1%", title="against the median"),
               "taken:N"]  # fmt: skip
    canvas = Canvas()
    base = canvas.chart(rows).encode(x=numbered("canary:Q", "canary", numbers), y=y, color=arm_colour(names, "probe:N"))
    layers: list[Any] = [
        canvas.chart([{"zero": 0}]).mark("rule", color="--soft").encode(y="zero:Q"),
        base.mark("line", strokeWidth=1.5, opacity=0.6).encode(strokeDash=arm_dash(names, "probe:N")),
        base.mark("point", filled=True, size=60, opacity=1).encode(shape=arm_shape(names, "probe:N"), tooltip=tooltip),
    ]
    widest = max(rows, key=lambda row: abs(row["change"]))
    alt_text = (
        f"{len(data.canaries)} canaries, each probe against its median; the widest deviation is "
        f"{widest['change']:+.1%}, {widest['probe']} of canary {widest['canary']}."
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
