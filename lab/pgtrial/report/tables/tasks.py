"""The table of criteria of a study on tasks, the published figures beside it, and the parts of a task's time."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from pgtrial.model.published import Published, read_published
from pgtrial.model.records.results import Criterion
from pgtrial.model.records.trial import TaskTimes, Trial
from pgtrial.model.units import as_written, percent
from pgtrial.report.data import StudyData
from pgtrial.report.table import NONE, Table, by_place
from pgtrial.report.words import interval_text
from pgtrial.statistics.criteria import FAILURES, SECONDARY
from pgtrial.statistics.deployments import Units
from pgtrial.statistics.levels import NOTABLE_SHARE

CREATION = "creation of the table"

_PUBLISHED_AT = {
    FAILURES: "failed: no connection in time",
    "shortest": "lowest",
    "longest": "highest",
    "mean": "mean",
    "median": "median",
    "under 5 s": "under 5 s",
    CREATION: "1,000,000 rows",
}
"""What the published study calls a criterion."""


def criteria_tables(data: StudyData) -> list[Table[Sequence[str]]]:
    """One table for each comparison, and one of the parts of a task's time; none of a study without tasks."""
    rows = data.result.criteria
    if not rows:
        return []
    comparisons = [[row for row in rows if row.arm == claim.arm] for claim in data.result.primary]
    return [*(_criteria(data, comparison) for comparison in comparisons), _parts(data)]


def _criteria(data: StudyData, rows: Sequence[Criterion]) -> Table[Sequence[str]]:
    arm, baseline = rows[0].arm, rows[0].baseline
    units = Units(data.plan)
    name = data.spec.study.published
    published = read_published(name) if name is not None else None
    series = _series(published) if published is not None else []
    table = [
        [
            row.what + (" (primary)" if row.primary else ""),
            *(_value(data, row, each) for each in (baseline, arm)),
            difference_text(data, row),
            row.winner + (" (by less than the margin)" if row.within_margin and row.verdict in _WON else ""),
            *(_published(published, each, row.what) for each in series),
        ]
        for row in rows
    ]
    created = [_created(data, each) for each in (baseline, arm)]
    if any(seconds is not None for seconds in created):
        times = [NONE if seconds is None else f"{seconds:.4g} s" for seconds in created]
        table.append([CREATION, *times, NONE, _ONCE, *(_published(published, each, CREATION) for each in series)])
    caption = (
        f"{arm} against {baseline}. A winner is a verdict over {units.unit}s, and so is no difference: within "
        f"{as_written(data.plan.margin)} of a time, {as_written(data.plan.margin)} of all tasks, or for failures "
        f"{as_written(NOTABLE_SHARE)} of all tasks. The mean is the primary claim. The other {SECONDARY} are secondary "
        f"and share the error of each look evenly, so that they hold together, and are decided after "
        f"{units.fewest(SECONDARY)} {units.unit}s at the earliest. Values are of the median trial, "
        "failures of all trials. Times are of completed tasks, but the mean counts a failed one with the time until it "
        "failed. A difference of times is one of speed (+25%: four fifths of the time), one of tasks is by trial."
    )
    heads = ["criterion", baseline, arm, "difference (95% interval)", "winner", *(f"published: {s}" for s in series)]
    return Table(caption, table, by_place(*heads, right=(1, 2, 3, *range(5, len(heads)))), folded=False)


_WON = ("better", "worse")
_ONCE = "not compared: made once"


def criterion_value(row: Criterion, arm: str) -> str:
    """`0.8281 s`, `14,926`, or a dash."""
    value = row.values.get(arm)
    if value is None:
        return NONE
    if row.unit == "s":
        return f"{value:.4g} s"
    return f"{value:,.0f}" if value == int(value) else f"{value:,.1f}"


def _value(data: StudyData, row: Criterion, arm: str) -> str:
    text = criterion_value(row, arm)
    of = [trial.tasks.planned for trial in data.trials if trial.arm == arm and trial.tasks is not None]
    if row.unit != "tasks" or text == NONE or not of:
        return text
    return f"{text} of {sum(of) if row.what == FAILURES else of[0]:,}"


def difference_text(data: StudyData, row: Criterion) -> str:
    """`+4.1% (+0.7..+7.7%)` of speed, `+13 tasks (-20..+45)`; a dash before the first look that could decide."""
    found = row.difference
    if found is None:
        return NONE
    if row.by == "ratio":
        return f"{percent(found.value, sign=True)} ({interval_text(found, sign=True)})"
    planned = next((trial.tasks.planned for trial in data.trials if trial.tasks is not None), 0)
    # a positive difference is the better one; it is written as the number of tasks
    shares = [found.low, found.value, found.high] if row.better == "more" else [found.high, found.value, found.low]
    sign = 1 if row.better == "more" else -1
    low, value, high = (None if share is None else round(sign * share * planned) for share in shares)
    bounds = "not bounded yet" if low is None or high is None else f"{low:+,}..{high:+,}"
    return f"{value:+,} ({bounds})".replace("+0", "0").replace("-0", "0")


def _created(data: StudyData, arm: str) -> float | None:
    times = [t.table_created_s for t in data.trials if t.arm == arm and t.table_created_s is not None]
    return median(times) if times else None


def _series(published: Published) -> list[str]:
    """The published arms that have figures of single statistics."""
    figures = [figure for figure in published.figures if figure.over == "statistic"]
    return list(dict.fromkeys(series.name for figure in figures for series in figure.series))


def _published(published: Published | None, series: str, criterion: str) -> str:
    at = _PUBLISHED_AT.get(criterion)
    for figure in published.figures if published is not None else []:
        for each in figure.series:
            for point in each.points:
                if each.name == series and at is not None and point.at == at:
                    return f"{point.value:.4g} s" if figure.unit == "s" else f"{point.value:,.0f}"
    return NONE


def _parts(data: StudyData) -> Table[Sequence[str]]:
    """Queue, server and both together."""
    rows = []
    for arm in data.plan.arms:
        trials = [trial for trial in data.trials if trial.arm == arm and trial.tasks is not None]
        for part, name in (("queue_us", "in the queue"), ("service_us", "on the server"), ("response_us", "response")):
            times = [time for trial in trials if (time := getattr(trial.tasks, part)) is not None]
            rows.append([arm, name, *(_of_median(times, figure) for figure in _FIGURES)])
        rows.append([arm, "waited in vain", *_waited(trials)])
    caption = (
        "Where the time of completed tasks went, the median trial: waiting for a connection of the application's pool, "
        "and with it. Waited in vain: tasks that got none in time, of all trials."
    )
    known = [row for row in rows if row[2] != NONE]
    return Table(caption, known, by_place("arm", "time", "mean", "median", "p95", "longest", right=(2, 3, 4, 5)))


_FIGURES = ("mean", "median", "p95", "max")


def _of_median(times: Sequence[TaskTimes], figure: str) -> str:
    known = [value / 1e6 for time in times if (value := getattr(time, figure)) is not None]
    return f"{median(known):.4g} s" if known else NONE


def _waited(trials: Sequence[Trial]) -> list[str]:
    waited = [
        t.tasks.timeout_waited_us for t in trials if t.tasks is not None and t.tasks.timeout_waited_us is not None
    ]
    if not waited:
        return [NONE] * len(_FIGURES)
    return [_of_median(waited, "mean"), NONE, NONE, f"{max(time.max for time in waited) / 1e6:.4g} s"]
