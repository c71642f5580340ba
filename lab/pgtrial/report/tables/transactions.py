"""The tables of order entry's transactions: how many there were of each kind, and their response times."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from pgtrial.model.records.plan import LoadPoint
from pgtrial.model.records.trial import Trial
from pgtrial.report.data import StudyData
from pgtrial.report.table import NONE, Table, by_place

_CAPTION = (
    "Transactions by kind at {point}: the median over an arm's completed trials. A minute is one of the arm's own. "
    "New-orders that the specification has rolled back are a kind of their own; new-order transactions a minute are "
    "both rows together."
)

_FIGURES = ("per minute", "mean, ms", "p90, ms", "p99, ms")


def transaction_tables(data: StudyData) -> list[Table[Sequence[str]]]:
    """A table for each load point whose trials know kinds of transactions."""
    points = [point for point in data.plan.load_points if any(trial.kinds for trial in _trials(data, point))]
    return [_table(data, point) for point in points]


def _table(data: StudyData, point: LoadPoint) -> Table[Sequence[str]]:
    by_arm = {arm: [trial for trial in _trials(data, point) if trial.arm == arm] for arm in data.plan.arms}
    names = dict.fromkeys(kind.name for trial in _trials(data, point) for kind in trial.kinds)
    rows = [[name, *(cell for trials in by_arm.values() for cell in _cells(trials, name))] for name in names]
    heads = ["transaction", *(f"{arm}: {figure}" for arm in by_arm for figure in _FIGURES)]
    return Table(_CAPTION.format(point=point.label), rows, by_place(*heads, right=range(1, len(heads))))


def _cells(trials: Sequence[Trial], name: str) -> list[str]:
    """The figures of one kind in an arm."""
    found = [(trial, kind) for trial in trials for kind in trial.kinds if kind.name == name]
    speeds = [kind.transactions * 60 / trial.measured.duration_s for trial, kind in found if trial.measured]
    latencies = [kind.latency_us for _, kind in found if kind.latency_us is not None]
    times = [[each.mean for each in latencies], [each.p90 for each in latencies], [each.p99 for each in latencies]]
    return [
        f"{median(speeds):,.1f}" if speeds else NONE,
        *(f"{median(figures) / 1000:,.2f}" if figures else NONE for figures in times),
    ]


def _trials(data: StudyData, point: LoadPoint) -> list[Trial]:
    """The completed trials of a load point."""
    return [trial for trial in data.trials if trial.load_point == point and trial.status == "completed"]
