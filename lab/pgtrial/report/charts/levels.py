"""Throughput as lines over a dimension of the load points, such as clients: median trials, and every trial."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import altair as alt

from pgtrial.model.records.plan import LoadPoint
from pgtrial.report.charts.parts import arm_colour, arm_dash, arm_shape
from pgtrial.report.data import StudyData


@dataclass(frozen=True)
class Over:
    """The dimension over which throughput is drawn."""

    title: str
    place: Callable[[LoadPoint], int]
    words: Callable[[int], str]
    """A place in words: `8 clients`."""
    label: str
    """Vega expression of a tick's label."""


CLIENTS = Over("clients", lambda point: point.clients, lambda n: f"{n} client{'s' if n != 1 else ''}", "datum.value")


@dataclass(frozen=True)
class Readings:
    """Rows for a chart: medians with their intervals, and single trials."""

    levels: list[dict[str, Any]]
    trials: list[dict[str, Any]]

    @property
    def places(self) -> list[int]:
        """The places of the levels, ascending."""
        return sorted({level["place"] for level in self.levels})

    def in_words(self) -> str:
        """The medians as text, for readers who cannot see the chart."""
        return "; ".join(
            f"{level['arm']} at {level['where']} {level['tps']:,.0f}"
            + (f" {level['regime']} the change" if level["regime"] != "whole trial" else "")
            for level in self.levels
        )


def readings(data: StudyData, inside: list[int], over: Over) -> Readings:
    """Levels and trials of these load points."""
    points = data.plan.load_points
    levels = [
        {
            "arm": level.arm,
            **_where(points[level.load_point], over),
            "regime": regime,
            "tps": spread.median,
            "low": spread.lowest if level.tps_low is None else level.tps_low,
            "high": spread.highest if level.tps_high is None else level.tps_high,
        }
        for level in data.result.levels
        if level.load_point in inside
        for regime, spread in (("whole trial", level.tps), ("before", level.tps_before), ("after", level.tps_after))
        if spread
    ]
    # the tps of these is an average across a change, and their levels are drawn
    changed = {(cell.arm, points[cell.load_point]) for cell in data.result.regimes if cell.changes}
    trials = [
        {"arm": t.arm, **_where(t.load_point, over), "tps": t.measured.tps, "trial": t.index + 1, "block": t.block + 1}
        for t in data.trials
        if t.measured
        and t.measured.transactions
        and points.index(t.load_point) in inside
        and (t.arm, t.load_point) not in changed
    ]
    return Readings(levels, trials)


def _where(point: LoadPoint, over: Over) -> dict[str, Any]:
    place = over.place(point)
    return {"place": place, "where": over.words(place)}


TRIAL = ["arm:N", alt.Tooltip("where:N", title="at"), "block:Q", "trial:Q", alt.Tooltip("tps:Q", format=",.0f")]
MEDIAN = [
    "arm:N",
    alt.Tooltip("where:N", title="at"),
    "regime:N",
    alt.Tooltip("tps:Q", format=",.0f", title="median tps"),
    alt.Tooltip("low:Q", format=",.0f", title="from"),
    alt.Tooltip("high:Q", format=",.0f", title="to"),
]


def lines(medians: alt.Chart, dots: alt.Chart, arms: list[str], over: Over, places: list[int]) -> list[alt.Chart]:
    """A line for each arm, the horizontal axis logarithmic with a tick at each of `places`."""
    x, y = horizontal(over, places), alt.Y("tps:Q", title=None, scale=alt.Scale(zero=True), axis=alt.Axis(format="~s"))
    base = medians.encode(x=x, color=arm_colour(arms))
    return [
        base.mark_line(strokeWidth=1.5).encode(y=y, strokeDash=arm_dash(arms), detail="regime:N"),
        dots.mark_circle(size=18, opacity=0.35).encode(x=x, y=y, color=arm_colour(arms), tooltip=TRIAL),
        base.mark_rule(strokeWidth=2).encode(y=alt.Y("low:Q", title=None), y2="high:Q"),
        base.mark_point(filled=True, size=90, opacity=1).encode(y=y, shape=arm_shape(arms), tooltip=MEDIAN),
    ]


def horizontal(over: Over, places: list[int]) -> alt.X:
    """The logarithmic axis of `lines`."""
    return alt.X(
        "place:Q",
        title=over.title,
        scale=alt.Scale(type="log", base=2, nice=False, padding=24),
        axis=alt.Axis(values=places, labelExpr=over.label, grid=False, labelOverlap=True),
    )
