"""tps over clients, arm beside arm, or over the size of the database; one chart per cell of the other dimensions."""

from __future__ import annotations

from typing import Any

import altair as alt

from pgtrial.loads.data.pgbench_tables import MB_PER_SCALE, PgbenchTables
from pgtrial.model.units import setting_bytes
from pgtrial.report.charts.levels import CLIENTS, MEDIAN, TRIAL, Over, horizontal, lines, readings
from pgtrial.report.charts.parts import Canvas, Figure, arm_colour, arm_shape
from pgtrial.report.data import StudyData


def tps_charts(data: StudyData) -> list[Figure]:
    """The median trial of each arm, with its interval, and every trial behind it."""
    points = data.plan.load_points
    cells = dict.fromkeys((point.load, point.rate) for point in points)
    figures = []
    for load, rate in cells:
        inside = [i for i, p in enumerate(points) if (p.load, p.rate) == (load, rate)]
        if any(level.tps or level.tps_before for level in data.result.levels if level.load_point in inside):
            given = f", {rate:,.10g}/s" if rate is not None else ""
            figures.append(_figure(data, f"{load}{given}", inside))
    return figures


def _figure(data: StudyData, title: str, inside: list[int]) -> Figure:
    arms, found = data.plan.arms, readings(data, inside, CLIENTS)
    canvas = Canvas()
    medians, dots = canvas.chart(found.levels), canvas.chart(found.trials)
    several = len(found.places) > 1
    layers = lines(medians, dots, arms, CLIENTS, found.places) if several else _side_by_side(medians, dots, arms)
    height = 260 if several else 40 + 48 * len(arms)
    alt_text = f"Throughput in transactions per second, {title}: {found.in_words()}."
    return canvas.figure(title, layers, height, alt_text, "tps")


def _side_by_side(medians: alt.Chart, dots: alt.Chart, arms: list[str]) -> list[alt.Chart]:
    """A row per arm; not from zero, so that the spread of the trials can be seen."""
    y = alt.Y("arm:N", title=None, sort=arms)
    x = alt.X("tps:Q", title="tps", scale=alt.Scale(zero=False, padding=16), axis=alt.Axis(format=",~r"))
    colour, shape = arm_colour(arms, legend=None), arm_shape(arms, legend=None)
    base = medians.encode(y=y, color=colour)
    return [
        dots.mark_circle(size=36, opacity=0.4, yOffset=12).encode(x=x, y=y, color=colour, tooltip=TRIAL),
        base.mark_rule(strokeWidth=4, strokeCap="round", opacity=0.6).encode(
            x=alt.X("low:Q", title="tps"), x2="high:Q"
        ),
        base.mark_point(filled=True, size=130, opacity=1).encode(x=x, shape=shape, tooltip=MEDIAN),
    ]


_LABEL = "datum.value >= 1000 ? format(datum.value / 1000, '.3~g') + ' GB' : datum.value + ' MB'"

_NEAR = 3.0
"""A cache that is so many times smaller or larger than the data is left out; the sizes would shrink to a point."""


def size_charts(data: StudyData) -> list[Figure]:
    """The median trial of each arm over the size, every trial behind it, and shared_buffers where all have the same.

    No average stands for the line: where the data outgrows a cache, the mean of both sides is the speed of neither.
    """
    points = data.plan.load_points
    cells = dict.fromkeys((point.workload, point.clients, point.rate) for point in points)
    figures = []
    for workload, clients, rate in cells:
        inside = [i for i, p in enumerate(points) if (p.workload, p.clients, p.rate) == (workload, clients, rate)]
        given = f", {rate:,.10g}/s" if rate is not None else ""
        title = f"{workload}, {clients} client{'s' if clients != 1 else ''}{given}, over database size"
        figures += _over_size(data, title, inside)
    return figures


def _over_size(data: StudyData, title: str, inside: list[int]) -> list[Figure]:
    fillfactor = data.spec.load.fillfactor
    over = Over(
        f"database size ({MB_PER_SCALE} MB per scale unit)",
        lambda point: PgbenchTables(point.scale, fillfactor).mb,
        _words,
        _LABEL,
    )
    found = readings(data, inside, over)
    if len(found.places) < 2:
        return []
    canvas = Canvas()
    medians, dots = canvas.chart(found.levels), canvas.chart(found.trials)
    layers: list[Any] = lines(medians, dots, data.plan.arms, over, found.places)
    alt_text = f"Throughput in transactions per second, {title}: {found.in_words()}."
    cache = _shared_buffers(data)
    if cache is not None and found.places[0] / _NEAR <= cache["place"] <= found.places[-1] * _NEAR:
        # the words stand on the side where there is more room
        left = cache["place"] ** 2 < found.places[0] * found.places[-1]
        aside: dict[str, Any] = {"align": "left", "dx": 5} if left else {"align": "right", "dx": -5}
        mark = canvas.chart([cache]).encode(x=horizontal(over, found.places))
        words = mark.mark_text(color="--soft", baseline="top", dy=2, fontSize=11, **aside)
        layers = [
            mark.mark_rule(color="--soft", strokeDash=[4, 4]),
            words.encode(text="text:N", y={"value": 0}),
            *layers,
        ]
        alt_text += f" All arms have {cache['text']}."
    return [canvas.figure(title, layers, 260, alt_text, "tps")]


def _words(megabytes: int) -> str:
    return f"{megabytes / 1000:.3g} GB" if megabytes >= 1000 else f"{megabytes} MB"


def _shared_buffers(data: StudyData) -> dict[str, Any] | None:
    """The shared_buffers of all arms, in megabytes; None if one is unknown or the arms differ."""
    sizes = {facts.facts.get("settings", {}).get("shared_buffers") for facts in data.facts.values()}
    size = setting_bytes(sizes.pop()) if len(sizes) == 1 and len(data.facts) == len(data.plan.arms) else None
    if size is None:
        return None
    gigabytes = size / 2**30
    words = f"{gigabytes:.3g} GB" if gigabytes >= 1 else f"{size / 2**20:.3g} MB"
    return {"place": size / 1e6, "text": f"shared_buffers {words}"}
