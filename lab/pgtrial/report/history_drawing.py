"""Computes the coordinates at which a page draws the series of a history as SVG, which needs no script."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from pgtrial.model.records.claims import Estimate
from pgtrial.model.records.history import Entry
from pgtrial.model.units import change, decimals_for, percent
from pgtrial.report.history import Series, entry_table
from pgtrial.report.table import Table

_WIDTH, _HEIGHT = 960, 260
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 12, 12, 24
_TICKS = 4
_CAPTION = "Difference to the reference by commit."

SIZE = {"width": _WIDTH, "height": _HEIGHT, "left": _LEFT, "right": _WIDTH - _RIGHT}
"""The size of the drawing, and the left and right ends of its axis."""


@dataclass(frozen=True)
class Point:
    """A commit in the drawing of a history, with its coordinates, the coordinates of its interval, and its
    description."""

    x: float
    y: float
    low: float | None
    high: float | None
    label: str
    verdict: str
    address: str | None
    """The address of the page of the commit's study."""


@dataclass(frozen=True)
class Drawing:
    """A series as coordinates in an SVG."""

    points: list[Point]
    changes: list[tuple[float, str]]
    """The horizontal coordinate of each change, with the sentence that describes it."""
    ticks: list[tuple[float, str]]
    zero: float


@dataclass(frozen=True)
class DrawnSeries:
    """A series in the form in which a page shows it."""

    series: Series
    drawing: Drawing
    table: Table[Entry]


def drawn(series: Series, addresses: Mapping[str, str] | None = None) -> DrawnSeries:
    """Returns the drawing and the table of a series. The keys of `addresses` are the identities of the studies, and its
    values the addresses of their pages."""
    pages = addresses or {}
    table = replace(entry_table(series.entries, series.changes, pages), caption=_CAPTION)
    return DrawnSeries(series, drawing_of(series, pages), table)


def drawing_of(series: Series, addresses: Mapping[str, str]) -> Drawing:
    """Returns the drawing of a series. The commits are in their order and at equal distances."""
    entries = series.entries
    known = [entry.difference for entry in entries if entry.difference is not None]
    bounds = [bound for difference in known for bound in _bounds(difference)]
    low, high = min([0.0, *bounds]), max([0.0, *bounds])
    pad = 0.08 * (high - low) or 0.01
    low, high = low - pad, high + pad

    def x(index: int) -> float:
        return round(_LEFT + (index + 0.5) / len(entries) * (_WIDTH - _LEFT - _RIGHT), 1)

    def y(share: float) -> float:
        inside = min(max(share, low), high)
        return round(_TOP + (high - inside) / (high - low) * (_HEIGHT - _TOP - _BOTTOM), 1)

    ticks = _ticks(low, high)
    new_levels = {(change.after, change.at): change.sentence for change in series.changes}
    return Drawing(
        points=[
            Point(
                x(index),
                y(difference.value),
                y(difference.low) if difference.low is not None else None,
                y(difference.high) if difference.high is not None else None,
                f"{entry.commit}, {entry.at[:10]}: {change(difference.value)} ({difference.text()})",
                entry.verdict,
                addresses.get(entry.study),
            )
            for index, entry in enumerate(entries)
            if (difference := entry.difference) is not None
        ],
        changes=[
            (round(x(index) - 0.5 * (_WIDTH - _LEFT - _RIGHT) / len(entries), 1), new_levels[entry.commit, entry.at])
            for index, entry in enumerate(entries)
            if (entry.commit, entry.at) in new_levels
        ],
        ticks=[(y(share), percent(share, decimals_for(ticks), sign=True)) for share in ticks],
        zero=y(0.0),
    )


def _bounds(difference: Estimate) -> list[float]:
    """Returns the estimate and those bounds of its interval that are not so far away that they would make the other
    commits invisible."""
    return [bound for bound in difference.known if abs(bound) <= 4 * abs(difference.value) + 0.1]


def _ticks(low: float, high: float) -> list[float]:
    """Returns the ticks of an axis: multiples of 1, 2 or 5 times a power of ten, including zero."""
    least = (high - low) / _TICKS
    power = 10.0 ** math.floor(math.log10(least))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= least)
    return [step * index for index in range(math.ceil(low / step), math.floor(high / step) + 1)]
