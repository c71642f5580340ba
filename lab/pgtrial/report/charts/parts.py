"""The code that all charts share: figures, Vega-Lite specifications, colours and shapes by arm, and axes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pgtrial.report.charts.vega import SCHEMA, Channel, Layer, channel

SHAPES = ["circle", "square", "triangle-up", "diamond", "cross", "triangle-down"]
DASHES = [[1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [10, 4], [4, 2, 1, 2]]

SECONDS = "second of the measured part"
"""The title of an axis of seconds."""

ZERO_LABEL = "datum.value === 0 ? '0' : datum.label"
"""The Vega expression for the labels of an axis of signed differences, which shows zero without a sign."""

Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Figure:
    """A chart in the report, with its title, its alternative text and its specification."""

    title: str
    alt: str
    """The alternative text, which is read or shown if the chart cannot be seen."""
    spec: dict[str, Any]
    """The Vega-Lite specification. Colours are names from the page's style sheet, so that the chart follows its light
    or dark mode."""
    unit: str = ""
    wide: bool = False


class Canvas:
    """The layers of one chart, with the rows that each layer draws."""

    def __init__(self) -> None:
        self._datasets: dict[str, list[dict[str, Any]]] = {}

    def chart(self, rows: Rows) -> Layer:
        """Adds rows to the data of the chart, and returns a layer that draws them."""
        name = f"rows{len(self._datasets)}"
        self._datasets[name] = [dict(row) for row in rows]
        return Layer(name)

    def whiskers(self, rows: Rows, x: Callable[[str], Channel], y: Channel, **channels: Any) -> list[Layer]:
        """Returns a layer that draws an interval for each row, as a bar from its `low` to its `high`. Rows without an
        interval are left out. If no row has an interval, the result is empty."""
        bounded = [row for row in rows if row["low"] is not None and row["high"] is not None]
        bar = self.chart(bounded).mark("rule", strokeWidth=4, strokeCap="round", color="--accent", opacity=0.45)
        return [bar.encode(x=x("low:Q"), x2="high:Q", y=y, **channels)] if bounded else []

    def figure(
        self, title: str, layers: Sequence[Layer], height: int, text: str, unit: str = "", *, wide: bool = False
    ) -> Figure:
        """Returns the layers as one figure, which is as wide as the page allows. `text` is the alternative text."""
        chosen = {param["name"]: param for layer in layers for param in layer.params}
        spec: dict[str, Any] = {
            "$schema": SCHEMA,
            "width": "container",
            "height": height,
            "description": text,
            "params": list(chosen.values()),
            "layer": [layer.spec() for layer in layers],
            "autosize": {"type": "fit-x", "contains": "padding"},
            "datasets": self._datasets,
        }
        return Figure(title, text, spec, unit, wide)


def arm_colour(names: list[str], field: str = "arm:N", **options: Any) -> Channel:
    """Returns the colour channel by arm (or by another field), which is the same in all charts. The page defines the
    colours."""
    return channel(field, scale={"domain": names}, title=None, sort=None, **options)


def arm_shape(names: list[str], field: str = "arm:N", **options: Any) -> Channel:
    """Returns the shape channel by arm (or by another field), so that arms do not differ in colour alone."""
    return channel(field, scale=_repeated(names, SHAPES), title=None, sort=None, **options)


def arm_dash(names: list[str], field: str = "arm:N") -> Channel:
    """Returns the channel for the line pattern by arm (or by another field)."""
    return channel(field, scale=_repeated(names, DASHES), title=None, sort=None)


def _repeated(names: list[str], values: Sequence[Any]) -> dict[str, Any]:
    return {"domain": names, "range": [values[index % len(values)] for index in range(len(names))]}


def row_axis(field: str, rows: Rows, **options: Any) -> Channel:
    """Returns a vertical axis with an entry for each row, from top to bottom. `options` are Vega options of its
    labels."""
    names = list(dict.fromkeys(row[field.partition(":")[0]] for row in rows))
    axis = {"ticks": False, "domain": False, **options}
    return channel(field, title=None, scale={"domain": names}, axis=axis)


def numbered(field: str, title: str, numbers: Sequence[int]) -> Channel:
    """Returns a horizontal axis of whole numbers, such as the numbers of blocks."""
    return channel(
        field,
        title=title,
        axis={"grid": False, "values": list(numbers), "format": "d", "labelOverlap": True},
        scale={"domain": [numbers[0] - 0.5, numbers[-1] + 0.5], "nice": False},
    )


def log_ticks(low: float, high: float) -> list[float]:
    """Returns the ticks 1, 2, 5, 10, 20, ... of a logarithmic axis, from below `low` to above `high`. Over a wide range
    it returns only powers of ten."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    steps = (1, 2, 5) if last - first <= _NARROW else (1,)
    return [step * 10.0**power for power in range(first, last + 1) for step in steps]


_NARROW = 3
"""Up to this number of decades there is room for more ticks than powers of ten."""


def seconds_axis(first: int, last: int) -> Channel:
    """Returns the axis for the field `s`, the second of a trial. Seconds of the warm-up are negative."""
    return channel(
        "s:Q",
        title=SECONDS,
        scale={"domain": [first, max(last, first + 1)], "nice": False},
        axis={"grid": False, "tickMinStep": 1},
    )


def start_of_measuring(canvas: Canvas, first: int, last: int) -> list[Any]:
    """Returns a layer with a vertical line at zero, where the measured part begins. The result is empty if zero is
    outside the chart."""
    if not first < 0 < last:
        return []
    rule = canvas.chart([{"at": 0}]).mark("rule", color="--soft", strokeDash=[3, 3])
    return [rule.encode(x=channel("at:Q", title=SECONDS))]
