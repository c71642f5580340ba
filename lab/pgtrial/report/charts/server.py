"""Charts of servers over the seconds of a trial: sessions by wait event, the activity of the host, and the metrics of a
cloud provider."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import polars as pl

from pgtrial.model.records.load_point import LoadPoint
from pgtrial.report.charts.parts import Canvas, Figure, arm_colour, arm_dash, seconds_axis, start_of_measuring
from pgtrial.report.charts.vega import channel
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

_MOST_BINS = 60
"""A chart divides the time into at most this number of bins, which keeps the page small."""

_LINES_HEIGHT = 130

Line = Sequence[tuple[int, float]]
"""The points of a line in ascending order. Each point is a second and a value."""


def wait_charts(data: StudyData) -> list[Figure]:
    """Returns charts of the active sessions by wait event, over the seconds of a trial, as the mean over an arm's
    trials. The warm-up is left of zero."""
    events = events_shown(data)
    names = {CPU: "--wait-cpu", OTHER: "--wait-other"}
    colours = {event: names.get(event, f"--wait-{index}") for index, event in enumerate(events)}
    # events that are not shown by their own name are counted as OTHER
    part = pl.when(pl.col("event").is_in(events)).then(pl.col("event")).otherwise(pl.lit(OTHER))
    step = _bin_width(data)
    figures = []
    for point in data.plan.load_points:
        loads = {arm: active_sessions(data, point, arm, step) for arm in data.plan.arms}
        parts = {arm: load.select("second", part=part, value="sessions") for arm, load in loads.items()}
        figures += _stacks(_WAITS, point, parts, colours)
    return figures


def work_charts(data: StudyData) -> list[Figure]:
    """Returns charts of the host's activity, such as CPU time and device reads, as the mean over an arm's trials. The
    result is empty if pgtrial did not record the activity of the host."""
    if not data.observed:
        return []
    step = _bin_width(data)
    return [
        figure
        for point in data.plan.load_points
        for figure in (*_cpu(data, point, step), *_quantities(data, point, step))
    ]


def _cpu(data: StudyData, point: LoadPoint, step: int) -> list[Figure]:
    modes = {name: mode for mode, names in CPU_MODES.items() for name in names}
    colours = {mode: f"--wait-{index + 1}" for index, mode in enumerate(CPU_MODES)}
    part = pl.col("name").replace_strict(modes, default=None)
    at_work = pl.when(part.is_not_null()).then(pl.col("value")).otherwise(0.0)
    modes_of = {arm: host_series(data, point, arm, "cpu", step) for arm in data.plan.arms}
    parts = {arm: frame.select("second", part=part, value=at_work) for arm, frame in modes_of.items()}
    return _stacks(_CPU, point, parts, colours)


@dataclass(frozen=True)
class _Stack:
    """The properties of a stacked chart, such as the chart of active sessions by wait event. The parts of such a chart
    add up to a total."""

    title: str
    """The beginning of the chart's title, before the arm and the load point."""
    text: str
    unit: str
    of_part: str
    """The unit of one part."""
    height: int
    legend: dict[str, Any]
    decimals: int
    """The number of decimals of the values. Means in the alternative text have one decimal less."""
    named_parts: int | None = None
    """The number of parts that the alternative text names, beginning with the largest. None: all parts in their
    order."""


# three columns in the legend, since the names of wait events are long and two charts are side by side
_WAITS = _Stack("", "Active sessions by wait event", "active sessions", "active sessions", 180, {"columns": 3}, 2, 3)
_CPU = _Stack("CPU, ", "CPUs of the host by what they did", "CPUs at work", "CPUs", 130, {}, 3)


def _stacks(
    look: _Stack, point: LoadPoint, arms: Mapping[str, pl.DataFrame], colours: Mapping[str, str]
) -> list[Figure]:
    """Returns a stacked chart for each arm for which there are observations, all with the same axes. `arms` has a frame
    for each arm, with the columns second, part and value.

    The parts are stacked in the order of `colours`. Parts that are not in `colours` are not drawn.
    """
    known = {arm: frame for arm, frame in arms.items() if not frame.is_empty()}
    totals = [frame.group_by("second").agg(pl.col("value").sum())["value"].max() for frame in known.values()]
    most = max((float(str(total)) for total in totals), default=0.0)
    times = [second for frame in known.values() for second in frame["second"]]
    axes = _Axes(min(times, default=0), max(times, default=0), most)
    return [_stack(look, f"{look.title}{arm}: {point.label}", known[arm], colours, axes) for arm in known]


@dataclass(frozen=True)
class _Axes:
    """The ranges of the axes that charts side by side have in common: the first and the last second, and the largest
    value."""

    first: int
    last: int
    most: float


def _stack(look: _Stack, title: str, frame: pl.DataFrame, colours: Mapping[str, str], axes: _Axes) -> Figure:
    wide = frame.pivot("part", index="second", values="value", aggregate_function="sum").fill_null(0.0).sort("second")
    seconds = wide["second"].to_list()
    parts = {part: [round(value, look.decimals) for value in wide[part]] for part in colours if part in wide.columns}
    rows: list[dict[str, Any]] = [
        {"part": part, "place": index, "s": seconds, "n": parts[part]}
        for index, part in enumerate(colours)
        if any(parts.get(part, []))
    ]
    scale = {"domain": list(colours), "range": list(colours.values())}
    canvas = Canvas()
    area = (
        canvas.chart(rows)
        .transform({"flatten": ["s", "n"]})
        .mark("area", opacity=0.85, line=False)
        .encode(
            x=seconds_axis(axes.first, axes.last),
            y=channel("n:Q", title=None, stack="zero", scale={"domain": [0, axes.most]}),
            color=channel("part:N", title=None, sort=None, scale=scale, legend=look.legend),
            order=channel("place:Q"),
            tooltip=["part:N", "s:Q", channel("n:Q", format=".2f", title=look.of_part)],
        )
    )
    means = [(row["part"], sum(row["n"]) / len(seconds)) for row in rows]
    if look.named_parts is not None:
        means = sorted(means, key=lambda mean: -mean[1])[: look.named_parts]
    summary = ", ".join(f"{part} {mean:.{look.decimals - 1}f}" for part, mean in means)
    layers = [area, *start_of_measuring(canvas, axes.first, axes.last)]
    text = f"{look.text}, {title}; on average {summary}."
    return canvas.figure(title, layers, look.height, text, look.unit)


_QUANTITIES = (
    ("Device reads", "MB/s", "device", "read_bytes", MB, 0.1),
    ("Device writes", "MB/s", "device", "written_bytes", MB, 0.1),
    ("Memory to be written", "MB dirty", "memory", "dirty_bytes", MB, 10.0),
    ("Some process waited for a CPU", "% of the time", "pressure", "cpu_some_s", 100.0, 5.0),
    ("Some process waited for I/O", "% of the time", "pressure", "io_some_s", 100.0, 5.0),
    ("Some process waited for memory", "% of the time", "pressure", "memory_some_s", 100.0, 1.0),
)
"""The quantities of the host's activity that are drawn. Each has a title, a unit, the source and the name of its
counter, the factor that converts the counter to the unit, and the smallest value that is worth a chart."""


def _quantities(data: StudyData, point: LoadPoint, step: int) -> list[Figure]:
    """Returns a chart for each quantity in _QUANTITIES, such as device reads, over the seconds of a trial. Times at
    which the quantity was not observed are left out."""
    figures = []
    for title, unit, source, name, factor, least in _QUANTITIES:
        value = pl.col("value").filter(pl.col("name") == name).sum() * factor
        series = {arm: host_series(data, point, arm, source, step) for arm in data.plan.arms}
        lines = {arm: frame.group_by("second").agg(value).sort("second").rows() for arm, frame in series.items()}
        figures += _lines(f"{title}: {point.label}", unit, lines, least=least)
    return figures


_MOST_CHARTS = 16
"""The largest number of charts over all load points together. Each load point has at least two charts even so. The
metrics without a chart are in the table, which has all of them."""


def provider_charts(data: StudyData) -> list[Figure]:
    """Returns a chart for each metric of the provider, as far as `_MOST_CHARTS` allows, with the mean over an arm's
    trials. The metrics that can limit a server come first."""
    spans = [int(span) for frame in data.provider.values() for span in frame["span_s"].unique()]
    if not spans:
        return []
    step = _bin_width(data, max(spans))
    points = data.plan.load_points
    shown = provider_metrics_of(data)[: max(2, _MOST_CHARTS // len(points))]
    figures = []
    for point in points:
        series = {arm: provider_series(data, point, arm, step) for arm in data.plan.arms}
        for metric in shown:
            lines = {arm: _provider_line(frame, metric, step) for arm, frame in series.items()}
            figures += _lines(f"{metric}: {point.label}", provider_unit(metric), lines, interpolate="step-after")
    return figures


def _provider_line(series: pl.DataFrame, metric: str, step: int) -> Line:
    """Returns the values of a metric as the points of a line. A value of a cloud provider holds for a span of time, so
    that the last value is repeated at the end of its span."""
    line = list(series.filter(pl.col("name") == metric).select("second", "value").iter_rows())
    return [*line, *((second + step, value) for second, value in line[-1:])]


def _bin_width(data: StudyData, multiple_of: int = 1) -> int:
    """Returns the length in seconds of the time spans (bins) over which charts average. It is a multiple of
    `multiple_of`."""
    if data.every_second:
        return multiple_of
    return multiple_of * math.ceil((data.plan.warmup_s + data.observed_s) / _MOST_BINS / multiple_of)


def _lines(
    title: str,
    unit: str,
    lines: Mapping[str, Line],
    *,
    least: float = -math.inf,
    interpolate: Literal["linear", "step-after"] = "linear",
) -> list[Figure]:
    """Returns one figure with a line for each arm. The result is empty if no arm reaches `least`. Arms without a line
    are left out, and the other arms keep their colours."""
    if not any(value >= least for line in lines.values() for _, value in line):
        return []
    known = {arm: line for arm, line in lines.items() if line}
    rows: list[dict[str, Any]] = [
        {"arm": arm, "s": [second for second, _ in line], "v": [float(f"{value:.4g}") for _, value in line]}
        for arm, line in known.items()
    ]
    first, last = min(row["s"][0] for row in rows), max(row["s"][-1] for row in rows)
    canvas = Canvas()
    drawn = (
        canvas.chart(rows)
        .transform({"flatten": ["s", "v"]})
        .mark("line", strokeWidth=2, interpolate=interpolate)
        .encode(
            x=seconds_axis(first, last),
            y=channel("v:Q", title=None, scale={"zero": True}, axis={"format": "~s", "tickCount": 4}),
            color=arm_colour(list(lines)),
            strokeDash=arm_dash(list(lines)),
            tooltip=["arm:N", "s:Q", channel("v:Q", format=",.4~g", title=unit)],
        )
    )
    summary = ", ".join(f"{arm} {sum(v for _, v in line) / len(line):.4g}" for arm, line in known.items())
    text = f"{title}, {unit}, by second; on average {summary}."
    return [canvas.figure(title, [drawn, *start_of_measuring(canvas, first, last)], _LINES_HEIGHT, text, unit)]
