"""The tables of applications: the criteria by which a study of tasks (transactions that wait for a connection of a
pool) compares arms, with published figures next to them; the two parts of a task's time; and the numbers and times of
each kind of transaction of order entry, a load like TPC-C."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

from pgtrial.model.published import read_published
from pgtrial.model.records.results import Criterion
from pgtrial.model.records.trial import TaskTimes, Trial
from pgtrial.model.units import as_written
from pgtrial.report.data import StudyData
from pgtrial.report.table import NONE, Table, by_position
from pgtrial.report.words import signed
from pgtrial.verdict.levels import NOTABLE_SHARE
from pgtrial.verdict.metrics.criteria import FAILURES, SECONDARY, secondary
from pgtrial.verdict.units import Units

_CREATION = "creation of the table"

_PUBLISHED_AT = {
    FAILURES: "failed: no connection in time",
    "shortest": "lowest",
    "longest": "highest",
    "mean": "mean",
    "median": "median",
    "under 5 s": "under 5 s",
    _CREATION: "1,000,000 rows",
}
"""For each criterion, the name that the published study gives to it."""


def criteria_tables(data: StudyData) -> list[Table[Sequence[str]]]:
    """Returns one table for each comparison, with a row for each criterion such as the mean or the longest time of a
    task. Then follows a table of the two parts of a task's time. The result is empty if the study has no tasks."""
    rows = data.result.criteria
    if not rows:
        return []
    comparisons = [[row for row in rows if row.arm == claim.arm] for claim in data.result.primary]
    return [*(_criteria(data, comparison) for comparison in comparisons), _parts(data)]


def _criteria(data: StudyData, rows: Sequence[Criterion]) -> Table[Sequence[str]]:
    arm, baseline = rows[0].arm, rows[0].baseline
    units = Units(data.plan)
    published = _published(data.spec.study.published)
    table = [
        [
            row.what + (" (primary)" if row.primary else ""),
            *(_value(data, row, name) for name in (baseline, arm)),
            _difference(data, row),
            row.winner + (" (by less than the margin)" if row.within_margin and row.verdict in _WON else ""),
            *(texts.get(_PUBLISHED_AT.get(row.what, ""), NONE) for texts in published.values()),
        ]
        for row in rows
    ]
    created = [_created(data, name) for name in (baseline, arm)]
    if created != [NONE, NONE]:
        times = [texts.get(_PUBLISHED_AT[_CREATION], NONE) for texts in published.values()]
        table.append([_CREATION, *created, NONE, "not compared: made once", *times])
    caption = (
        f"{arm} against {baseline}. A winner is a verdict over {units.unit}s, and so is no difference: within "
        f"{as_written(data.plan.margin)} of a time, {as_written(data.plan.margin)} of all tasks, or for failures "
        f"{as_written(NOTABLE_SHARE)} of all tasks. The mean is the primary claim. The other {SECONDARY} are secondary "
        f"and share the error of each look evenly, so that they hold together, and are decided after "
        f"{units.fewest(secondary(data.plan))} {units.unit}s at the earliest. Values are of the median trial, "
        "failures of all trials. Times are of completed tasks, but the mean counts a failed one with the time until it "
        "failed. A difference of times is one of speed (+25%: four fifths of the time), one of tasks is by trial."
    )
    heads = ["criterion", baseline, arm, "difference (95% interval)", "winner", *(f"published: {s}" for s in published)]
    return Table(caption, table, by_position(*heads, right=(1, 2, 3, *range(5, len(heads)))))


_WON = ("better", "worse")


def criterion_value(row: Criterion, arm: str) -> str:
    """Returns the value of a criterion, such as the mean time of a task, in one arm as text: `0.8281 s` or `14,926`, or
    a dash if it is not known."""
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


def _difference(data: StudyData, row: Criterion) -> str:
    """Returns the difference of the two arms in a criterion as text. A difference of speeds has the form `+4.1%
    (+0.7..+7.7%)`, a difference of numbers of tasks the form `+13 tasks (-20..+45)`. Returns a dash before the first
    look (planned interim analysis) that has enough blocks for a verdict."""
    difference = row.difference
    if difference is None:
        return NONE
    if row.by == "ratio":
        return f"{signed(difference.value)} ({difference.text()})"
    planned = next((trial.tasks.planned for trial in data.trials if trial.tasks is not None), 0)
    # a positive difference means better, so its sign is changed for criteria of which less is better
    tasks = planned if row.better == "more" else -planned
    ends = sorted(round(share * tasks) for share in difference.known)
    bounds = f"{ends[0]:+,}..{ends[-1]:+,}" if len(ends) == 3 else "not bounded yet"
    return f"{round(difference.value * tasks):+,} ({bounds})".replace("+0", "0").replace("-0", "0")


def _created(data: StudyData, arm: str) -> str:
    times = [t.table_created_s for t in data.trials if t.arm == arm and t.table_created_s is not None]
    return f"{median(times):.4g} s" if times else NONE


def _published(name: str | None) -> Mapping[str, Mapping[object, str]]:
    """Returns the values of each arm in the published study called `name`. The inner key is the statistic, such as
    `mean` or `highest`. If several published figures have the same statistic, the value of the first figure is
    returned."""
    texts: dict[str, dict[object, str]] = {}
    figures = read_published(name).figures if name is not None else []
    for figure in (figure for figure in figures if figure.over == "statistic"):
        for series in figure.series:
            of_arm = texts.setdefault(series.name, {})
            for point in series.points:
                of_arm.setdefault(point.at, f"{point.value:.4g} s" if figure.unit == "s" else f"{point.value:,.0f}")
    return texts


def _parts(data: StudyData) -> Table[Sequence[str]]:
    """Returns the table of a task's time: in the queue, on the server, and in total."""
    rows = []
    for arm in data.plan.arms:
        tasks = [trial.tasks for trial in data.trials if trial.arm == arm and trial.tasks is not None]
        for part, name in (("queue_us", "in the queue"), ("service_us", "on the server"), ("response_us", "response")):
            times = [time for task in tasks if (time := getattr(task, part)) is not None]
            rows.append([arm, name, *(_of_median(times, figure) for figure in ("mean", "median", "p95", "max"))])
        waited = [task.timeout_waited_us for task in tasks if task.timeout_waited_us is not None]
        longest = f"{max(time.max for time in waited) / 1e6:.4g} s" if waited else NONE
        rows.append([arm, "waited in vain", _of_median(waited, "mean"), NONE, NONE, longest])
    caption = (
        "The time of completed tasks in the median trial: waiting for a connection of the application's "
        "pool, and with the connection. Waited in vain: tasks of all trials that got no connection in "
        "time."
    )
    known = [row for row in rows if row[2] != NONE]
    return Table(caption, known, by_position("arm", "time", "mean", "median", "p95", "longest", right=(2, 3, 4, 5)))


def _of_median(times: Sequence[TaskTimes], figure: str) -> str:
    known = [value / 1e6 for time in times if (value := getattr(time, figure)) is not None]
    return f"{median(known):.4g} s" if known else NONE


_BY_KIND = (
    "Transactions by kind at {point}: the median over the completed trials of an arm. A minute is one of "
    "the arm's own time. New-orders that are rolled back, as the specification demands, are a kind "
    "of their own; the new-order transactions per minute are those of both rows together."
)


def transaction_tables(data: StudyData) -> list[Table[Sequence[str]]]:
    """Returns one table for each load point whose trials have several kinds of transactions, such as those of order
    entry. A row has the numbers and response times of one kind."""
    heads = [
        f"{arm}: {figure}" for arm in data.plan.arms for figure in ("per minute", "mean, ms", "p90, ms", "p99, ms")
    ]
    columns = by_position("transaction", *heads, right=range(1, 1 + len(heads)))
    tables = []
    for point in data.plan.load_points:
        trials = [trial for trial in data.trials if trial.load_point == point and trial.status == "completed"]
        by_arm = [[trial for trial in trials if trial.arm == arm] for arm in data.plan.arms]
        names = dict.fromkeys(kind.name for trial in trials for kind in trial.kinds)
        rows = [[name, *(cell for of_arm in by_arm for cell in _cells(of_arm, name))] for name in names]
        tables += [Table(_BY_KIND.format(point=point.label), rows, columns)] if rows else []
    return tables


def _cells(trials: Sequence[Trial], name: str) -> list[str]:
    """Returns the figures of one kind of transaction in an arm, as text."""
    kinds = [(trial, kind) for trial in trials for kind in trial.kinds if kind.name == name]
    speeds = [kind.transactions * 60 / trial.measured.duration_s for trial, kind in kinds if trial.measured]
    latencies = [kind.latency_us for _, kind in kinds if kind.latency_us is not None]
    times = [
        [latency.mean for latency in latencies],
        [latency.p90 for latency in latencies],
        [latency.p99 for latency in latencies],
    ]
    return [
        f"{median(speeds):,.1f}" if speeds else NONE,
        *(f"{median(figures) / 1000:,.2f}" if figures else NONE for figures in times),
    ]
