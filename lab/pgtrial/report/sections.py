"""The report's sections in their order: titles, leading words, charts and tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pgtrial.report.charts import draw
from pgtrial.report.charts.parts import Figure
from pgtrial.report.data import StudyData
from pgtrial.report.table import Table
from pgtrial.report.tables.published import published_tables
from pgtrial.report.tables.results import (
    block_table,
    latency_table,
    level_table,
    look_table,
    ratio_table,
    regime_table,
    regime_trial_table,
    steadiness_table,
)
from pgtrial.report.tables.servers import cost_table, provider_table, server_tables
from pgtrial.report.tables.tasks import criteria_tables
from pgtrial.report.tables.trials import canary_tables, client_table, failure_tables, phase_table, trial_table
from pgtrial.report.tables.where import facts_tables, where_tables


@dataclass(frozen=True)
class Section:
    """One section of a study's report. Tables are folded in the page when `folded`."""

    key: str
    title: str
    lead: str
    figures: list[Figure]
    tables: list[Table[Any]]
    folded: bool


@dataclass(frozen=True)
class _Kind:
    key: str
    title: str
    lead: str
    tables: Callable[[StudyData], list[Table[Any]]] = lambda data: []
    folded: bool = True


_SECTIONS = (
    _Kind(
        "tps",
        "Throughput",
        "Median trial per arm with its interval; small dots are single trials.",
        lambda data: [level_table(data)],
    ),
    _Kind(
        "ratio",
        "Differences",
        "Bars are 95% intervals, the shaded band is the margin within which arms count as equivalent. "
        "Right of zero the arm is faster than the baseline.",
        lambda data: [ratio_table(data)],
        folded=False,
    ),
    _Kind(
        "criteria",
        "Criteria",
        "What an application sees: each criterion with its winner, if there is one. Nothing is dropped: tasks that "
        "failed are failures, and never done.",
        criteria_tables,
        folded=False,
    ),
    _Kind(
        "regimes",
        "Regimes",
        "Trials whose speed went from one level to another while it was measured. An average across such a change is "
        "the speed of nothing, so the time before it (the burst) and after it (the sustained level) are read apart.",
        lambda data: [regime_table(data)],
        folded=False,
    ),
    _Kind(
        "published",
        "Beside the published figures",
        "The published study ran on another machine with other versions: compare how far its arms are apart, not its "
        "numbers.",
        published_tables,
    ),
    _Kind(
        "latency",
        "Latency",
        "Marks are the median trial, bars reach from the lowest to the highest trial; logarithmic scale.",
        lambda data: [latency_table(data)],
    ),
    _Kind(
        "timeline",
        "Every second of every trial",
        "Thin lines are single trials, the thick line is the median of each arm; the shaded part is the warm-up.",
    ),
    _Kind(
        "provider",
        "What the provider measured",
        "Metrics of the provider's own monitoring over the time of a trial, the mean of an arm's trials: each value is "
        "a mean over a minute or more.",
        lambda data: [provider_table(data)],
    ),
    _Kind(
        "server",
        "What the server did",
        "Active sessions by what they waited for, the mean of an arm's trials; one scale for all arms at a load point. "
        "A session that waits for nothing is on a CPU, or in the queue for one. Where the server runs on the lab's own "
        "machine, what that machine did follows: all of it, the client too.",
        server_tables,
    ),
    _Kind(
        "costs",
        "Cost per transaction",
        "What a committed transaction took, and how far it moved with the effect. These costs explain the verdict; "
        "they are not part of it.",
        lambda data: [cost_table(data)],
    ),
    _Kind(
        "blocks",
        "Block by block",
        "The unit of analysis. The shape says which arm the coin put first; the band is the interval. "
        "Hollow: provisional.",
        lambda data: [block_table(data)],
    ),
    _Kind(
        "canary",
        "Canary and voided blocks",
        "A second of fixed work between the blocks, without any arm: was the machine as usual? Each probe against its "
        "median over the study; shaded blocks were disturbed.",
        canary_tables,
    ),
    _Kind(
        "where",
        "Where it ran",
        "Which machine did what, and how the load came to the servers. The way is a part of what a client sees: it is "
        "fair only where it is the same for all arms.",
        where_tables,
        folded=False,
    ),
    _Kind(
        "facts",
        "What was compared",
        "Facts collected inside each running arm.",
        facts_tables,
        folded=False,
    ),
    _Kind(
        "failures",
        "Failures",
        "",
        failure_tables,
        folded=False,
    ),
    _Kind(
        "method",
        "How it was measured",
        "",
        lambda data: [look_table(data), steadiness_table(data), client_table(data), phase_table(data)],
        folded=False,
    ),
    _Kind(
        "trials",
        "All trials",
        "",
        lambda data: [trial_table(data), regime_trial_table(data)],
    ),
)


def sections(data: StudyData) -> list[Section]:
    """All sections that have something to show; tables without rows are left out."""
    made = []
    for kind in _SECTIONS:
        figures, tables = draw(kind.key, data), [table for table in kind.tables(data) if table.rows]
        if figures or tables or kind.key == "method":
            made.append(Section(kind.key, kind.title, kind.lead, figures, tables, kind.folded))
    return made
