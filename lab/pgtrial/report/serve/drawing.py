"""Drawings as SVG, which need no JavaScript: intervals that become narrower from block to block, and the throughput by
second."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pgtrial.model.records.claims import Estimate
from pgtrial.report.serve.live import SHOWN_S, SoFar
from pgtrial.report.words import in_regime

WIDTH, HEIGHT = 720, 240
LEFT, RIGHT, TOP, BOTTOM = 64, 12, 10, 28
"""The margins of the drawing around its plot, in the units of the SVG. WIDTH and HEIGHT are the size of the whole
drawing."""

_TICKS = 5
_BEYOND = 0.25
"""The axis extends beyond the newest interval by this multiple of the interval's width. The intervals after the first
blocks are far wider, so that the drawing cuts them off."""


@dataclass(frozen=True)
class Tick:
    """A position on an axis with its label."""

    at: float
    label: str


@dataclass(frozen=True)
class Band:
    """The intervals of one comparison after each block, as the page draws them: a coloured area from the lower to the
    upper bounds, with a line through the estimates."""

    name: str
    index: int
    """The number of the arm's colour, counted from 1."""
    area: str
    line: str
    """`area` has the points of an SVG polygon that covers the intervals, and `line` the points of an SVG polyline
    through the estimates."""


@dataclass(frozen=True)
class Narrowing:
    """The drawing of the intervals after each unit of analysis (a block, or a pair of servers), with a line for no
    difference and lines for the margin."""

    bands: list[Band]
    columns: list[Tick]
    rows: list[Tick]
    zero: float
    margin_top: float
    margin_height: float
    unit: str


def narrowing(comparisons: Sequence[SoFar], arms: Sequence[str], margin: float, end: int) -> Narrowing | None:
    """Returns the drawing of the intervals of all comparisons; None as long as no interval is bounded. `end` is the
    number of units of analysis (blocks, or pairs of servers) in the whole study, at which the drawing ends."""
    known = [drawn for drawn in comparisons if drawn.steps]
    if not known:
        return None
    newest = [drawn.steps[-1].difference for drawn in known]
    low, high = (
        min(0.0, *(_low(difference) for difference in newest)),
        max(0.0, *(_high(difference) for difference in newest)),
    )
    beyond = _BEYOND * max(high - low, margin)
    low, high = low - beyond, high + beyond
    last = max(end, *(drawn.steps[-1].units for drawn in known), 2)

    def x(units: int) -> float:
        return round(LEFT + (WIDTH - LEFT - RIGHT) * (units - 1) / (last - 1), 1)

    def y(share: float) -> float:
        return round(TOP + (HEIGHT - TOP - BOTTOM) * (high - min(max(share, low), high)) / (high - low), 1)

    def band(drawn: SoFar) -> Band:
        uppers = [(x(step.units), y(_high(step.difference))) for step in drawn.steps]
        lowers = [(x(step.units), y(_low(step.difference))) for step in drawn.steps]
        values = [(x(step.units), y(step.difference.value)) for step in drawn.steps]
        return Band(
            drawn.claim.arm + in_regime(drawn.claim),
            arms.index(drawn.claim.arm) % 6 + 1,
            _points(uppers + lowers[::-1]),
            _points(values),
        )

    every = max(1, math.ceil(last / 12))
    return Narrowing(
        bands=[band(drawn) for drawn in known],
        columns=[Tick(x(units), str(units)) for units in range(1, last + 1) if units % every == 0 or units == 1],
        rows=[Tick(y(share), f"{share * 100:+.6g}%" if share else "0") for share in _round_values(low, high)],
        zero=y(0.0),
        margin_top=y(margin),
        margin_height=round(y(-margin) - y(margin), 1),
        unit=known[0].claim.unit,
    )


def _low(difference: Estimate) -> float:
    return difference.value if difference.low is None else difference.low


def _high(difference: Estimate) -> float:
    return difference.value if difference.high is None else difference.high


def _round_values(low: float, high: float) -> list[float]:
    """Returns the multiples of 1, 2 or 5 times a power of ten that lie between two values."""
    rough = (high - low) / _TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough)
    return [round(number * step, 12) for number in range(math.ceil(low / step), math.floor(high / step) + 1)]


def spark(values: Sequence[float]) -> str:
    """Returns the points of a line in a box of 100 x 10. The right end of the box is the present. The text is empty for
    fewer than two values, or if all values are zero."""
    most = max(values, default=0.0)
    if len(values) < 2 or not most:
        return ""
    step = 100 / (SHOWN_S - 1)
    first = 100 - step * (len(values) - 1)
    return _points(
        [(round(first + step * index, 2), round(10 - 9.5 * value / most, 2)) for index, value in enumerate(values)]
    )


def _points(points: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:g},{y:g}" for x, y in points)
