"""The table of what a provider measured of its servers."""

from __future__ import annotations

from pgtrial.report.data import StudyData
from pgtrial.report.series import provider_means, provider_metrics_of, provider_unit
from pgtrial.report.tables import NONE, Table


def provider_tables(data: StudyData) -> list[Table]:
    """Empty for a study that imported no metrics."""
    if not data.provider:
        return []
    rows = []
    for point in data.plan.load_points:
        means = {arm: provider_means(data, point, arm) for arm in data.plan.arms}
        for metric in provider_metrics_of(data):
            cells = [f"{own[metric]:,.4g}" if metric in own else NONE for own in means.values()]
            rows.append([metric, provider_unit(metric), point.label, *cells])
    caption = (
        "Mean of the provider's own values that lie wholly within the measured part, over all trials of an arm. A "
        "trial shorter than two of the provider's minutes may have none."
    )
    heads = ["metric", "unit", "load point", *data.plan.arms]
    return [Table(caption, heads, rows, frozenset(range(3, len(heads))))]
