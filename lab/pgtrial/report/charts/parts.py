"""What charts share: the figure, the making of its Vega-Lite specification, scales by arm, axes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import altair as alt

SHAPES = ["circle", "square", "triangle-up", "diamond", "cross", "triangle-down"]
DASHES = [[1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [10, 4], [4, 2, 1, 2]]

SECONDS = "second of the measured part"
"""Title of the axis of seconds."""

ZERO_LABEL = "datum.value === 0 ? '0' : datum.label"
"""Axis of signed differences: no sign before zero."""

Rows = Sequence[Mapping[str, Any]]


class Chart(alt.Chart):
    """A chart that takes channels as strings without altair's search through its schema for each."""

    def encode(self, *args: Any, **channels: Any) -> Self:
        """A copy with these channels."""
        return super().encode(*args, **{name: _channel(name, given) for name, given in channels.items()})


def _channel(name: str, given: Any) -> Any:
    """The channel that altair makes of a string, without the 20 ms that it takes for each."""
    if isinstance(given, list):
        return [_channel(name, each) for each in given]
    return getattr(alt, f"{name[0].upper()}{name[1:]}")(given) if isinstance(given, str) else given


@dataclass(frozen=True)
class Figure:
    """One chart of the page."""

    title: str
    alt: str
    """The words that stand for it where it cannot be seen."""
    spec: dict[str, Any]
    """Vega-Lite; colours come from the page, so that it follows light and dark."""
    unit: str = ""
    wide: bool = False


class Canvas:
    """Charts in layers. Their data is kept outside of the charts, since altair would take seconds to check it."""

    def __init__(self) -> None:
        self._datasets: dict[str, list[dict[str, Any]]] = {}

    def chart(self, rows: Rows) -> Chart:
        """A chart of these rows."""
        name = f"rows{len(self._datasets)}"
        self._datasets[name] = [dict(row) for row in rows]
        return Chart(alt.NamedData(name=name))

    def whiskers(self, rows: Rows, x: Callable[[str], alt.X], y: alt.Y, **channels: Any) -> list[Chart]:
        """The interval of each row that has one, as a bar from its `low` to its `high`; no layer where none has."""
        bounded = [row for row in rows if row["low"] is not None and row["high"] is not None]
        bar = self.chart(bounded).mark_rule(strokeWidth=4, strokeCap="round", color="--accent", opacity=0.45)
        return [bar.encode(x=x("low:Q"), x2="high:Q", y=y, **channels)] if bounded else []

    def figure(
        self, title: str, layers: Sequence[alt.Chart], height: int, text: str, unit: str = "", *, wide: bool = False
    ) -> Figure:
        """The layers as one figure, as wide as the page allows; `text` is the alternative text."""
        # altair's own way to put layers together copies each of them several times, and checking each chart against the
        # schema takes as long again; the tests draw every chart in a browser
        drawn = [layer.to_dict(validate=False, context={"top_level": False}) for layer in layers]
        # what the reader chooses belongs to the figure
        chosen = {each["name"]: each for layer in drawn for each in layer.pop("params", ())}
        spec: dict[str, Any] = {
            "$schema": alt.SCHEMA_URL,
            "width": "container",
            "height": height,
            "description": text,
            "params": list(chosen.values()),
            "layer": drawn,
            "autosize": {"type": "fit-x", "contains": "padding"},
            "datasets": self._datasets,
        }
        return Figure(title, text, spec, unit, wide)


def arm_colour(names: list[str], field: str = "arm:N", **options: Any) -> alt.Color:
    """Colour by arm (or another field), the same in all charts; the palette is the page's."""
    return alt.Color(field, scale=alt.Scale(domain=names), title=None, sort=None, **options)


def arm_shape(names: list[str], field: str = "arm:N", **options: Any) -> alt.Shape:
    """Shape by arm (or another field), so that colour is never the only sign."""
    return alt.Shape(field, scale=_repeated(names, SHAPES), title=None, sort=None, **options)


def arm_dash(names: list[str], field: str = "arm:N") -> alt.StrokeDash:
    """Line pattern by arm (or another field)."""
    return alt.StrokeDash(field, scale=_repeated(names, DASHES), title=None, sort=None)


def _repeated(names: list[str], values: Sequence[Any]) -> alt.Scale:
    return alt.Scale(domain=names, range=[values[place % len(values)] for place in range(len(names))])


def row_axis(field: str, rows: Rows, **options: Any) -> alt.Y:
    """A vertical axis with a place for each row, from top to bottom; `options` are those of the labels."""
    names = list(dict.fromkeys(row[field.partition(":")[0]] for row in rows))
    axis = alt.Axis(ticks=False, domain=False, **options)
    return alt.Y(field, title=None, scale=alt.Scale(domain=names), axis=axis)


def numbered(field: str, title: str, numbers: Sequence[int]) -> alt.X:
    """A horizontal axis of whole numbers, such as those of blocks, in ascending order."""
    return alt.X(
        field,
        title=title,
        axis=alt.Axis(grid=False, values=list(numbers), format="d", labelOverlap=True),
        scale=alt.Scale(domain=[numbers[0] - 0.5, numbers[-1] + 0.5], nice=False),
    )


def log_ticks(low: float, high: float) -> list[float]:
    """1, 2, 5, 10, 20, ... from below `low` to above `high`; only powers of ten over a wide range."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    steps = (1, 2, 5) if last - first <= _NARROW else (1,)
    return [step * 10.0**power for power in range(first, last + 1) for step in steps]


_NARROW = 3
"""Decades that have room for more ticks than powers of ten."""


def seconds_axis(first: int, last: int) -> alt.X:
    """The seconds, in a field `s`; the warm-up lies left of zero."""
    return alt.X(
        "s:Q",
        title=SECONDS,
        scale=alt.Scale(domain=[first, max(last, first + 1)], nice=False),
        axis=alt.Axis(grid=False, tickMinStep=1),
    )


def start_of_measuring(canvas: Canvas, first: int, last: int) -> list[Any]:
    """A rule at zero, if that is inside the chart."""
    if not first < 0 < last:
        return []
    rule = canvas.chart([{"at": 0}]).mark_rule(color="--soft", strokeDash=[3, 3])
    return [rule.encode(x=alt.X("at:Q", title=SECONDS))]
