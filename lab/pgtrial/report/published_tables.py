"""The tables of the section beside the published figures: source, contrasts, claims, and the figures as published."""

from __future__ import annotations

from pgtrial.model.published.figures import Figure, Point, Published
from pgtrial.report.data import StudyData
from pgtrial.report.published import Beside, beside, findings, published_text, ratio_text
from pgtrial.report.tables import NONE, Table


def published_tables(data: StudyData) -> list[Table]:
    """All of them; none when the study names no published figures."""
    found = beside(data)
    if found is None:
        return []
    return [_contrasts(found), _claims(data, found.published), _source(found.published), _figures(found.published)]


def _contrasts(found: Beside) -> Table:
    rows = []
    for each in found.contrasts:
        ours, at = each.ours, f", {each.at}" if each.at else ""
        rows.append(
            [
                f"{each.series} / {each.baseline} ({each.figure}{at})",
                published_text(each),
                ratio_text(ours) if ours else NONE,
                ours.verdict if ours else NONE,
                f"{ours.arm} / {ours.baseline} ({ours.where})" if ours else NONE,
            ]
        )
    caption = (
        "How many times as fast one arm is as another, as published and in this study with its 95% sequential "
        "interval; of several load points the smallest and the largest ratio. "
        f"{NONE}: this study does not compare these arms on this load. Published ratios have no interval."
    )
    heads = ["published arms", "published", "this study", "verdict", "its arms"]
    return Table(caption, heads, rows, frozenset({1, 2}), folded=False)


def _claims(data: StudyData, published: Published) -> Table:
    rows = []
    for claim in published.claims:
        ratios = findings(data, claim)
        told = [
            f"{ratio.arm} / {ratio.baseline}: {ratio_text(ratio)}, {ratio.verdict}, {ratio.where}" for ratio in ratios
        ]
        rows.append([claim.text, "; ".join(told) or NONE])
    caption = (
        "What the article says in words, and what this study has on it: of several load points the smallest and the "
        "largest ratio."
    )
    return Table(caption, ["published", "this study"], rows, folded=False)


def _source(published: Published) -> Table:
    source = published.source
    rows = [["title", source.title], ["by", source.by], ["year", source.year]]
    rows += [["address", source.url]] if source.url else []
    rows += [[word, what] for part in (published.machine, published.parameters) for word, what in part.items()]
    return Table(
        "The published study: its source, its machine and its parameters.", ["part", "in words"], rows, folded=False
    )


def _figures(published: Published) -> Table:
    rows = [
        [figure.title, series.name, _at(figure, point), f"{point.value:,.10g}", figure.unit, series.exact, figure.note]
        for figure in published.figures
        for series in figure.series
        for point in series.points
    ]
    caption = "The figures as published; `stated`: a number of the text, `approximate`: the text says about."
    heads = ["figure", "arm", "at", "value", "unit", "how exact", "remark"]
    return Table(caption, heads, rows, frozenset({3}), folded=True)


def _at(figure: Figure, point: Point) -> str:
    if point.at is None:
        return f"any {figure.over}"
    return point.at if isinstance(point.at, str) else f"{figure.over} {point.at:g}"
