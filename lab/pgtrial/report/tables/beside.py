"""Two studies side by side: throughput of their arms, and what differs between their baselines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pgtrial.report.data import StudyData
from pgtrial.report.table import NONE, Table, by_place
from pgtrial.report.tables.results import median_tps
from pgtrial.report.tables.where import NOT_COMPARED, fact_text

Row = Sequence[str]


def levels_beside(one: StudyData, other: StudyData, names: tuple[str, str]) -> Table[Row]:
    """Throughput of each arm at each load point of either study."""
    levels = [_levels(data) for data in (one, other)]
    cells = dict.fromkeys([*levels[0], *levels[1]])
    rows = [[point, arm, *(known.get((point, arm), NONE) for known in levels)] for point, arm in cells]
    caption = "Throughput of each arm in either study: tps of the median trial."
    return Table(caption, rows, by_place("load point", "arm", *names, right=[2, 3]))


def _levels(data: StudyData) -> dict[tuple[str, str], str]:
    return {(data.labels[level.load_point], level.arm): median_tps(level) or NONE for level in data.result.levels}


def facts_beside(one: StudyData, other: StudyData, names: tuple[str, str]) -> Table[Row]:
    """The facts in which the baselines of two studies differ; no rows where either study has none."""
    known = [_facts(data) for data in (one, other)]
    rows: list[Row] = []
    if all(known):
        groups = dict.fromkeys([*known[0], *known[1]])
        for group in (each for each in groups if each not in NOT_COMPARED and each != "defaults"):
            for name in dict.fromkeys([*known[0].get(group, {}), *known[1].get(group, {})]):
                values = [fact_text(facts, group, name) for facts in known]
                if values[0] != values[1]:
                    rows.append([f"{group}.{name}", *values])
    caption = f"Facts that differ between the baselines, {one.plan.baseline} and {other.plan.baseline}."
    return Table(caption, rows, by_place("fact", *names))


def _facts(data: StudyData) -> Mapping[str, Mapping[str, Any]]:
    found = data.facts.get(data.plan.baseline)
    return found.facts if found is not None else {}
