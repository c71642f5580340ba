"""Charts of the performance of each arm: the throughput over the number of clients or the size of the database, and the
latencies. The charts show the median trial and the single trials."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, TypeVar

from pgtrial.loads.data.pgbench_tables import MB_PER_SCALE, PgbenchTables
from pgtrial.model.records.load_point import LoadPoint, rate_unit
from pgtrial.model.records.results import Spread
from pgtrial.model.study.order_entry import ORDER_ENTRY
from pgtrial.model.units import grouped, setting_bytes, three_digits
from pgtrial.report.charts.parts import Canvas, Figure, arm_colour, arm_dash, arm_shape, log_ticks
from pgtrial.report.charts.vega import Channel, Layer, channel
from pgtrial.report.data import StudyData

Key = TypeVar("Key", bound=Hashable)


def cells(data: StudyData, key: Callable[[LoadPoint], Key]) -> dict[Key, list[int]]:
    """Returns the indexes of the load points, grouped by the value that `key` returns for each load point."""
    return grouped((key(point), position) for position, point in enumerate(data.plan.load_points))


@dataclass(frozen=True)
class Over:
    """The horizontal axis over which throughput is drawn: the number of clients, or the size of the database."""

    title: str
    position: Callable[[LoadPoint], int]
    words: Callable[[int], str]
    """Returns a value of the axis in words, such as `8 clients`."""
    label: str
    """The Vega expression that makes the label of a tick."""
    in_megabytes: bool = False


CLIENTS = Over("clients", lambda point: point.clients, lambda n: f"{n} client{'s' if n != 1 else ''}", "datum.value")


@dataclass(frozen=True)
class Readings:
    """The rows of a chart of throughput: medians with their intervals, and single trials."""

    over: Over
    arms: list[str]
    levels: list[dict[str, Any]]
    trials: list[dict[str, Any]]
    unit: str
    """The unit of the throughput, such as tps."""

    @property
    def positions(self) -> list[int]:
        """The values of the horizontal axis at which there are medians, in ascending order."""
        return sorted({level["place"] for level in self.levels})

    def in_words(self) -> str:
        """Returns the medians as text, for readers who cannot see the chart."""
        return "; ".join(
            f"{level['arm']} at {level['where']} {level['tps']:,.0f}"
            + (f" {level['regime']} the change" if level["regime"] != "whole trial" else "")
            for level in self.levels
        )


def readings(data: StudyData, inside: list[int], over: Over) -> Readings:
    """Returns the medians and the single trials at these load points, as rows of a chart over `over`."""
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
    # the throughput of a trial with a change of regime is an average across the change, so its two levels are drawn
    # instead
    changed = {(cell.arm, points[cell.load_point]) for cell in data.result.regimes if cell.changes}
    trials = [
        {
            "arm": t.arm,
            **_where(t.load_point, over),
            "tps": t.capacity or t.measured.tps,
            "trial": t.index + 1,
            "block": t.block + 1,
        }
        for t in data.trials
        if t.measured
        and t.measured.transactions
        and points.index(t.load_point) in inside
        and (t.arm, t.load_point) not in changed
    ]
    return Readings(over, data.plan.arms, levels, trials, rate_unit(points))


def _where(point: LoadPoint, over: Over) -> dict[str, Any]:
    position = over.position(point)
    return {"place": position, "where": over.words(position)}


def _in_full(unit: str) -> str:
    return "transactions per second" if unit == "tps" else unit


def _of_trial(unit: str) -> list[str | Channel]:
    """Returns the lines of the tooltip of a single trial, whose speed is in `unit`."""
    speed = channel("tps:Q", format=",.0f", **({} if unit == "tps" else {"title": unit}))
    return ["arm:N", channel("where:N", title="at"), "block:Q", "trial:Q", speed]


def _of_median(unit: str) -> list[str | Channel]:
    """Returns the lines of the tooltip of a median trial, whose speed is in `unit`."""
    return [
        "arm:N",
        channel("where:N", title="at"),
        "regime:N",
        channel("tps:Q", format=",.0f", title=f"median {unit}"),
        channel("low:Q", format=",.0f", title="from"),
        channel("high:Q", format=",.0f", title="to"),
    ]


def lines(canvas: Canvas, measured: Readings, positions: list[int]) -> list[Layer]:
    """Returns the layers of a chart with a line for each arm. The horizontal axis is logarithmic and has a tick at each
    of `positions`."""
    x, colour = horizontal(measured.over, positions), arm_colour(measured.arms)
    y = channel("tps:Q", title=None, scale={"zero": True}, axis={"format": "~s"})
    base = canvas.chart(measured.levels).encode(x=x, color=colour)
    dots = canvas.chart(measured.trials).mark("circle", size=18, opacity=0.35)
    return [
        base.mark("line", strokeWidth=1.5).encode(y=y, strokeDash=arm_dash(measured.arms), detail="regime:N"),
        dots.encode(x=x, y=y, color=colour, tooltip=_of_trial(measured.unit)),
        base.mark("rule", strokeWidth=2).encode(y=channel("low:Q", title=None), y2="high:Q"),
        base.mark("point", filled=True, size=90, opacity=1).encode(
            y=y, shape=arm_shape(measured.arms), tooltip=_of_median(measured.unit)
        ),
    ]


def horizontal(over: Over, positions: list[int]) -> Channel:
    """Returns the logarithmic horizontal axis of a chart over numbers of clients or sizes, with a tick at each of
    `positions`."""
    return channel(
        "place:Q",
        title=over.title,
        scale={"type": "log", "base": 2, "nice": False, "padding": 24},
        axis={"values": positions, "labelExpr": over.label, "grid": False, "labelOverlap": True},
    )


def tps_charts(data: StudyData) -> list[Figure]:
    """Returns charts with the median trial of each arm, its interval, and all single trials. If there are several
    numbers of clients, the charts are over the number of clients."""
    figures, unit = [], rate_unit(data.plan.load_points)
    for (load, rate), inside in cells(data, lambda point: (point.load, point.rate)).items():
        measured = readings(data, inside, CLIENTS)
        if not measured.levels:
            continue
        canvas = Canvas()
        several = len(measured.positions) > 1
        layers = lines(canvas, measured, measured.positions) if several else _side_by_side(canvas, measured, unit)
        height = 260 if several else 40 + 48 * len(measured.arms)
        title = f"{load}{_at_rate(rate)}"
        alt_text = f"Throughput in {_in_full(measured.unit)}, {title}: {measured.in_words()}."
        figures.append(canvas.figure(title, layers, height, alt_text, unit))
    return figures


def _at_rate(rate: float | None) -> str:
    return f", {rate:,.10g}/s" if rate is not None else ""


_NEAR_ZERO = 0.25
"""The axis begins at zero if the distance of the lowest value from zero is below this share of the spread of the
values. Otherwise rounding and padding would make the axis begin below zero."""


def _spread_scale(measured: Readings) -> dict[str, Any]:
    """Returns a scale of throughput that is as wide as the spread of the trials, and so need not begin at zero. It does
    not begin below zero either, since there are no negative rates."""
    rows = [*measured.levels, *measured.trials]
    values = [value for row in rows for name in ("low", "tps", "high") if (value := row.get(name)) is not None]
    lowest, highest = min(values), max(values)
    is_near_zero = lowest < _NEAR_ZERO * (highest - lowest)
    return {"zero": True, "nice": True} if is_near_zero else {"zero": False, "padding": 16}


def _side_by_side(canvas: Canvas, measured: Readings, unit: str) -> list[Layer]:
    """Returns the layers of a chart with a row for each arm. Its axis need not begin at zero, so that the spread of the
    trials is visible."""
    y = channel("arm:N", title=None, sort=measured.arms)
    x = channel("tps:Q", title=unit, scale=_spread_scale(measured), axis={"format": ",~r"})
    colour, shape = arm_colour(measured.arms, legend=None), arm_shape(measured.arms, legend=None)
    base = canvas.chart(measured.levels).encode(y=y, color=colour)
    dots = canvas.chart(measured.trials).mark("circle", size=36, opacity=0.4, yOffset=12)
    whisker = base.mark("rule", strokeWidth=4, strokeCap="round", opacity=0.6)
    return [
        dots.encode(x=x, y=y, color=colour, tooltip=_of_trial(measured.unit)),
        whisker.encode(x=channel("low:Q", title=unit), x2="high:Q"),
        base.mark("point", filled=True, size=130, opacity=1).encode(
            x=x, shape=shape, tooltip=_of_median(measured.unit)
        ),
    ]


_LABEL = "datum.value >= 1000 ? format(datum.value / 1000, '.3~g') + ' GB' : datum.value + ' MB'"

_NEAR = 3.0
"""The size of a cache is drawn only if it is at most this factor larger or smaller than the sizes of the data. If the
cache were drawn at a greater distance, the axis would become so long that all data sizes lie at one point."""


def size_charts(data: StudyData) -> list[Figure]:
    """Returns charts with the median trial of each arm over the size of the database, with all single trials, and with
    shared_buffers if it is the same on all arms.

    The charts have no average over sizes. If the data outgrows a cache between two sizes, such an average would
    describe neither side.
    """
    over = over_size(data)
    by_size = cells(data, lambda point: (point.workload, point.clients, point.rate))
    figures = []
    for (workload, clients, rate), inside in by_size.items():
        measured = readings(data, inside, over)
        if len(measured.positions) > 1:
            title = f"{workload}, {CLIENTS.words(clients)}{_at_rate(rate)}, over database size"
            figures.append(_over_size(data, title, measured))
    return figures


def over_size(data: StudyData) -> Over:
    """Returns the axis for the size of the database: in megabytes if all load points have pgbench's tables, otherwise
    the scale factor."""
    if any(point.pack is not None or point.workload == ORDER_ENTRY for point in data.plan.load_points):
        return Over("scale", lambda point: point.whole_scale, lambda scale: f"scale {scale:,}", "datum.value")
    fillfactor = data.spec.load.fillfactor
    return Over(
        f"database size ({MB_PER_SCALE} MB per scale unit)",
        lambda point: PgbenchTables(point.whole_scale, fillfactor).mb,
        _words,
        _LABEL,
        in_megabytes=True,
    )


def _over_size(data: StudyData, title: str, measured: Readings) -> Figure:
    canvas = Canvas()
    layers: list[Any] = lines(canvas, measured, measured.positions)
    alt_text = f"Throughput in {_in_full(measured.unit)}, {title}: {measured.in_words()}."
    cache = _shared_buffers(data) if measured.over.in_megabytes else None
    if cache is not None and measured.positions[0] / _NEAR <= cache["place"] <= measured.positions[-1] * _NEAR:
        # the label stands on the side of the line where there is more room
        left = cache["place"] ** 2 < measured.positions[0] * measured.positions[-1]
        aside: dict[str, Any] = {"align": "left", "dx": 5} if left else {"align": "right", "dx": -5}
        mark = canvas.chart([cache]).encode(x=horizontal(measured.over, measured.positions))
        words = mark.mark("text", color="--soft", baseline="top", dy=2, fontSize=11, **aside)
        layers = [
            mark.mark("rule", color="--soft", strokeDash=[4, 4]),
            words.encode(text="text:N", y={"value": 0}),
            *layers,
        ]
        alt_text += f" All arms have {cache['text']}."
    return canvas.figure(title, layers, 260, alt_text, rate_unit(data.plan.load_points))


def _words(megabytes: int) -> str:
    return f"{three_digits(megabytes / 1000)} GB" if megabytes >= 1000 else f"{megabytes} MB"


def _shared_buffers(data: StudyData) -> dict[str, Any] | None:
    """Returns the row of the chart that marks the size of shared_buffers in megabytes; None if the size is unknown or
    not the same on all arms."""
    sizes = {facts.facts.get("settings", {}).get("shared_buffers") for facts in data.facts.values()}
    size = setting_bytes(sizes.pop()) if len(sizes) == 1 and len(data.facts) == len(data.plan.arms) else None
    if size is None:
        return None
    gigabytes = size / 2**30
    words = f"{three_digits(gigabytes)} GB" if gigabytes >= 1 else f"{three_digits(size / 2**20)} MB"
    return {"place": size / 1e6, "text": f"shared_buffers {words}"}


def latency_charts(data: StudyData) -> list[Figure]:
    """Returns charts of the latency percentiles on a logarithmic scale of milliseconds, with the median trial and the
    spread of the trials."""
    return [figure for point in range(len(data.labels)) if (figure := _latency(data, point)) is not None]


def _latency(data: StudyData, point: int) -> Figure | None:
    arms = data.plan.arms
    rows = [
        {"arm": level.arm, "percentile": name, **{which: value / 1000 for which, value in spread}}
        for level in data.result.levels
        if level.load_point == point
        for name, spread in level.latency_us.items()
        if spread is not None and name != "mean" and spread.lowest > 0
    ]
    if not rows:
        return None
    label = data.labels[point]
    canvas = Canvas()
    base = canvas.chart(rows).encode(
        x=channel(
            "percentile:N",
            sort=["p50", "p90", "p95", "p99", "p99.9"],
            title=None,
            scale={"paddingInner": 0.4},
            axis={"labelAngle": 0, "grid": False},
        ),
        xOffset=channel("arm:N", sort=arms, scale={"paddingInner": 0.5, "paddingOuter": 1}),
        color=arm_colour(arms),
    )
    ticks = log_ticks(min(row["lowest"] for row in rows), max(row["highest"] for row in rows))
    y = channel("median:Q", title=None, scale={"type": "log"}, axis={"format": "~g", "values": ticks})
    tooltip: list[Any] = ["arm:N", "percentile:N"]
    tooltip += [channel(f"{which}:Q", format=".3~g", title=f"{which} trial, ms") for which in Spread.model_fields]
    whisker = base.mark("rule", strokeWidth=2).encode(y=channel("lowest:Q", title=None), y2="highest:Q")
    line = base.mark("line", strokeWidth=1, opacity=0.5).encode(y=y, strokeDash=arm_dash(arms))
    dot = base.mark("point", filled=True, size=80, opacity=1).encode(y=y, shape=arm_shape(arms), tooltip=tooltip)
    summary = "; ".join(f"{row['arm']} {row['percentile']} {three_digits(row['median'])} ms" for row in rows)
    alt_text = f"Latency percentiles, {label}: {summary}."
    return canvas.figure(label, [line, whisker, dot], 240, alt_text, "ms")
