"""Charts of fitted curves: the throughput over the number of clients by the universal scalability law, with the band of
its intervals, and the throughput over the size of the data as a broken line. Sizes at which the broken line falls
steeply (cliffs) are marked."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from pgtrial.model.records.sweeps import Bounds, Law, Scaling, SizeCurve
from pgtrial.report.charts.levels import CLIENTS, Over, Readings, horizontal, lines, over_size, readings
from pgtrial.report.charts.parts import Canvas, Figure, arm_colour, arm_dash
from pgtrial.report.charts.vega import Layer, channel
from pgtrial.report.data import StudyData
from pgtrial.report.sweep_words import by_sweep, cliff_text, peak_position, sweep_label
from pgtrial.statistics.scalability import Curve

_STEPS = 80
"""The number of points by which the chart draws the curve of a scalability law."""


def scaling_charts(data: StudyData) -> list[Figure]:
    """Returns one chart for each sweep, which is a group of load points that differ only in the number of clients. The
    chart has the fitted scalability law of each arm, unless the law does not fit the measurements, and the medians of
    the trials."""
    charts = []
    for points, arms in by_sweep(data.result.scaling).items():
        laws = {of_arm.arm: of_arm for of_arm in arms if of_arm.law is not None and of_arm.law.fits}
        if laws:
            charts.append(_scaling(data, list(points), laws))
    return charts


def _scaling(data: StudyData, points: list[int], laws: dict[str, Scaling]) -> Figure:
    canvas, measured = Canvas(), readings(data, points, CLIENTS)
    rows = [row for of_arm in laws.values() if of_arm.law is not None for row in _curve(of_arm, of_arm.law)]
    base = canvas.chart(rows).encode(x=horizontal(CLIENTS, measured.positions), color=arm_colour(measured.arms))
    band = base.mark("area", fillOpacity=0.15).encode(y=channel("low:Q", title=None), y2="high:Q")
    title = f"{sweep_label(data.plan.load_points, next(iter(laws.values())))}, over clients"
    peaks = "; ".join(f"peak of {arm}: {peak_position(of_arm)}" for arm, of_arm in laws.items())
    text = f"Scalability law of throughput, {title}: {peaks}. Medians: {measured.in_words()}."
    return canvas.figure(title, [band, _line(base, measured), *_marks(canvas, measured)], 260, text, measured.unit)


def _curve(of_arm: Scaling, law: Law) -> list[dict[str, Any]]:
    """Returns points of the law between the tested numbers of clients, with the lower and the upper bound of the
    throughput. The bounds are known only at the tested numbers and are interpolated between them."""
    known = [_finite(bounds) for bounds in (law.single, law.serial, law.mutual)]
    curve = Curve(*(value for _, value, _ in known))
    tested = np.log(of_arm.clients)
    bands = [_finite(bounds) for bounds in law.tps]
    below, above = ([math.log(end / value) for end, value in ends] for ends in _ends(bands))
    return [
        {
            "arm": of_arm.arm,
            "place": math.exp(position),
            "tps": (tps := curve.speed(math.exp(position))),
            "low": tps * math.exp(np.interp(position, tested, below)),
            "high": tps * math.exp(np.interp(position, tested, above)),
        }
        for position in np.linspace(tested[0], tested[-1], _STEPS)
    ]


def _finite(bounds: Bounds) -> tuple[float, float, float]:
    """Returns the lower bound, the value and the upper bound. A missing bound is replaced by the value."""
    value = bounds.value or 0.0
    return bounds.low or value, value, bounds.high or value


def _ends(bands: Sequence[tuple[float, float, float]]) -> tuple[list[tuple[float, float]], list[tuple[float, float]]]:
    return [(low, value) for low, value, _ in bands], [(high, value) for _, value, high in bands]


def cliff_charts(data: StudyData) -> list[Figure]:
    """Returns one chart for each sweep (load points that differ only in the size of the data) in which an arm has a
    cliff, which is a size above which the throughput falls. The chart shows the fitted broken lines and the positions
    of the cliffs."""
    charts = []
    for points, arms in by_sweep(data.result.cliffs).items():
        if any(of_arm.cliffs for of_arm in arms):
            charts.append(_cliffs(data, list(points), arms))
    return charts


def _cliffs(data: StudyData, points: list[int], arms: list[SizeCurve]) -> Figure:
    over = over_size(data)
    canvas, measured = Canvas(), readings(data, points, over)
    megabytes = [over.position(data.plan.load_points[point]) for point in points]

    def position(scale: float) -> float:
        return math.exp(float(np.interp(math.log(scale), np.log(arms[0].scales), np.log(megabytes))))

    rows = [{"arm": of_arm.arm, "place": position(at), "tps": tps} for of_arm in arms for at, tps in of_arm.line]
    base = canvas.chart(rows).encode(x=horizontal(over, measured.positions), color=arm_colour(measured.arms))
    edges = [
        {"arm": of_arm.arm, "place": position(low), "to": position(high), "at": position(value)}
        for of_arm in arms
        for low, value, high in (_finite(cliff.scale) for cliff in of_arm.cliffs)
    ]
    marked = canvas.chart(edges).encode(x=horizontal(over, measured.positions), color=arm_colour(measured.arms))
    layers = [
        marked.mark("rect", fillOpacity=0.1).encode(x2="to:Q"),
        marked.mark("rule", strokeDash=[4, 4]).encode(x=_field(over, measured, "at")),
        _line(base, measured),
        *_marks(canvas, measured),
    ]
    title = f"{sweep_label(data.plan.load_points, arms[0])}, cliffs over size"
    cliffs = "; ".join(f"{of_arm.arm}: {cliff_text(cliff)}" for of_arm in arms for cliff in of_arm.cliffs)
    text = f"Throughput, {title}: {cliffs}. Medians: {measured.in_words()}."
    return canvas.figure(title, layers, 260, text, measured.unit)


def _field(over: Over, measured: Readings, name: str) -> dict[str, Any]:
    return {**horizontal(over, measured.positions), "field": name}


def _line(base: Layer, measured: Readings) -> Layer:
    y = channel("tps:Q", title=None, scale={"zero": True}, axis={"format": "~s"})
    return base.mark("line", strokeWidth=1.5).encode(y=y, strokeDash=arm_dash(measured.arms))


def _marks(canvas: Canvas, measured: Readings) -> list[Layer]:
    """Returns the layers for the medians and the single trials, without the line through the medians."""
    return lines(canvas, measured, measured.positions)[1:]
