"""Vega-Lite as plain dictionaries: channels by their short notation, and one layer of a chart."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.4.1.json"
"""The version that the page's drawing code speaks."""

_TYPES = {"Q": "quantitative", "N": "nominal"}

_SECONDARY = ("x2", "y2")
"""The channels of Vega-Lite that have no type of their own, since they share that of `x` or `y`."""

Channel = dict[str, Any]


def channel(notation: str, **options: Any) -> Channel:
    """Returns a channel: a field with its type, `tps:Q` or `arm:N`, and options of Vega-Lite."""
    name, _, kind = notation.rpartition(":")
    return {"field": name, "type": _TYPES[kind], **options}


@dataclass(frozen=True)
class Layer:
    """Named rows, how they are transformed, and the mark that draws them. Each step gives a new one."""

    rows: str
    mark_of: dict[str, Any] = field(default_factory=dict)
    transforms: tuple[dict[str, Any], ...] = ()
    encoding: dict[str, Any] = field(default_factory=dict)
    params: tuple[dict[str, Any], ...] = ()
    """The parameters through which the reader can choose what the chart shows."""

    def mark(self, kind: str, **options: Any) -> Layer:
        """Returns the layer drawn by this kind of mark."""
        return replace(self, mark_of={"type": kind, **options})

    def transform(self, *steps: dict[str, Any]) -> Layer:
        """Returns the layer with these transforms added, as Vega-Lite has them: `{"filter": ...}`."""
        return replace(self, transforms=(*self.transforms, *steps))

    def encode(self, **channels: Any) -> Layer:
        """Returns the layer with these channels added: each a notation, a result of `channel`, or a list of them."""
        made = {name: _channels(given) for name, given in channels.items()}
        for name in made.keys() & _SECONDARY:
            made[name] = {key: value for key, value in made[name].items() if key != "type"}
        return replace(self, encoding={**self.encoding, **made})

    def choice(self, param: dict[str, Any]) -> Layer:
        """Returns the layer with a parameter that the reader can choose."""
        return replace(self, params=(*self.params, param))

    def spec(self) -> dict[str, Any]:
        """Returns the specification of Vega-Lite. The rows and what the reader chooses belong to the whole chart."""
        transforms = {"transform": list(self.transforms)} if self.transforms else {}
        return {"data": {"name": self.rows}, "mark": self.mark_of, "encoding": self.encoding, **transforms}


def _channels(given: Any) -> Any:
    if isinstance(given, list):
        return [_channels(part) for part in given]
    return channel(given) if isinstance(given, str) else given
