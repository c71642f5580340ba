"""The tables of regimes: by arm and load point, and trial by trial where one did not keep its level."""

from __future__ import annotations

from pgtrial.model.records.results import CellRegimes, Spread, TrialRegime
from pgtrial.report.data import StudyData
from pgtrial.report.tables import NONE, Table, levels_text


def regime_table(data: StudyData) -> Table:
    """Classes of the trials, the levels on both sides of the change and when it came."""
    rows = [
        [
            data.plan.load_points[cell.load_point].label,
            cell.arm,
            str(cell.trials),
            ", ".join(f"{shape}: {number}" for shape, number in cell.shapes.items()) or NONE,
            _spread(cell.before),
            _spread(cell.after),
            _spread(cell.changed_s),
            _spread(cell.settled_s),
            _spread(cell.changed_committed),
            "by regime" if cell.changes else "whole trials",
        ]
        for cell in data.result.regimes
    ]
    marked = frozenset(i for i, cell in enumerate(data.result.regimes) if cell.changes)
    caption = (
        "Levels that the trials kept, each the median second, and when they changed: the median trial, in brackets the "
        "lowest and highest. Where more than one in four trials of an arm change, it is read by regime and no average "
        "across the change is given. Credits are spent by work, so the committed transactions stand beside the time."
    )
    heads = ["load point", "arm", "trials", "classes", "tps before", "tps after", "changes at s", "settled from s",
             "committed by then", "read as"]  # fmt: skip
    return Table(caption, heads, rows, frozenset({2, 4, 5, 6, 7, 8}), marked)


def _spread(spread: Spread | None) -> str:
    if spread is None:
        return NONE
    if spread.lowest == spread.highest:
        return f"{spread.median:,.0f}"
    return f"{spread.median:,.0f} ({spread.lowest:,.0f} to {spread.highest:,.0f})"


def regime_trial_table(data: StudyData) -> Table:
    """Every trial that did not keep one level."""
    rows = [_trial(data, cell, trial) for cell in data.result.regimes for trial in cell.not_flat]
    caption = "Trials that did not keep one level: tps of each level, and where it ended."
    heads = ["trial", "block", "load point", "arm", "class", "levels", "changes at s", "committed by then"]
    return Table(caption, heads, sorted(rows, key=lambda row: int(row[0])), frozenset({0, 1}))


def _trial(data: StudyData, cell: CellRegimes, trial: TrialRegime) -> list[str]:
    segments = trial.regime.segments
    return [
        str(trial.index + 1),
        str(trial.block + 1),
        data.plan.load_points[cell.load_point].label,
        cell.arm,
        trial.regime.shape,
        levels_text([segment.tps for segment in segments]),
        ", ".join(str(segment.end_s) for segment in segments[:-1]),
        ", ".join(f"{segment.committed:,}" for segment in segments[:-1]),
    ]
