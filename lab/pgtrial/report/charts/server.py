"""What servers did over the seconds of a trial: sessions by wait event, the host's work, and the provider's metrics."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from pgtrial.model.records.plan import LoadPoint
from pgtrial.report.charts.parts import Canvas, Figure
from pgtrial.report.charts.seconds import Line, bin_width, small_lines, stacked
from pgtrial.report.data import StudyData
from pgtrial.report.series import (
    CPU,
    CPU_MODES,
    MB,
    OTHER,
    active_sessions,
    events_shown,
    host_series,
    provider_metrics_of,
    provider_series,
    provider_unit,
)

_LEGEND_COLUMNS = 3
"""The names of wait events are long, and two charts stand side by side."""


def wait_charts(data: StudyData) -> list[Figure]:
    """The mean of an arm's trials; the warm-up lies left of zero."""
    if not data.waits:
        return []
    events = events_shown(data)
    return [figure for point in data.plan.load_points for figure in _wait_charts_at(data, point, events)]


def _wait_charts_at(data: StudyData, point: LoadPoint, events: list[str]) -> list[Figure]:
    step = bin_width(data)
    loads = {arm: active_sessions(data, point, arm, step) for arm in data.plan.arms}
    loads = {arm: load for arm, load in loads.items() if not load.is_empty()}
    totals = [load.group_by("second").agg(pl.col("sessions").sum())["sessions"].max() for load in loads.values()]
    most = max((float(str(total)) for total in totals), default=0.0)
    return [_wait_chart(arm, point, load, events, most) for arm, load in loads.items()]


def _wait_chart(arm: str, point: LoadPoint, load: pl.DataFrame, events: list[str], most: float) -> Figure:
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
    summary = ", ".join(f"{event} {sum(parts[event]) / len(seconds):.1f}" for event in largest)
    title = f"{arm}: {point.label}"
    text = f"Active sessions by wait event, {title}; on average {summary}."
    return canvas.figure(title, layers, 180, text, "active sessions")


def _colours(events: list[str]) -> dict[str, str]:
    names = {CPU: "--wait-cpu", OTHER: "--wait-other"}
    return {event: names.get(event, f"--wait-{place}") for place, event in enumerate(events)}


@dataclass(frozen=True)
class _Quantity:
    title: str
    unit: str
    source: str
    name: str
    factor: float
    least: float
    """Drawn where some arm reaches it."""


_QUANTITIES = (
    _Quantity("Device reads", "MB/s", "device", "read_bytes", MB, 0.1),
    _Quantity("Device writes", "MB/s", "device", "written_bytes", MB, 0.1),
    _Quantity("Memory to be written", "MB dirty", "memory", "dirty_bytes", MB, 10.0),
    _Quantity("Some process waited for a CPU", "% of the time", "pressure", "cpu_some_s", 100.0, 5.0),
    _Quantity("Some process waited for I/O", "% of the time", "pressure", "io_some_s", 100.0, 5.0),
    _Quantity("Some process waited for memory", "% of the time", "pressure", "memory_some_s", 100.0, 1.0),
)


def work_charts(data: StudyData) -> list[Figure]:
    """The mean of an arm's trials; none if the host was not observed."""
    if not data.observed:
        return []
    step = bin_width(data)
    return [
        figure
        for point in data.plan.load_points
        for figure in (*_cpu(data, point, step), *_quantities(data, point, step))
    ]


def _quantities(data: StudyData, point: LoadPoint, step: int) -> list[Figure]:
    figures = []
    for quantity in _QUANTITIES:
        lines = {arm: _host_line(data, point, arm, quantity, step) for arm in data.plan.arms}
        known = {arm: line for arm, line in lines.items() if line}
        if any(value >= quantity.least for line in known.values() for _, value in line):
            figures.append(small_lines(f"{quantity.title}: {point.label}", quantity.unit, data.plan.arms, known))
    return figures


def _host_line(data: StudyData, point: LoadPoint, arm: str, quantity: _Quantity, step: int) -> Line:
    """The quantity in every bin in which its source was observed."""
    seen = host_series(data, point, arm, quantity.source, step)
    values = dict(seen.filter(pl.col("name") == quantity.name).select("second", "value").iter_rows())
    return [(second, quantity.factor * values.get(second, 0.0)) for second in sorted(set(seen["second"]))]


def _cpu(data: StudyData, point: LoadPoint, step: int) -> list[Figure]:
    """One stacked chart for each arm, on one scale."""
    seen = {arm: host_series(data, point, arm, "cpu", step) for arm in data.plan.arms}
    modes = {arm: _by_mode(frame) for arm, frame in seen.items() if not frame.is_empty()}
    most = max((max(map(sum, zip(*rows.values(), strict=True))) for _, rows in modes.values()), default=0.0)
    return [_cpu_chart(arm, point, seconds, rows, most) for arm, (seconds, rows) in modes.items()]


def _by_mode(frame: pl.DataFrame) -> tuple[list[int], dict[str, list[float]]]:
    """The seconds, and for each mode CPUs at every one of them."""
    seconds = sorted(set(frame["second"]))
    rows = {}
    for mode, names in CPU_MODES.items():
        sums = frame.filter(pl.col("name").is_in(names)).group_by("second").agg(pl.col("value").sum())
        values = dict(sums.iter_rows())
        rows[mode] = [round(values.get(second, 0.0), 3) for second in seconds]
    return seconds, rows


def _cpu_chart(arm: str, point: LoadPoint, seconds: list[int], modes: dict[str, list[float]], most: float) -> Figure:
    parts = {mode: values for mode, values in modes.items() if any(values)}
    colours = {mode: f"--wait-{place + 1}" for place, mode in enumerate(modes)}
    canvas = Canvas()
    layers = stacked(canvas, seconds, parts, colours, most, unit="CPUs")
    summary = ", ".join(f"{mode} {sum(values) / len(seconds):.2f}" for mode, values in parts.items())
    title = f"CPU, {arm}: {point.label}"
    text = f"CPUs of the host by what they did, {title}; on average {summary}."
    return canvas.figure(title, layers, 130, text, "CPUs at work")


_MOST_CHARTS = 16
"""Of all load points together, but two for each at least; the table has all."""


def provider_charts(data: StudyData) -> list[Figure]:
    """The mean of an arm's trials, a chart per metric; the metrics that limit a server come first."""
    spans = [int(span) for frame in data.provider.values() for span in frame["span_s"].unique()]
    if not spans:
        return []
    span = max(spans)
    step = bin_width(data, span)
    points = data.plan.load_points
    shown = provider_metrics_of(data)[: max(2, _MOST_CHARTS // len(points))]
    figures = []
    for point in points:
        series = {arm: provider_series(data, point, arm, step) for arm in data.plan.arms}
        for metric in shown:
            lines = {arm: _provider_line(frame, metric, step) for arm, frame in series.items()}
            known = {arm: line for arm, line in lines.items() if line}
            if known:
                title = f"{metric}: {point.label}"
                unit = provider_unit(metric)
                figures.append(small_lines(title, unit, data.plan.arms, known, interpolate="step-after"))
    return figures


def _provider_line(series: pl.DataFrame, metric: str, step: int) -> Line:
    """The metric's values; the last one is repeated at the end of its time."""
    line = list(series.filter(pl.col("name") == metric).select("second", "value").iter_rows())
    return [*line, *((second + step, value) for second, value in line[-1:])]
