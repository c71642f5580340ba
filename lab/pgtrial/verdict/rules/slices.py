"""A rule on trials in which arms take turns in slices of time. The slice of one arm may change the speed of the next
arm (carry-over), which distorts the comparison."""

from __future__ import annotations

from collections.abc import Iterator

from pgtrial.model.units import change
from pgtrial.verdict.rules.case import Case, Concern, rule


@rule("carry_over", "slices disturb those after them", over_trials=True)
def carry_over(case: Case) -> Iterator[Concern]:
    """Yields one concern (problem) for each comparison that carry-over (the effect of one arm's slice on the speed of
    the next arm) changes by more than the margin, if the interval of this change excludes 0."""
    for shift in case.shifts:
        moved = shift.difference
        if moved is None or moved.low is None or moved.high is None or abs(moved.value) <= case.plan.margin:
            continue
        if moved.low > 0 or moved.high < 0:
            averaged_over = "the mean" if shift.load_point is None else case.plan.load_points[shift.load_point].label
            yield Concern(
                [shift.arm],
                f"What slices leave behind for the next one moves {shift.arm} against {shift.baseline} by "
                f"{change(moved.value)} ({averaged_over}, 95% interval {moved.text()}): the arms do not lose the "
                "same to each other.",
                'Run the study without slices ([load] interleave = "off"), or with longer ones.',
            )
