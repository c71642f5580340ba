"""The curve of percentiles for a load at a given rate: how much the response times of an arm differ from the
baseline's, from p50 to p99.9.

At each look (interim analysis), the percentiles of a comparison share the allowed probability of an error, so that
their intervals together form one band. The curve shows which response times differ. It gives no verdicts: these are
only given on the metrics that the study declares.
"""

from __future__ import annotations

from collections.abc import Sequence

from pgtrial.model.metrics import PERCENTILES
from pgtrial.model.records.claims import Claim
from pgtrial.model.records.results import CurvePoint
from pgtrial.verdict.declared import objection
from pgtrial.verdict.family import sharing
from pgtrial.verdict.grid import Grid
from pgtrial.verdict.percentiles import percentile_of
from pgtrial.verdict.series import described


def curve(grid: Grid, primary: Sequence[Claim]) -> list[CurvePoint]:
    """Returns the comparison of each percentile with the baseline's, for each arm and load point. Percentiles that rest
    on too few slow transactions are left out. The result is empty for tasks and for a load without a given rate."""
    plan = grid.plan
    if not plan.is_paced or not plan.kind.has_percentiles:
        return []
    points = [
        _point(grid, claim, load_point, name) for claim in primary for load_point in grid.points for name in PERCENTILES
    ]
    return [point for point in points if point is not None]


def _point(grid: Grid, claim: Claim, load_point: int, name: str) -> CurvePoint | None:
    """Returns the comparison of one percentile with the baseline's. Returns None if too few transactions are slower
    than the percentile, or if its value is not known in some trial."""
    plan = grid.plan
    pairs = [grid.of(arm, load_point) for arm in (claim.arm, claim.baseline)]
    served = [trial for of_arm in pairs for trial in of_arm if grid.goodput(trial)]
    if not served or objection(plan, name, served) is not None:
        return None
    metric, claims = percentile_of(plan, name), len(PERCENTILES) * sharing(plan)
    blocks, difference = described(grid, grid.gains(claim.arm, [load_point], metric), claims, metric.scale)
    return CurvePoint(
        percentile=name,
        arm=claim.arm,
        baseline=claim.baseline,
        load_point=load_point,
        difference=difference,
        claims=claims,
        blocks=blocks,
    )
