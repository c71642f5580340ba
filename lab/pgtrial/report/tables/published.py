"""The tables of the section that compares published figures with this study: the source of the figures, the published
pairs of arms with their ratios here, the statements of the article, and the figures as published."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pgtrial.model.published import Figure, Point, Published
from pgtrial.report.data import StudyData
from pgtrial.report.published import Beside, Contrast, Ratio, beside, findings, published_text, ratio_text
from pgtrial.report.table import NONE, Column, Table, by_position, number


def published_tables(data: StudyData) -> list[Table[Any]]:
    """Returns all tables on published figures. The result is empty if the study names no published figures."""
    both = beside(data)
    if both is None:
        return []
    return [_contrasts(both), _claims(data, both.published), _source(both.published), _figures(both.published)]


def _contrasts(both: Beside) -> Table[Contrast]:
    return Table(
        "How many times as fast one arm is as another, as published and in this study with its 95% sequential "
        "interval; of several load points the smallest and the largest ratio. "
        f"{NONE}: this study does not compare these arms on this load. Published ratios have no interval.",
        both.contrasts,
        [
            Column("published arms", _published_arms),
            number("published", published_text),
            number("this study", lambda contrast: contrast.ours, ratio_text),
            Column("verdict", lambda contrast: contrast.ours and contrast.ours.verdict),
            Column(
                "its arms", lambda contrast: contrast.ours, lambda ours: f"{ours.arm} / {ours.baseline} ({ours.where})"
            ),
        ],
    )


def _published_arms(contrast: Contrast) -> str:
    at = f", {contrast.at}" if contrast.at else ""
    return f"{contrast.series} / {contrast.baseline} ({contrast.figure}{at})"


def _claims(data: StudyData, published: Published) -> Table[Sequence[str]]:
    return Table(
        "What the article says in words, and what this study has on it: of several load points the smallest and the "
        "largest ratio.",
        [[claim.text, "; ".join(map(_finding, findings(data, claim))) or NONE] for claim in published.claims],
        by_position("published", "this study"),
    )


def _finding(ratio: Ratio) -> str:
    return f"{ratio.arm} / {ratio.baseline}: {ratio_text(ratio)}, {ratio.verdict}, {ratio.where}"


def _source(published: Published) -> Table[Sequence[str]]:
    source = published.source
    rows = [("title", source.title), ("by", source.by), ("year", source.year)]
    rows += [("address", source.url)] if source.url else []
    rows += [*published.machine.items(), *published.parameters.items()]
    return Table(
        "The published study: its source, its machine and its parameters.",
        rows,
        by_position("part", "in words"),
    )


def _figures(published: Published) -> Table[Sequence[str]]:
    rows = [
        (figure.title, series.name, _at(figure, point), f"{point.value:,.10g}", figure.unit, series.exact, figure.note)
        for figure in published.figures
        for series in figure.series
        for point in series.points
    ]
    return Table(
        "The figures as published; `stated`: a number of the text, `approximate`: the text says about.",
        rows,
        by_position("figure", "arm", "at", "value", "unit", "how exact", "remark", right=[3]),
        folded=True,
    )


def _at(figure: Figure, point: Point) -> str:
    if point.at is None:
        return f"any {figure.over}"
    return point.at if isinstance(point.at, str) else f"{figure.over} {point.at:g}"
