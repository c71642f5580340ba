"""What a provider measured of its servers over the time of a trial: a small chart for each metric."""

from __future__ import annotations

import polars as pl

from pgtrial.report.charts import Figure, chart
from pgtrial.report.charts.lines import Line, small_lines
from pgtrial.report.charts.seconds import bin_width
from pgtrial.report.data import StudyData
from pgtrial.report.series import provider_metrics_of, provider_series, provider_unit

_MOST_CHARTS = 16
"""Of all load points together, but two for each at least; the table has all."""


@chart("provider")
def provider_charts(data: StudyData) -> list[Figure]:
    """The mean of an arm's trials, by the metrics that limit a server first."""
    spans = [int(span) for frame in data.provider.values() for span in frame["span_s"].unique()]
    if not spans:
        return []
    span = max(spans)
    step = bin_width(data, span)
    points = data.plan.load_points
    shown = provider_metrics_of(data)[: max(2, _MOST_CHARTS // len(points))]
    figures = []
    for point in points:
        series = {arm: provider_series(data, point, arm, step) for arm in data.plan.arms}
        for metric in shown:
            lines = {arm: _line(frame, metric, step) for arm, frame in series.items()}
            known = {arm: line for arm, line in lines.items() if line}
            if known:
                title = f"{metric}: {point.label}"
                unit = provider_unit(metric)
                figures.append(small_lines(title, unit, data.plan.arms, known, interpolate="step-after"))
    return figures


def _line(series: pl.DataFrame, metric: str, step: int) -> Line:
    """The metric's values, the last one held until its time is over."""
    line = list(series.filter(pl.col("name") == metric).select("second", "value").iter_rows())
    return [*line, *((second + step, value) for second, value in line[-1:])]
