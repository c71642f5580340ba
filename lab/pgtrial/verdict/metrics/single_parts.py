"""The verdicts on the single parts of a load, which are the queries of a suite and the statements of a replay, as the
stopping rule of a study needs them: on which arms a part is slower, and on which arms a part is undecided."""

from __future__ import annotations

from pgtrial.verdict.grid import Grid
from pgtrial.verdict.metrics.queries import series_of_queries
from pgtrial.verdict.metrics.statements import series_of_statements
from pgtrial.verdict.series import Series


def undecided_parts(grid: Grid) -> set[str]:
    """Returns the arms for which at least one part of the load has no verdict yet. In a one-sided study, a part on
    which a loss of the margin or more is excluded counts as decided.

    Statements count only in studies in which they share one error with the mean over all of them (`error = "all"`),
    such as gates. Other studies of a replay are about the mean alone, and would hardly ever end early otherwise, since
    a replay can have dozens of statements that take little time.
    """
    one_sided = grid.plan.is_one_sided
    return {
        arm
        for arm in grid.plan.others
        if any(not (part.decided or (one_sided and part.not_worse)) for part in _deciding_parts(grid, arm))
    }


def slower_parts(grid: Grid) -> set[str]:
    """Returns the arms on which at least one part of the load is certainly slower, by more than the margin allows."""
    return {
        arm
        for arm in grid.plan.others
        if any(
            part.decision.verdict == "worse" and not part.within_margin
            for part in (*series_of_queries(grid, arm), *series_of_statements(grid, arm))
        )
    }


def _deciding_parts(grid: Grid, arm: str) -> list[Series]:
    statements = series_of_statements(grid, arm) if grid.plan.families > 1 else []
    return [*series_of_queries(grid, arm), *statements]
