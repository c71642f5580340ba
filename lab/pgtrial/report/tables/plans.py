"""The tables of the plans of a load's statements, which show the statements with the same plan on both arms, and the
plans that differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from pgtrial.report.data import StudyData
from pgtrial.report.table import Column, Table, by_position, number
from pgtrial.report.words import query_times_as_long
from pgtrial.verdict.plans import PlanPair, load_statements, plan_pairs

_INDENT = "\N{NO-BREAK SPACE}"


@dataclass(frozen=True)
class _Row:
    """A statement with its plans on the baseline and on another arm."""

    arm: str
    text: str
    pair: PlanPair


def load_plan_tables(data: StudyData) -> list[Table[Any]]:
    """Returns a table of all statements, which shows whether their plans are the same on both arms, followed by the
    plans that differ, side by side."""
    of_arms = {arm: load_statements(trial for trial in data.trials if trial.arm == arm) for arm in data.plan.arms}
    base = data.plan.baseline
    rows = [
        _Row(arm, text, pair)
        for arm in data.plan.others
        for text, pair in plan_pairs(of_arms[base], of_arms[arm]).items()
    ]
    kinds: list[Column[_Row]] = [
        Column(f"kind in {base}", lambda row: row.pair.base.chosen),
        Column("kind in the arm", lambda row: row.pair.other.chosen),
        number(f"planning in {base}, ms", lambda row: row.pair.base.planning_ms, ".3g"),
        number("planning in the arm, ms", lambda row: row.pair.other.planning_ms, ".3g"),
    ]
    are_known = any(row.pair.other.chosen is not None for row in rows)
    overview = Table(
        f"{_PLANS} {_KINDS if are_known else _FORMER_KIND} Costs are not compared.",
        rows,
        [
            Column("arm", lambda row: row.arm),
            Column("statement", lambda row: row.text),
            Column("same plan", lambda row: "yes" if row.pair.is_same else "no"),
            *(kinds if are_known else []),
        ],
        lambda row: not row.pair.is_same,
    )
    differing = [row for row in rows if not row.pair.is_same]
    return [overview, *(_side_by_side(data, row) for row in differing)]


_PLANS = (
    "Plans of the statements of the load, by EXPLAIN after the loads of the first block, on the server of each arm."
)
_KINDS = (
    "For a prepared statement, the plan that the server uses from the sixth execution on, for values "
    "that the load draws: custom is a plan for the values of each execution, and generic is one plan "
    "for all values. Planning is the shortest time that a custom plan took on the idle server. "
    "Unknown means that the values of the load are not known, and the plan is the generic one."
)
_FORMER_KIND = (
    "For a statement with parameters, the generic plan for NULLs, because a former version of pgtrial ran the trials."
)


def _side_by_side(data: StudyData, row: _Row) -> Table[Sequence[str]]:
    """Returns a table with the plans of the two arms side by side. If one arm uses a custom plan and the other a
    generic plan, the plan that an arm does not use is shown as well."""
    names = [data.plan.baseline, row.arm]
    heads, plans = list(names), list(row.pair.plans)
    if row.pair.kinds_differ:
        both = list(zip(names, (row.pair.base, row.pair.other), strict=True))
        heads = [f"{name}, {one.chosen} plan" for name, one in both]
        others = [(f"{name}, {_OTHER[one.chosen]} plan (not taken)", one.not_chosen) for name, one in both]
        heads += [head for head, plan in others if plan]
        plans += [plan for _, plan in others if plan]
    return side_by_side(_caption(data, row), heads, plans)


_OTHER: dict[str | None, str] = {"custom": "generic", "generic": "custom"}


def _caption(data: StudyData, row: _Row) -> str:
    """Returns the caption of the plans of a statement, such as `Plans of q07, 3.1 times as long in dropped` for a query
    of a suite with a verdict."""
    claims = (claim for claim in data.result.queries if (claim.query, claim.arm) == (row.text, row.arm))
    claim = next(claims, None)
    if claim is None or claim.within_margin or claim.verdict not in ("better", "worse"):
        return f"Plans of {row.text}"
    return f"Plans of {row.text}, {query_times_as_long(claim)} in {row.arm}"


def side_by_side(caption: str, arms: Sequence[str], plans: Sequence[Sequence[str]]) -> Table[Sequence[str]]:
    """Returns a table with the plans of a statement on several arms side by side, line by line."""
    lines = [[_indented(line) for line in plan] for plan in plans]
    return Table(caption, list(zip_longest(*lines, fillvalue="")), by_position(*arms), is_text=True)


def _indented(line: str) -> str:
    """Returns a line in which the leading spaces are replaced by no-break spaces, so that a page shows them."""
    bare = line.lstrip(" ")
    return _INDENT * (len(line) - len(bare)) + bare
