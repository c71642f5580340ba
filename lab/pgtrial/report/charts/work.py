"""What the host did over the seconds of a trial: CPU by mode, the data's device, memory to be written, stalls."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from pgtrial.model.records.study import LoadPoint
from pgtrial.report.charts import Figure, chart
from pgtrial.report.charts.lines import Line, small_lines
from pgtrial.report.charts.parts import Canvas
from pgtrial.report.charts.seconds import bin_width, stacked
from pgtrial.report.data import StudyData
from pgtrial.report.series import CPU_MODES, MB, host_series


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


@chart("server")
def work_charts(data: StudyData) -> list[Figure]:
    """The mean of an arm's trials; nothing where the host is not the lab's own."""
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
        lines = {arm: _line(data, point, arm, quantity, step) for arm in data.plan.arms}
        known = {arm: line for arm, line in lines.items() if line}
        if any(value >= quantity.least for line in known.values() for _, value in line):
            figures.append(small_lines(f"{quantity.title}: {point.label}", quantity.unit, data.plan.arms, known))
    return figures


def _line(data: StudyData, point: LoadPoint, arm: str, quantity: _Quantity, step: int) -> Line:
    """The quantity in every bin in which its source was observed."""
    seen = host_series(data, point, arm, quantity.source, step)
    values = dict(seen.filter(pl.col("name") == quantity.name).select("second", "value").iter_rows())
    return [(second, quantity.factor * values.get(second, 0.0)) for second in sorted(set(seen["second"]))]


def _cpu(data: StudyData, point: LoadPoint, step: int) -> list[Figure]:
    """One stacked chart for each arm, on one scale."""
    seen = {arm: host_series(data, point, arm, "cpu", step) for arm in data.plan.arms}
    modes = {arm: _by_mode(frame) for arm, frame in seen.items() if not frame.is_empty()}
    most = max((max(map(sum, zip(*rows.values(), strict=True))) for _, rows in modes.values()), default=0.0)
    return [_stacked(arm, point, seconds, rows, most) for arm, (seconds, rows) in modes.items()]


def _by_mode(frame: pl.DataFrame) -> tuple[list[int], dict[str, list[float]]]:
    """The seconds, and for each mode CPUs at every one of them."""
    seconds = sorted(set(frame["second"]))
    rows = {}
    for mode, names in CPU_MODES.items():
        sums = frame.filter(pl.col("name").is_in(names)).group_by("second").agg(pl.col("value").sum())
        values = dict(sums.iter_rows())
        rows[mode] = [round(values.get(second, 0.0), 3) for second in seconds]
    return seconds, rows


def _stacked(arm: str, point: LoadPoint, seconds: list[int], modes: dict[str, list[float]], most: float) -> Figure:
    parts = {mode: values for mode, values in modes.items() if any(values)}
    colours = {mode: f"--wait-{place + 1}" for place, mode in enumerate(modes)}
    canvas = Canvas()
    layers = stacked(canvas, seconds, parts, colours, most, unit="CPUs")
    told = ", ".join(f"{mode} {sum(values) / len(seconds):.2f}" for mode, values in parts.items())
    title = f"CPU, {arm}: {point.label}"
    text = f"CPUs of the host by what they did, {title}; on average {told}."
    return Figure(title, text, canvas.finish(layers, 130, text), "CPUs at work")
