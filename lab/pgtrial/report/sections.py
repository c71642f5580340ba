"""The report's sections in their order: titles, leading words, charts and tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pgtrial.report.canary_tables import canary_tables
from pgtrial.report.charts import draw
from pgtrial.report.charts.parts import Figure
from pgtrial.report.cost_tables import cost_tables
from pgtrial.report.criteria_tables import criteria_tables
from pgtrial.report.data import StudyData
from pgtrial.report.facts_tables import facts_tables
from pgtrial.report.host_tables import host_tables
from pgtrial.report.loss_tables import failure_tables
from pgtrial.report.machine_tables import where_tables
from pgtrial.report.provider_tables import provider_tables
from pgtrial.report.published_tables import published_tables
from pgtrial.report.regime_tables import regime_table, regime_trial_table
from pgtrial.report.server_tables import server_tables
from pgtrial.report.tables import SECTIONS, Table


@dataclass(frozen=True)
class Section:
    """One section. Tables are folded in the page when `folded`; tables without rows are left out."""

    key: str
    title: str
    lead: str
    figures: list[Figure]
    tables: list[Table]
    folded: bool = True


_TEXTS = {
    "tps": (
        "Throughput",
        "Median trial per arm with its interval; small dots are single trials.",
    ),
    "ratio": (
        "Differences",
        "Bars are 95% intervals, the shaded band is the margin within which arms count as equivalent. "
        "Right of zero the arm is faster than the baseline.",
    ),
    "criteria": (
        "Criteria",
        "What an application sees: each criterion with its winner, if there is one. Nothing is dropped: tasks that "
        "failed are failures, and never done.",
    ),
    "regimes": (
        "Regimes",
        "Trials whose speed went from one level to another while it was measured. An average across such a change is "
        "the speed of nothing, so the time before it (the burst) and after it (the sustained level) are read apart.",
    ),
    "published": (
        "Beside the published figures",
        "The published study ran on another machine with other versions: compare how far its arms are apart, not its "
        "numbers.",
    ),
    "latency": (
        "Latency",
        "Marks are the median trial, bars reach from the lowest to the highest trial; logarithmic scale.",
    ),
    "timeline": (
        "Every second of every trial",
        "Thin lines are single trials, the thick line is the median of each arm; the shaded part is the warm-up.",
    ),
    "provider": (
        "What the provider measured",
        "Metrics of the provider's own monitoring over the time of a trial, the mean of an arm's trials: each value is "
        "a mean over a minute or more.",
    ),
    "server": (
        "What the server did",
        "Active sessions by what they waited for, the mean of an arm's trials; one scale for all arms at a load point. "
        "A session that waits for nothing is on a CPU, or in the queue for one. Where the server runs on the lab's own "
        "machine, what that machine did follows: all of it, the client too.",
    ),
    "costs": (
        "Cost per transaction",
        "What a committed transaction took, and how far it moved with the effect. It explains a verdict and is none.",
    ),
    "blocks": (
        "Block by block",
        "The unit of analysis. The shape says which arm the coin put first; the band is the interval. "
        "Hollow: provisional.",
    ),
    "canary": (
        "Canary and voided blocks",
        "A second of fixed work between the blocks, without any arm: was the machine as usual? Each probe against its "
        "median over the study; shaded blocks were disturbed.",
    ),
    "where": (
        "Where it ran",
        "Which machine did what, and how the load came to the servers. The way is a part of what a client sees: it is "
        "fair only where it is the same for all arms.",
    ),
    "facts": ("What was compared", "Facts collected inside each running arm."),
    "failures": ("Failures", ""),
    "method": ("How it was measured", ""),
    "trials": ("All trials", ""),
}

_TABLES: dict[str, Callable[[StudyData], list[Table]]] = {
    "canary": canary_tables,
    "costs": cost_tables,
    "criteria": criteria_tables,
    "facts": facts_tables,
    "failures": failure_tables,
    "published": published_tables,
    "regimes": lambda data: [regime_table(data)],
    "trials": lambda data: [*(make(data) for make in SECTIONS["trials"]), regime_trial_table(data)],
    "provider": provider_tables,
    "server": lambda data: [*server_tables(data), *host_tables(data)],
    "where": where_tables,
}
"""The tables that have a module of their own."""


def sections(data: StudyData) -> list[Section]:
    """All sections that have something to show."""
    made = []
    for key, (title, lead) in _TEXTS.items():
        own = _TABLES.get(key)
        tables = own(data) if own else [make(data) for make in SECTIONS.get(key, [])]
        section = Section(
            key=key,
            title=title,
            lead=lead,
            figures=draw(key, data),
            tables=[table for table in tables if table.rows],
            folded=key not in ("ratio", "criteria", "regimes", "failures", "method", "where", "facts"),
        )
        if section.figures or section.tables or key == "method":
            made.append(section)
    return made
