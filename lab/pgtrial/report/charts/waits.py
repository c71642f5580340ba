"""Database load by wait event over the seconds of a trial: one stacked chart per arm, one scale per load point."""

from __future__ import annotations

import polars as pl

from pgtrial.model.records.study import LoadPoint
from pgtrial.report.charts import Figure, chart
from pgtrial.report.charts.parts import Canvas
from pgtrial.report.charts.seconds import bin_width, stacked
from pgtrial.report.data import StudyData
from pgtrial.report.waits import CPU, OTHER, active_sessions, events_shown

_LEGEND_COLUMNS = 3
"""The names of wait events are long, and two charts stand side by side."""


@chart("server")
def wait_charts(data: StudyData) -> list[Figure]:
    """The mean of an arm's trials; the warm-up lies left of zero."""
    if not data.waits:
        return []
    events = events_shown(data)
    return [figure for point in data.plan.load_points for figure in _point(data, point, events)]


def _point(data: StudyData, point: LoadPoint, events: list[str]) -> list[Figure]:
    step = bin_width(data)
    loads = {arm: active_sessions(data, point, arm, step) for arm in data.plan.arms}
    loads = {arm: load for arm, load in loads.items() if not load.is_empty()}
    totals = [load.group_by("second").agg(pl.col("sessions").sum())["sessions"].max() for load in loads.values()]
    most = max((float(str(total)) for total in totals), default=0.0)
    return [_figure(arm, point, load, events, most) for arm, load in loads.items()]


def _figure(arm: str, point: LoadPoint, load: pl.DataFrame, events: list[str], most: float) -> Figure:
    seconds = sorted(set(load["second"].to_list()))
    parts: dict[str, list[float]] = {}
    for event in events:
        # OTHER is what has no name of its own
        named = load.filter(~pl.col("event").is_in(events) if event == OTHER else pl.col("event") == event)
        sums = dict(named.group_by("second").agg(pl.col("sessions").sum()).iter_rows())
        if sums:
            parts[event] = [round(sums.get(second, 0.0), 2) for second in seconds]
    canvas = Canvas()
    layers = stacked(canvas, seconds, parts, _colours(events), most, unit="active sessions", columns=_LEGEND_COLUMNS)
    largest = sorted(parts, key=lambda event: -sum(parts[event]))[:3]
    told = ", ".join(f"{event} {sum(parts[event]) / len(seconds):.1f}" for event in largest)
    title = f"{arm}: {point.label}"
    text = f"Active sessions by wait event, {title}; on average {told}."
    return Figure(title, text, canvas.finish(layers, 180, text), "active sessions")


def _colours(events: list[str]) -> dict[str, str]:
    names = {CPU: "--wait-cpu", OTHER: "--wait-other"}
    return {event: names.get(event, f"--wait-{place}") for place, event in enumerate(events)}
