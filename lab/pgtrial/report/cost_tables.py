"""The tables of what a committed transaction cost."""

from __future__ import annotations

from pgtrial.report.data import StudyData
from pgtrial.report.tables import NONE, Table
from pgtrial.report.words import cost_text
from pgtrial.statistics.costs import clearly


def cost_tables(data: StudyData) -> list[Table]:
    """Costs by load point and arm; the rows that differ clearly stand out."""
    costs = data.result.costs
    margin = data.plan.margin
    marked = frozenset(i for i, cost in enumerate(costs) if clearly(cost, margin))
    rows = [
        [
            f"{cost.what}, {cost.unit}" if cost.unit else cost.what,
            data.plan.load_points[cost.load_point].label if cost.load_point is not None else "mean of the ratios",
            cost.arm,
            _number(cost.median),
            f"{_number(cost.low)} to {_number(cost.high)}" if cost.low is not None else NONE,
            cost_text(cost) or NONE,
            ("yes" if clearly(cost, margin) else "no") if cost.difference else NONE,
            str(cost.blocks) if cost.difference else NONE,
        ]
        for cost in costs
    ]
    heads = ["cost", "load point", "arm", "median", "95% interval", "against the baseline", "clearly", "blocks"]
    return [Table(_CAPTION, heads, rows, frozenset({3, 4, 5, 7}), marked)] if rows else []


_CAPTION = (
    "By committed transaction: the median trial with a distribution-free interval of at least 95%; then the "
    "cost against the baseline's within blocks, estimated by the verdict's rule, with its interval. Clearly: the "
    "interval lies beyond the margin. Each cost is a family of its own, so that among many one may stand out by "
    "chance more often than in 5% of studies. CPU of the machine, context switches, device and network are of all that "
    "ran on the lab's own machine; what no arm has more than next to none of is left out."
)


def _number(value: float | None) -> str:
    if value is None:
        return NONE
    places = 0 if value >= 100 else 1 if value >= 10 else 2 if value >= 1 else 4
    return f"{value:,.{places}f}"
