"""Rules on the quality of the answers, such as the recall of a search, if the pack (the workload) of a study measures
it. They check whether the quality is good enough, and whether it is equal on all arms."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median

from pgtrial.model.records.pack import Quality
from pgtrial.model.units import plural
from pgtrial.verdict.rules.case import Case, Concern, rule

_ROUNDING = 1e-9


@rule("unequal_quality", "the answers are not equally good", over_trials=True)
def unequal_quality(case: Case) -> Iterator[Concern]:
    """Finds arms whose answers are worse, or better, than the baseline's. An arm may be faster because its answers are
    worse."""
    for arm, cells in _by_arm(case):
        odd = [
            cell
            for cell in cells
            if cell.quality.reaches(cell.value)
            and abs(cell.value - cell.of_baseline) > cell.quality.tolerance + _ROUNDING
        ]
        if odd:
            first = odd[0]
            yield _concern(
                case,
                arm,
                odd,
                f"The answers are not equally good: {first.quality.text(first.value)} of {arm} against "
                f"{first.of_baseline:.4g} of {case.baseline} ({{where}}), further apart than the tolerance of "
                f"{first.quality.tolerance:g}.",
                f"Tune the arms until their {first.quality.name} is equal, or set [load.pack] tolerance; then compare "
                "their speed.",
            )


@rule("quality_not_reached", "the answers are not good enough", over_trials=True)
def quality_not_reached(case: Case) -> Iterator[Concern]:
    """Finds arms that do not reach the quality that the study asks for. A comparison of their speed would answer
    another question."""
    for arm, cells in _by_arm(case):
        odd = [cell for cell in cells if not cell.quality.reaches(cell.value)]
        if odd:
            first = odd[0]
            least = "least" if first.quality.better == "more" else "most"
            yield _concern(
                case,
                arm,
                odd,
                f"{first.quality.text(first.value)} of {arm} ({{where}}) is not the {first.quality.at_least:g} that "
                f"the study asks for at {least}.",
                f"Tune the arm until it reaches that {first.quality.name}, or change [load.pack] at_least.",
            )


@dataclass(frozen=True)
class _Cell:
    """The median quality of an arm's trials at a load point, and the median quality of the baseline's trials there."""

    point: int
    quality: Quality
    value: float
    of_baseline: float


def _by_arm(case: Case) -> list[tuple[str, list[_Cell]]]:
    """Returns, for each arm, the load points at which the quality is measured.

    An arm whose trials all failed is left out; other rules judge it by its failures.
    """
    cells: dict[str, list[_Cell]] = {}
    for point, load_point in enumerate(case.plan.load_points):
        quality = None if load_point.pack is None else load_point.pack.quality
        if quality is None:
            continue
        known = {
            arm: [trial.quality for trial in case.grid.of(arm, point) if trial.quality is not None]
            for arm in case.plan.arms
        }
        values = {arm: median(qualities) for arm, qualities in known.items() if qualities}
        if (base := values.get(case.baseline)) is not None:
            for arm, value in values.items():
                cells.setdefault(arm, []).append(_Cell(point, quality, value, base))
    return list(cells.items())


def _concern(case: Case, arm: str, odd: list[_Cell], message: str, cure: str) -> Concern:
    """Returns a concern (problem) that withholds the verdicts on an arm at the load points of `odd`. Its message names
    the first of these load points."""
    label = case.plan.load_points[odd[0].point].label
    label += f", and at {plural(len(odd) - 1, 'more load point')}" if len(odd) > 1 else ""
    cells = [(arm, cell.point) for cell in odd]
    return Concern([arm], message.replace("{where}", label), cure, "withhold", cells=cells)
