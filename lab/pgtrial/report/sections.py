"""The report's sections in their order: titles, leading words, charts and tables."""

from __future__ import annotations

from dataclasses import dataclass

from pgtrial.report.charts import Figure, draw
from pgtrial.report.data import StudyData
from pgtrial.report.facts_tables import facts_tables
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
        "Bars are 95% sequential intervals, the shaded band is the margin within which arms count as equivalent. "
        "Right of zero the arm is faster than the baseline.",
    ),
    "latency": (
        "Latency",
        "Marks are the median trial, bars reach from the lowest to the highest trial; logarithmic scale.",
    ),
    "timeline": (
        "Every second of every trial",
        "Thin lines are single trials, the thick line is the median of each arm; the shaded part is the warm-up.",
    ),
    "blocks": (
        "Block by block",
        "The unit of analysis. The shape says which arm the coin put first; the band is the interval. "
        "Hollow: provisional.",
    ),
    "facts": ("What was compared", "Facts collected inside each running arm."),
    "failures": ("Failures", ""),
    "method": ("How it was measured", ""),
    "trials": ("All trials", ""),
}


def sections(data: StudyData) -> list[Section]:
    """All sections that have something to show."""
    made = []
    for key, (title, lead) in _TEXTS.items():
        tables = facts_tables(data) if key == "facts" else [make(data) for make in SECTIONS.get(key, [])]
        section = Section(
            key=key,
            title=title,
            lead=lead,
            figures=draw(key, data),
            tables=[table for table in tables if table.rows],
            folded=key not in ("ratio", "failures", "method", "facts"),
        )
        if section.figures or section.tables or key == "method":
            made.append(section)
    return made
