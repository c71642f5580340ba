"""Compares the ratios of arms in a published study with the ratios of the same arms in this study. The absolute speeds
were measured on different machines, and cannot be compared."""

from __future__ import annotations

import math
from collections.abc import Iterator

from pydantic import Field

from pgtrial.model.published import Claim as PublishedClaim
from pgtrial.model.published import Exactness, Figure, Point, Published, read_published, same_arm
from pgtrial.model.records import Record
from pgtrial.model.records.claims import Claim, Word
from pgtrial.model.units import decimals_for
from pgtrial.report.data import StudyData
from pgtrial.report.words import where


class Ratio(Record):
    """The speed of an arm divided by the speed of its baseline, in this study. A bound is None if the data do not bound
    the ratio."""

    arm: str
    baseline: str
    where: str = Field(
        description="The load point at which the ratio was measured, in words, or the mean over all load points."
    )
    low: float | None
    value: float | None = Field(
        description="The speed of the arm divided by the speed of the baseline; None before the first complete block."
    )
    high: float | None
    verdict: Word
    running: bool = Field(
        description="True if the study has not reached its first look (planned interim analysis). The value is then "
        "only the estimate from the blocks so far, without an interval."
    )


class Contrast(Record):
    """A pair of arms from a published figure with its published ratio, together with the same pair in this study if
    this study has it.

    If this study has several load points for the pair, there are two contrasts: one with the smallest ratio of this
    study and one with the largest.
    """

    figure: str
    series: str
    baseline: str
    at: str = Field(
        description="The position on the axis of the published figure at which the two arms are compared, in words; "
        "empty if the figure gives one value for the whole axis."
    )
    published: float = Field(
        description="The published speed of the arm in the field `series`, divided by the published speed of the arm "
        "in the field `baseline`."
    )
    exact: Exactness
    ours: Ratio | None


class Beside(Record):
    """The content of published.json: a published study, and its pairs of arms with the ratios of the same pairs in this
    study."""

    name: str
    published: Published
    contrasts: list[Contrast]


def beside(data: StudyData) -> Beside | None:
    """Returns the published study that this study names in its study file, with the ratios of both. Returns None if
    this study names none."""
    name = data.spec.study.published
    if name is None:
        return None
    published = read_published(name)
    contrasts = [contrast for figure in published.figures for contrast in _contrasts(data, figure)]
    return Beside(name=name, published=published, contrasts=contrasts)


def findings(data: StudyData, claim: PublishedClaim) -> list[Ratio]:
    """Returns the ratios that this study measured for a statement of the published article about two arms: either a
    single ratio, or the smallest and the largest ratio over the load points that match the statement."""
    return _ratios(data, claim.arms, claim.baseline, _load_points(data, claim.workload, None, None))


def ratio_text(ratio: Ratio) -> str:
    """Returns a ratio as text, such as `1.41x (1.35..1.48)`, or `1.4x so far` before there is an interval."""
    if ratio.value is None:
        return "no block yet"
    bounds = [bound - 1 for bound in (ratio.low, ratio.value, ratio.high) if bound is not None]
    decimals = decimals_for(bounds) + 2
    if ratio.running:
        return f"{ratio.value:.{decimals}f}x so far"
    if ratio.low is None or ratio.high is None:
        return f"{ratio.value:.{decimals}f}x (not bounded yet)"
    return f"{ratio.value:.{decimals}f}x ({ratio.low:.{decimals}f}..{ratio.high:.{decimals}f})"


def published_text(contrast: Contrast) -> str:
    """Returns a published ratio as text, with as many digits as the article has: `0.927x`, `about 7.1x`, `more than
    2x`."""
    return _EXACTNESS[contrast.exact].format(contrast.published)


_EXACTNESS = {"stated": "{:.3g}x", "approximate": "about {:.2g}x", "lower bound": "more than {:.3g}x"}


def _contrasts(data: StudyData, figure: Figure) -> Iterator[Contrast]:
    """Yields the published pairs of a figure, with the same pairs in this study. Each point of the figure is compared
    with the point of the figure's baseline at the same position of the axis."""
    base = next((series for series in figure.series if series.name == figure.baseline), None)
    if base is None:
        return
    points = [(drawn, point) for drawn in figure.series if drawn is not base for point in drawn.points]
    for series, point in points:
        reference = next((other.value for other in base.points if other.at in (point.at, None)), None)
        published = figure.ratio(point.value, reference) if reference else None
        if published is None:
            continue
        # no study of pgtrial makes claims on medians, extremes or the time for loading, so such points are not compared
        comparable = not isinstance(point.at, str) or point.at == "mean"
        inside = _load_points(data, figure.workload, figure.over, point.at) if comparable else []
        ratios: list[Ratio | None] = [*_ratios(data, series.arms, base.arms, inside)]
        for ours in ratios or [None]:
            yield Contrast(
                figure=figure.title,
                series=series.name,
                baseline=base.name,
                at=_at(figure, point),
                published=published,
                exact="approximate" if series.exact == "stated" and base.exact != "stated" else series.exact,
                ours=ours,
            )


def _at(figure: Figure, point: Point) -> str:
    if point.at is None or isinstance(point.at, str):
        return point.at or ""
    return f"{figure.over} {point.at:g}" if figure.over != "clients" else f"{point.at:g} clients"


def _load_points(data: StudyData, workload: str | None, over: str | None, at: float | str | None) -> list[int | None]:
    """Returns the load points of this study that match a point of a published figure. `over` is the axis of the figure,
    such as the number of clients, and `at` the position of the point on it. An entry None stands for the mean over all
    load points.

    A load point matches if it has the same workload, and the number of clients or the scale that is nearest to the
    published number. There is no mean over several scales, because it would hide the step at which the data outgrows a
    cache.
    """
    points = data.plan.load_points
    inside = [i for i, point in enumerate(points) if workload in (None, point.workload)]
    if over in ("clients", "scale") and isinstance(at, int | float) and inside:
        sizes = {i: points[i].clients if over == "clients" else points[i].scale for i in inside}
        nearest = min(sizes.values(), key=lambda size: abs(math.log(size / at)))
        inside = [i for i in inside if sizes[i] == nearest]
    if len(inside) == len(points) and len({point.scale for point in points}) == 1:
        return [None]
    return list(inside)


def _ratios(data: StudyData, arms: list[str], baselines: list[str], load_points: list[int | None]) -> list[Ratio]:
    """Returns this study's ratios of two published arms. There are ratios only if one of the two published arms is the
    baseline of this study, because a study compares each of its arms with its baseline only.

    If there are several ratios, returns the smallest and the largest. The others lie between these two and are in the
    table of differences.
    """
    baseline = data.plan.baseline
    pair = [same_arm(names, data.plan.arms) for names in (arms, baselines)]
    if baseline not in pair:
        return []
    turned = pair[0] == baseline
    other = pair[1] if turned else pair[0]
    claims = [claim for claim in (*data.result.primary, *data.result.by_load_point) if claim.arm == other]
    ratios = [_ratio(data, claim, turned=turned) for claim in claims if claim.load_point in load_points]
    known = sorted((ratio for ratio in ratios if ratio.value is not None), key=lambda ratio: ratio.value or 0.0)
    return [known[0], known[-1]] if len(known) > 2 else known or ratios[:1]


def _ratio(data: StudyData, claim: Claim, *, turned: bool) -> Ratio:
    """Returns a claim (the comparison of an arm with the baseline) as a ratio of their speeds.

    If `turned` is true, the published pair compares the two arms the other way round, with the baseline of this study
    on top, and the ratio is inverted to match it.
    """
    difference = claim.difference
    shares = (difference.low, difference.value, difference.high) if difference else (None, claim.running, None)
    low, value, high = (None if share is None else 1 + share for share in shares)
    if turned:
        low, value, high = (None if ratio is None else 1 / ratio for ratio in (high, value, low))
    arm, baseline = (claim.baseline, claim.arm) if turned else (claim.arm, claim.baseline)
    return Ratio(
        arm=arm,
        baseline=baseline,
        where=where(claim, data.plan),
        low=low,
        value=value,
        high=high,
        verdict=claim.verdict,
        running=difference is None,
    )
