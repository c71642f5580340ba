"""The sections of the report in their order, with their titles, introductions, charts and tables."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

from pgtrial.report.charts.capacity import capacity_charts
from pgtrial.report.charts.curve import curve_charts
from pgtrial.report.charts.differences import block_charts, cost_charts, forest
from pgtrial.report.charts.levels import latency_charts, size_charts, tps_charts
from pgtrial.report.charts.parts import Figure
from pgtrial.report.charts.published import published_charts
from pgtrial.report.charts.screen import factor_chart
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
    instructions,
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
from pgtrial.report.tables.screen import screen_tables


@dataclass(frozen=True)
class Topic:
    """The topic of a section, with its text, charts and tables. If `folded` is true, the page hides its tables until
    the reader opens them."""

    key: str
    title: str
    lead: str | Callable[[StudyData], str]
    charts: Sequence[Callable[[StudyData], list[Figure]]] = ()
    tables: Sequence[Callable[[StudyData], Table[Any] | list[Table[Any]]]] = ()
    folded: bool = True


@dataclass(frozen=True)
class Section:
    """A section in the report of one study."""

    topic: Topic
    figures: list[Figure]
    tables: list[Table[Any]]
    lead: str = ""
    """The introduction of the topic for this study."""


CERTIFICATE = "certificate"
"""The key of the topic that comes first in the report of a self-test."""


def _lead_of_differences(data: StudyData) -> str:
    """Returns the introduction to the section on differences. It says that an arm is faster only if the primary metric
    is a speed, since a larger percentile or cost does not mean a faster arm."""
    metric = data.plan.primary_metric
    is_speed = metric is None or data.plan.named_metric(metric).kind == "speed"
    right = "is faster" if is_speed else f"has more of {metric}"
    return (
        "Bars are 95% intervals. The shaded band is the margin, within which arms count as equivalent. "
        f"On the right of zero, the arm {right} than the baseline."
    )


def _lead_of_costs(data: StudyData) -> str:
    """Returns the introduction to the section on costs (such as CPU time or WAL). If the study declares a cost as a
    metric, costs are part of the verdict."""
    lead = "The cost of a committed transaction on each arm, and how far it differs together with the speed."
    if any(data.plan.named_metric(name).kind == "cost" for name in data.plan.metrics):
        return lead
    return f"{lead} These costs explain the verdict; they are not part of it."


_OF_A_RATE = ("tps", "latency", "timeline", "costs")
"""The topics that are left out for loads without a rate of transactions, such as a suite of queries or a job (such as
CREATE INDEX)."""

_NOT_OF_ONE_ARM = ("ratio", "blocks")
"""The topics that compare arms, which are left out for a study with a single arm."""

_OF_SCREENS = ("factors", "where", "facts", "certificate", "failures", "method", "trials")
"""The topics of a screening study. The others compare arms, and its arms have other set-ups in each block."""

_TOPICS = (
    Topic(
        "factors",
        "Factors",
        "Bars are the effect of each factor: its second level against its first one, averaged over the levels of the "
        "others. Lines are 95% intervals, which hold for all factors together. The shaded band is the margin, within "
        "which levels count as equivalent.",
        [factor_chart],
        [screen_tables],
        folded=False,
    ),
    Topic(
        "tps",
        "Throughput",
        "The median trial of each arm with its interval. Small dots are single trials.",
        [tps_charts, size_charts],
        [results.level_table],
    ),
    Topic(
        "job",
        "The job",
        "The time of the job on each arm, in the median trial, and the effects of the job on the server.",
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
        "How the throughput of each arm changes with the number of clients or the size of the data: "
        "curves through the median trials, with 95% bands. The table of differences compares the arms at "
        "each number.",
        [scaling_charts, cliff_charts],
        [sweeps.law_table, sweeps.cliff_table],
        folded=False,
    ),
    Topic(
        "capacity",
        "Capacity",
        "Each mark is a probe, which is a run of some seconds at one rate. Its height is the response "
        "time from the scheduled start at the percentile of the promise. The dashed line is the limit. "
        "Vertical lines are the capacities, and bands are their 95% intervals.",
        [capacity_charts],
        [capacity.capacity_tables],
    ),
    Topic(
        "criteria",
        "Criteria",
        "What an application sees. Each criterion has a winner if there is a verdict. No task is left "
        "out: a task that failed counts as a failure and never as completed.",
        [task_charts],
        [tasks.criteria_tables],
        folded=False,
    ),
    Topic(
        "statements",
        "Statements",
        "The outcome of the statements of the replay, by template. A template stands for all statements "
        "that differ only in their values.",
        tables=[statements.statement_tables, statements.error_tables, statements.plan_tables],
        folded=False,
    ),
    Topic(
        "queries",
        "Queries",
        "The time of each query of the suite on both arms. If a query became slower or faster, its plans follow below.",
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
        "Whether the arms execute the statements of the load by the same plans. For settings of the "
        "planner this is the explanation of a difference.",
        tables=[plans.load_plan_tables],
    ),
    Topic(
        "regimes",
        "Regimes",
        "Trials whose speed changed from one level to another while it was measured. An average across "
        "such a change describes neither level, so the time before it (the burst) and the time after it "
        "(the sustained level) are compared separately.",
        tables=[results.regime_table],
        folded=False,
    ),
    Topic(
        "published",
        "Beside the published figures",
        "The published study ran on another machine with other versions. Compare the differences between "
        "its arms, and not its numbers.",
        [published_charts],
        [published.published_tables],
        folded=False,
    ),
    Topic(
        "latency",
        "Latency",
        "Marks are the median trial. Bars reach from the lowest to the highest trial. The scale is logarithmic.",
        [latency_charts, curve_charts],
        [results.latency_table, metrics.curve_table, tasks.transaction_tables],
    ),
    Topic(
        "timeline",
        "Every second of every trial",
        "Thin lines are single trials, and the thick line is the median of each arm. The shaded part is the warm-up.",
        [timelines],
    ),
    Topic(
        "provider",
        "What the provider measured",
        "Metrics of the provider's monitoring over the time of a trial, as the mean over the trials of "
        "an arm. Each value is a mean over a minute or more.",
        [provider_charts],
        [servers.provider_table],
    ),
    Topic(
        "server",
        "What the server did",
        "Active sessions by the event for which they waited, as the mean over the trials of an arm, with "
        "one scale for all arms at a load point. A session that waits for nothing runs on a CPU or waits "
        "for one. If the server runs on the machine of pgtrial, the activity of this machine follows, "
        "which includes that of the client.",
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
        "instructions",
        "Instructions per transaction",
        "The CPU instructions that the sessions of each server execute in user mode for one transaction, counted by "
        "valgrind on a server of its own with one client. They are counts and not measurements of time: other load on "
        "the machine does not change them. They explain a difference in speed, and are not part of the verdict.",
        tables=[instructions.instruction_tables],
        folded=False,
    ),
    Topic(
        "blocks",
        "Block by block",
        "Each mark is one unit of the analysis. Its shape tells which arm ran first, and the band is the "
        "interval. Hollow marks are provisional.",
        [block_charts],
        [results.block_table],
    ),
    Topic(
        "slices",
        "Slices",
        "The arms took turns in short slices of time, in random order within each round. The first chart "
        "shows how the precision grew with time. In the others, marks are the slices as they were "
        "measured, and dotted lines are the planned borders.",
        [slice_charts],
        [slices.slice_tables],
        folded=False,
    ),
    Topic(
        "where",
        "Where it ran",
        "The machines of the study, and the network paths from the load to the servers. The path is part "
        "of what a client measures: a comparison is fair only if it is the same for all arms.",
        tables=[where.where_tables],
        folded=False,
    ),
    Topic(
        "facts",
        "What was compared",
        "Facts that were collected on each arm while its server ran.",
        tables=[where.facts_tables],
        folded=False,
    ),
    Topic(
        CERTIFICATE,
        "What this machine can tell",
        "The result of the self-test of this machine: how long it takes to find a difference, how many "
        "studies of two equal arms got a verdict, and how many studies found a difference that was built "
        "in.",
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
    """Returns all charts of the section whose topic has this key, such as `latency`."""
    return [figure for topic in _TOPICS if topic.key == key for charts in topic.charts for figure in charts(data)]


SHORT = (
    "factors",
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

MAIL = ("factors", "tps", "job", "ratio", "queries", "plans", "costs", "instructions", "failures")
"""The sections of the plain text for a mailing list."""


def sections(data: StudyData, only: Collection[str] | None = None) -> list[Section]:
    """Returns all sections that have something to show, or those of them whose keys are in `only`. Tables without rows
    are left out."""
    made = []
    for topic in _TOPICS:
        if (only is not None and topic.key not in only) or (topic.key in _OF_A_RATE and not data.plan.kind.has_rate):
            continue
        if data.plan.factors and topic.key not in _OF_SCREENS:
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
