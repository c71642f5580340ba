"""The types for values of keys of `[load]`: numbers of clients, scales, rates and lengths."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from pgtrial.model.quoting import quoted
from pgtrial.model.units import Number, Whole, parse_duration

Count = Annotated[Whole, Field(ge=1, le=1_000_000)]
"""A number of clients."""

_LARGEST_SCALE = 1_000_000


def _scale(value: Any) -> int | float:
    try:
        # float() takes true for 1, and the text "True" for no number
        scale = float(str(value))
    except ValueError:
        raise ValueError(f"{quoted(value)} is not a scale factor; write a number, such as 10") from None
    if not 0 < scale <= _LARGEST_SCALE:
        raise ValueError(f"{scale:g} is not a scale factor; write a number above 0, and at most {_LARGEST_SCALE:,}")
    return int(scale) if scale.is_integer() else scale


Scale = Annotated[int | float, BeforeValidator(_scale)]
"""A scale factor. Only the scale of a suite may have decimals."""

Rate = Annotated[Number, Field(gt=0, le=1_000_000_000)]
"""A rate in transactions per second."""

SHORTEST_SLICE_S = 0.01
"""The shortest slice that the engine accepts, seconds."""


def _interleave(value: Any) -> Any:
    if value in ("auto", "off"):
        return value
    try:
        seconds = parse_duration(value)
    except ValueError:
        raise ValueError(
            f'{quoted(value)} is neither "auto" nor "off" nor the length of a slice, such as "250ms"'
        ) from None
    if seconds < SHORTEST_SLICE_S:
        raise ValueError(f"a slice of {seconds * 1000:g}ms is too short; write {SHORTEST_SLICE_S * 1000:g}ms or more")
    return seconds


Interleave = Annotated[Literal["auto", "off"] | float, BeforeValidator(_interleave)]

Protocol = Literal["simple", "extended", "prepared"]


def distinct(values: list[Any]) -> list[Any]:
    """Returns the values unchanged. Raises ValueError if a value occurs twice."""
    repeated = sorted({str(value) for value in values if values.count(value) > 1})
    if repeated:
        raise ValueError(
            f"lists {', '.join(repeated)} more than once; name each value once, since each one makes load points"
        )
    return values


AUTO: Literal["auto"] = "auto"
"""The value of `warmup` or `duration` with which the user lets pgtrial choose the length."""


def _length(value: Any) -> Any:
    if value == AUTO:
        return value
    try:
        seconds = parse_duration(value)
    except ValueError:
        raise ValueError(f'{quoted(value)} is not a duration; write for example 10s or 1min, or "auto"') from None
    if not math.isfinite(seconds):
        raise ValueError(f"{quoted(value)} is not the length of a trial; write for example 10s or 1min")
    return seconds


def _warmup(value: Any) -> Any:
    length = _length(value)
    if length != AUTO and length < 0:
        raise ValueError(f"a warm-up of {length:g}s is impossible; write 0 or more")
    return length


def _duration(value: Any) -> Any:
    length = _length(value)
    if length != AUTO and length < 1:
        raise ValueError(f"a measured part of {length:g}s is too short; write 1s or more")
    if length != AUTO and length != int(length):
        raise ValueError(
            f"a measured part of {length:g}s is not a whole number of seconds, which pgbench's -T requires"
        )
    return length


Length = float | Literal["auto"]

WarmUp = Annotated[Length, BeforeValidator(_warmup)]

MeasuredPart = Annotated[Length, BeforeValidator(_duration)]
