"""The tables of the plans of a load's statements: whether both arms have the same ones, and those that differ."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from pgtrial.report.data import StudyData
from pgtrial.report.table import Column, Table, by_place, number
from pgtrial.report.words import query_times_as_long
from pgtrial.verdict.rules.use import common_plans, load_statements

_INDENT = "\N{NO-BREAK SPACE}"


@dataclass(frozen=True)
class _Pair:
    """A statement with its plans on the baseline and on another arm."""

    arm: str
    text: str
    plans: tuple[Sequence[str], Sequence[str]]

    @property
    def is_same(self) -> bool:
        return self.plans[0] == self.plans[1]


def load_plan_tables(data: StudyData) -> list[Table[Any]]:
    """Which statements have the same plan on both arms, then the plans that differ, side by side."""
    pairs = list(_pairs(data))
    caption = (
        "Plans of the statements of the load, by EXPLAIN after the loads of the first block, on the server of each "
        "arm; of a statement with parameters the generic plan. Costs are not compared."
    )
    overview = Table(
        caption,
        pairs,
        [
            Column("arm", lambda pair: pair.arm),
            Column("statement", lambda pair: pair.text),
            Column("same plan", lambda pair: "yes" if pair.is_same else "no"),
            number(f"lines in {data.plan.baseline}", lambda pair: len(pair.plans[0])),
            number("lines in the arm", lambda pair: len(pair.plans[1])),
        ],
        lambda pair: not pair.is_same,
    )
    differing = [pair for pair in pairs if not pair.is_same]
    return [
        overview,
        *(side_by_side(_caption(data, pair), (data.plan.baseline, pair.arm), pair.plans) for pair in differing),
    ]


def _caption(data: StudyData, pair: _Pair) -> str:
    """`Plans of q07, 3.1 times as long in dropped`: a query of a suite with its verdict."""
    claims = (claim for claim in data.result.queries if (claim.query, claim.arm) == (pair.text, pair.arm))
    claim = next(claims, None)
    if claim is None or claim.within_margin or claim.verdict not in ("better", "worse"):
        return f"Plans of {pair.text}"
    return f"Plans of {pair.text}, {query_times_as_long(claim)} in {pair.arm}"


def _pairs(data: StudyData) -> Iterator[_Pair]:
    """The statements that have a plan on both arms."""
    of_arms = {arm: load_statements(trial for trial in data.trials if trial.arm == arm) for arm in data.plan.arms}
    for arm in data.plan.others:
        for text, plans in common_plans(of_arms[data.plan.baseline], of_arms[arm]).items():
            yield _Pair(arm, text, plans)


def side_by_side(caption: str, arms: Sequence[str], plans: Sequence[Sequence[str]]) -> Table[Sequence[str]]:
    """The plans of a statement on two arms, line by line."""
    lines = [[_indented(line) for line in plan] for plan in plans]
    return Table(caption, list(zip_longest(*lines, fillvalue="")), by_place(*arms))


def _indented(line: str) -> str:
    """A line whose leading spaces stay in a page."""
    bare = line.lstrip(" ")
    return _INDENT * (len(line) - len(bare)) + bare
