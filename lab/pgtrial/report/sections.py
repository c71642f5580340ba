"""The report's sections in their order: titles, leading words, charts and tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pgtrial.model.metrics import METRICS
from pgtrial.report.charts.capacity import capacity_charts
from pgtrial.report.charts.curve import curve_charts
from pgtrial.report.charts.differences import block_charts, cost_charts, forest
from pgtrial.report.charts.levels import latency_charts, size_charts, tps_charts
from pgtrial.report.charts.parts import Figure
from pgtrial.report.charts.published import published_charts
from pgtrial.report.charts.server import provider_charts, wait_charts, work_charts
from pgtrial.report.charts.slices import slice_charts
from pgtrial.report.charts.sweeps import cliff_charts, scaling_charts
from pgtrial.report.charts.tasks import task_charts
from pgtrial.report.charts.timeline import timelines
from pgtrial.report.data import StudyData
from pgtrial.report.table import Table
from pgtrial.report.tables import (
    capacity,
    certificate,
    jobs,
    metrics,
    plans,
    published,
    queries,
    results,
    scripts,
    servers,
    slices,
    statements,
    sweeps,
    tasks,
    trials,
    where,
)


@dataclass(frozen=True)
class Topic:
    """The topic of a section: its words, charts and tables. Its tables are folded in the page when `folded`."""

    key: str
    title: str
    lead: str | Callable[[StudyData], str]
    charts: Sequence[Callable[[StudyData], list[Figure]]] = ()
    tables: Sequence[Callable[[StudyData], Table[Any] | list[Table[Any]]]] = ()
    folded: bool = True


@dataclass(frozen=True)
class Section:
    """A section of a study's report."""

    topic: Topic
    figures: list[Figure]
    tables: list[Table[Any]]
    lead: str = ""
    """The topic's leading words for this study."""


CERTIFICATE = "certificate"
"""The key of the topic that comes first in the report of a self-test."""


def _lead_of_differences(data: StudyData) -> str:
    """Returns the introduction to the section on differences. It says that an arm is faster only if the primary metric
    is a speed, since a larger percentile or cost does not mean a faster arm."""
    metric = data.plan.primary_metric
    is_speed = metric is None or METRICS[metric].kind == "speed"
    right = "is faster" if is_speed else f"has more of {metric}"
    return (
        "Bars are 95% intervals, the shaded band is the margin within which arms count as equivalent. "
        f"Right of zero the arm {right} than the baseline."
    )


def _lead_of_costs(data: StudyData) -> str:
    """Costs that a study declares are part of its verdict."""
    lead = "What a committed transaction took, and how far it moved with the effect."
    if any(METRICS[name].kind == "cost" for name in data.plan.metrics):
        return lead
    return f"{lead} These costs explain the verdict; they are not part of it."


_OF_A_RATE = ("tps", "latency", "timeline", "costs")
"""The topics that do not apply to a load without a rate of transactions."""

_NOT_OF_ONE_ARM = ("ratio", "blocks")
"""The topics that compare arms."""

_TOPICS = (
    Topic(
        "tps",
        "Throughput",
        "Median trial per arm with its interval; small dots are single trials.",
        [tps_charts, size_charts],
        [results.level_table],
    ),
    Topic(
        "job",
        "The job",
        "What the job took on each arm, the median trial, and what it did to the server.",
        tables=[jobs.job_table],
        folded=False,
    ),
    Topic(
        "ratio",
        "Differences",
        _lead_of_differences,
        [forest],
        [metrics.metric_tables, results.ratio_table],
        folded=False,
    ),
    Topic(
        "sweeps",
        "Over clients and sizes",
        "How the throughput of each arm goes with the number of clients or the size of the data: curves over the "
        "median trials, with 95% bands. Arms are compared at each number in the table of differences.",
        [scaling_charts, cliff_charts],
        [sweeps.law_table, sweeps.cliff_table],
        folded=False,
    ),
    Topic(
        "capacity",
        "Capacity",
        "Each mark is a probe of some seconds at one rate, with its response time at the percentile of the promise, "
        "from the scheduled start. The dashed line is the limit. Vertical lines are the capacities, bands their 95% "
        "intervals.",
        [capacity_charts],
        [capacity.capacity_tables],
    ),
    Topic(
        "criteria",
        "Criteria",
        "What an application sees: each criterion with its winner, if there is one. Nothing is dropped: tasks that "
        "failed are failures, and never done.",
        [task_charts],
        [tasks.criteria_tables],
        folded=False,
    ),
    Topic(
        "statements",
        "Statements",
        "What became of the statements of the replay, by template: statements that differ in their values alone.",
        tables=[statements.statement_tables, statements.error_tables, statements.plan_tables],
        folded=False,
    ),
    Topic(
        "queries",
        "Queries",
        "What each query of the suite takes on both arms. Where it got slower or faster, its plans follow below.",
        tables=[queries.query_tables],
        folded=False,
    ),
    Topic(
        "scripts",
        "What each arm runs",
        scripts.lead_of_scripts,
        tables=[scripts.script_tables],
        folded=False,
    ),
    Topic(
        "plans",
        "Plans",
        "Whether the arms execute the statements of the load in the same way: for settings of the planner that is the "
        "answer.",
        tables=[plans.load_plan_tables],
    ),
    Topic(
        "regimes",
        "Regimes",
        "Trials whose speed went from one level to another while it was measured. An average across such a change is "
        "the speed of nothing, so the time before it (the burst) and after it (the sustained level) are read apart.",
        tables=[results.regime_table],
        folded=False,
    ),
    Topic(
        "published",
        "Beside the published figures",
        "The published study ran on another machine with other versions: compare how far its arms are apart, not its "
        "numbers.",
        [published_charts],
        [published.published_tables],
        folded=False,
    ),
    Topic(
        "latency",
        "Latency",
        "Marks are the median trial, bars reach from the lowest to the highest trial; logarithmic scale.",
        [latency_charts, curve_charts],
        [results.latency_table, metrics.curve_table, tasks.transaction_tables],
    ),
    Topic(
        "timeline",
        "Every second of every trial",
        "Thin lines are single trials, the thick line is the median of each arm; the shaded part is the warm-up.",
        [timelines],
    ),
    Topic(
        "provider",
        "What the provider measured",
        "Metrics of the provider's own monitoring over the time of a trial, the mean of an arm's trials: each value is "
        "a mean over a minute or more.",
        [provider_charts],
        [servers.provider_table],
    ),
    Topic(
        "server",
        "What the server did",
        "Active sessions by what they waited for, the mean of an arm's trials; one scale for all arms at a load point. "
        "A session that waits for nothing is on a CPU, or in the queue for one. Where the server runs on the lab's own "
        "machine, what that machine did follows: all of it, the client too.",
        [wait_charts, work_charts],
        [servers.server_tables],
    ),
    Topic(
        "costs",
        "Cost per transaction",
        _lead_of_costs,
        [cost_charts],
        [servers.cost_table],
    ),
    Topic(
        "blocks",
        "Block by block",
        "The unit of analysis. The shape says which arm the coin put first; the band is the interval. "
        "Hollow: provisional.",
        [block_charts],
        [results.block_table],
    ),
    Topic(
        "slices",
        "Slices",
        "The arms took turns in short slices of time, in random order within each round. The first chart is what the "
        "blocks reached in time. In the others marks are slices as they really were, dotted lines the planned borders.",
        [slice_charts],
        [slices.slice_tables],
        folded=False,
    ),
    Topic(
        "where",
        "Where it ran",
        "Which machine did what, and how the load came to the servers. The way is a part of what a client sees: it is "
        "fair only where it is the same for all arms.",
        tables=[where.where_tables],
        folded=False,
    ),
    Topic(
        "facts",
        "What was compared",
        "Facts collected inside each running arm.",
        tables=[where.facts_tables],
        folded=False,
    ),
    Topic(
        CERTIFICATE,
        "What this machine can tell",
        "From the self-test of this machine: how long it takes to find a difference, how many studies of two arms that "
        "are alike got a verdict, and how many studies found a difference that was planted.",
        tables=[certificate.certificate_tables],
    ),
    Topic("failures", "Failures", "", tables=[trials.failure_tables], folded=False),
    Topic(
        "method",
        "How it was measured",
        "",
        tables=[results.look_table, results.steadiness_table, trials.client_table, trials.phase_table],
        folded=False,
    ),
    Topic("trials", "All trials", "", tables=[trials.trial_table, results.regime_trial_table]),
)


def draw(key: str, data: StudyData) -> list[Figure]:
    """Returns all charts of a section."""
    return [figure for topic in _TOPICS if topic.key == key for charts in topic.charts for figure in charts(data)]


_SHORT = (
    "tps",
    "job",
    "ratio",
    "sweeps",
    "capacity",
    "criteria",
    "statements",
    "queries",
    "regimes",
    "published",
    "latency",
    "failures",
)
"""The sections of a short report."""


def sections(data: StudyData, *, short: bool = False) -> list[Section]:
    """Returns all sections that have something to show; tables without rows are left out."""
    made = []
    for topic in _TOPICS:
        if (short and topic.key not in _SHORT) or (topic.key in _OF_A_RATE and not data.plan.kind.has_rate):
            continue
        if not data.plan.others and topic.key in _NOT_OF_ONE_ARM:
            continue
        figures = draw(topic.key, data)
        groups = [table(data) for table in topic.tables]
        tables = [table for part in groups for table in (part if isinstance(part, list) else [part]) if table.rows]
        if figures or tables or topic.key == "method":
            lead = topic.lead if isinstance(topic.lead, str) else topic.lead(data)
            made.append(Section(topic, figures, tables, lead))
    if data.certificate is not None and data.certificate.created == data.plan.created:
        made.sort(key=lambda section: section.topic.key != CERTIFICATE)
    return made
