"""Static pages that need no server and no script: the history of a study, and many studies by their question."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from pgtrial.model.records.claims import Estimate
from pgtrial.model.resources import resource
from pgtrial.model.units import decimals_for, grouped, percent
from pgtrial.report.history import Series, entry_table
from pgtrial.report.html import templates
from pgtrial.report.serve.catalogue import Glance

WIDTH, HEIGHT = 960, 260
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 12, 12, 24
"""Size of a drawing and its margins."""
_TICKS = 4


@dataclass(frozen=True)
class Point:
    """A commit in the drawing: its place, the ends of its interval, and what it is."""

    x: float
    y: float
    low: float | None
    high: float | None
    label: str
    verdict: str


@dataclass(frozen=True)
class Drawing:
    """A series as places in an SVG."""

    points: list[Point]
    changes: list[tuple[float, str]]
    """Where a change is drawn, and its sentence."""
    ticks: list[tuple[float, str]]
    zero: float


def history_page(histories: Mapping[str, Sequence[Series]]) -> str:
    """The page of all histories of a directory, by name."""
    parts = [
        {
            "name": name,
            "series": [
                {"of": of, "drawing": drawing_of(of), "table": entry_table(of.entries, of.changes)} for of in series
            ],
        }
        for name, series in histories.items()
    ]
    return _render("history.html.j2", parts=parts, width=WIDTH, height=HEIGHT, left=_LEFT, right=WIDTH - _RIGHT)


def index_page(studies: Sequence[Glance], addresses: Mapping[str, str]) -> str:
    """The page of many studies by question; `addresses` has the page of each by its key."""
    by_question = grouped((study.question or study.name, study) for study in studies)
    return _render("results.html.j2", questions=by_question, addresses=addresses, total=len(studies))


def drawing_of(series: Series) -> Drawing:
    """The drawing of a series: commits in their order, the same distance apart."""
    entries = series.entries
    known = [entry.difference for entry in entries if entry.difference is not None]
    bounds = [bound for difference in known for bound in _bounds(difference)]
    low, high = min([0.0, *bounds]), max([0.0, *bounds])
    pad = 0.08 * (high - low) or 0.01
    low, high = low - pad, high + pad

    def x(place: int) -> float:
        return round(_LEFT + (place + 0.5) / len(entries) * (WIDTH - _LEFT - _RIGHT), 1)

    def y(share: float) -> float:
        inside = min(max(share, low), high)
        return round(_TOP + (high - inside) / (high - low) * (HEIGHT - _TOP - _BOTTOM), 1)

    ticks = _ticks(low, high)
    new_levels = {(change.after, change.at): change.sentence for change in series.changes}
    return Drawing(
        points=[
            Point(
                x(place),
                y(difference.value),
                y(difference.low) if difference.low is not None else None,
                y(difference.high) if difference.high is not None else None,
                f"{entry.commit}, {entry.at[:10]}: {percent(difference.value, sign=True)} ({difference.text()})",
                entry.verdict,
            )
            for place, entry in enumerate(entries)
            if (difference := entry.difference) is not None
        ],
        changes=[
            (round(x(place) - 0.5 * (WIDTH - _LEFT - _RIGHT) / len(entries), 1), new_levels[entry.commit, entry.at])
            for place, entry in enumerate(entries)
            if (entry.commit, entry.at) in new_levels
        ],
        ticks=[(y(share), percent(share, decimals_for(ticks), sign=True)) for share in ticks],
        zero=y(0.0),
    )


def _bounds(difference: Estimate) -> list[float]:
    """The estimate, and its bounds where they are not so far away that they would hide all other commits."""
    return [bound for bound in difference.known if abs(bound) <= 4 * abs(difference.value) + 0.1]


def _ticks(low: float, high: float) -> list[float]:
    """Whole multiples of 1, 2 or 5 times a power of ten, zero among them."""
    least = (high - low) / _TICKS
    power = 10.0 ** math.floor(math.log10(least))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= least)
    return [step * place for place in range(math.ceil(low / step), math.floor(high / step) + 1)]


def _render(name: str, **values: object) -> str:
    styles = Markup(resource("page/report.css", __package__))
    return templates("page").get_template(name).render(styles=styles, **values)
