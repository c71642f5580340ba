"""The chart of a screening study: a bar with its interval for each factor, the best one first."""

from __future__ import annotations

from typing import Any

from pgtrial.model.records.claims import Claim
from pgtrial.report.charts.intervals import bounds_of, interval_axis, interval_chart, interval_row
from pgtrial.report.charts.parts import Figure
from pgtrial.report.data import StudyData
from pgtrial.report.words import measure_text


def factor_chart(data: StudyData) -> list[Figure]:
    """Returns one chart with a row for each factor of a screening study; no chart for other studies, or before the
    factors can be told apart."""
    rows = [row for claim in data.result.primary if (row := _row(claim)) is not None] if data.plan.factors else []
    if not rows:
        return []
    margin, title = data.plan.margin, "The effect of each factor"
    reach = 1.1 * max([*map(abs, bounds_of(rows)), 1.6 * margin])
    measured = f"{measure_text(data.plan)}, second level against the first"
    x = interval_axis(measured, max(-1.0, -reach), reach, reach)
    return [interval_chart(title, rows, x, margin, title, noun="factor", bars=True)]


def _row(claim: Claim) -> dict[str, Any] | None:
    name, _, second = claim.arm.partition("=")
    label = f"{name}|{second} against {claim.baseline.partition('=')[2]}"
    return interval_row(claim, label, f"{claim.arm} against {claim.baseline}")
