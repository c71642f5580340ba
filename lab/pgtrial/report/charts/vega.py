"""Builds Vega-Lite specifications as plain dictionaries: channels from their short notation, and the layers of a
chart."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.4.1.json"
"""The version of Vega-Lite that the page's drawing code supports."""

_TYPES = {"Q": "quantitative", "N": "nominal"}

_SECONDARY = ("x2", "y2")
"""The Vega-Lite channels that have no type of their own, because they share the type of `x` or `y`."""

Channel = dict[str, Any]


def channel(notation: str, **options: Any) -> Channel:
    """Returns a channel from its short notation, which is a field with its type such as `tps:Q` or `arm:N`, and from
    further Vega-Lite options."""
    name, _, kind = notation.rpartition(":")
    return {"field": name, "type": _TYPES[kind], **options}


@dataclass(frozen=True)
class Layer:
    """One layer of a chart: named rows, their transforms, and the mark that draws them. Each method returns a new
    layer."""

    rows: str
    mark_of: dict[str, Any] = field(default_factory=dict)
    transforms: tuple[dict[str, Any], ...] = ()
    encoding: dict[str, Any] = field(default_factory=dict)
    params: tuple[dict[str, Any], ...] = ()
    """The parameters by which the reader of the page chooses what the chart shows."""

    def mark(self, kind: str, **options: Any) -> Layer:
        """Returns the layer with this kind of mark."""
        return replace(self, mark_of={"type": kind, **options})

    def transform(self, *steps: dict[str, Any]) -> Layer:
        """Returns the layer with these transforms added. They have the form of Vega-Lite, such as `{"filter": ...}`."""
        return replace(self, transforms=(*self.transforms, *steps))

    def encode(self, **channels: Any) -> Layer:
        """Returns the layer with these channels added. Each is a short notation, a result of `channel`, or a list of
        both."""
        made = {name: _channels(given) for name, given in channels.items()}
        for name in made.keys() & _SECONDARY:
            made[name] = {key: value for key, value in made[name].items() if key != "type"}
        return replace(self, encoding={**self.encoding, **made})

    def choice(self, param: dict[str, Any]) -> Layer:
        """Returns the layer with a parameter that the reader of the page can choose."""
        return replace(self, params=(*self.params, param))

    def spec(self) -> dict[str, Any]:
        """Returns the Vega-Lite specification of the layer. The rows and the parameters are left out, because they
        belong to the whole chart."""
        transforms = {"transform": list(self.transforms)} if self.transforms else {}
        return {"data": {"name": self.rows}, "mark": self.mark_of, "encoding": self.encoding, **transforms}


def _channels(given: Any) -> Any:
    if isinstance(given, list):
        return [_channels(part) for part in given]
    return channel(given) if isinstance(given, str) else given
