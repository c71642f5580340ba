"""The report's charts. A new chart is a new file with a function that draws it, and a line in CHARTS."""

from __future__ import annotations

from collections.abc import Callable

from pgtrial.report.charts.blocks import block_charts
from pgtrial.report.charts.canaries import canary_chart
from pgtrial.report.charts.latency import latency_charts
from pgtrial.report.charts.parts import Figure
from pgtrial.report.charts.published import published_charts
from pgtrial.report.charts.ratio import forest
from pgtrial.report.charts.server import provider_charts, wait_charts, work_charts
from pgtrial.report.charts.tasks import task_charts
from pgtrial.report.charts.timeline import timelines
from pgtrial.report.charts.tps import size_charts, tps_charts
from pgtrial.report.data import StudyData

CHARTS: tuple[tuple[str, Callable[[StudyData], list[Figure]]], ...] = (
    ("tps", tps_charts),
    ("tps", size_charts),
    ("ratio", forest),
    ("criteria", task_charts),
    ("published", published_charts),
    ("latency", latency_charts),
    ("timeline", timelines),
    ("provider", provider_charts),
    ("server", wait_charts),
    ("server", work_charts),
    ("blocks", block_charts),
    ("canary", canary_chart),
)
"""Every chart: the key of its section and the function that draws it; in a section they stand in this order."""


def draw(section: str, data: StudyData) -> list[Figure]:
    """All charts of a section."""
    return [figure for key, charts in CHARTS if key == section for figure in charts(data)]
