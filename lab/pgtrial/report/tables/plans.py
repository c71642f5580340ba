"""The tables of the plans of a load's statements: whether both arms have the same ones, and those that differ."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from pgtrial.model.records.trial import LoadStatement
from pgtrial.report.data import StudyData
from pgtrial.report.table import Column, Table, by_place, number

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
        "Plans of the statements that the sessions of the load were seen to run in the first block, by EXPLAIN after "
        "the load, on the server of each arm; of a statement with parameters the generic plan. Costs are not compared."
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
    return [overview, *(_side_by_side(data, pair) for pair in pairs if not pair.is_same)]


def _pairs(data: StudyData) -> Iterator[_Pair]:
    """The statements that have a plan on both arms."""
    base = _statements(data, data.plan.baseline)
    for arm in data.plan.others:
        for text, statement in _statements(data, arm).items():
            if text in base and statement.plan and base[text].plan:
                yield _Pair(arm, text, (base[text].plan, statement.plan))


def _statements(data: StudyData, arm: str) -> dict[str, LoadStatement]:
    return {
        text: statement for trial in data.trials if trial.arm == arm for text, statement in trial.statements.items()
    }


def _side_by_side(data: StudyData, pair: _Pair) -> Table[Sequence[str]]:
    lines = [[indented(line) for line in plan] for plan in pair.plans]
    return Table(
        f"Plans of {pair.text}",
        list(zip_longest(*lines, fillvalue="")),
        by_place(data.plan.baseline, pair.arm),
    )


def indented(line: str) -> str:
    """A line whose leading spaces stay in a page."""
    bare = line.lstrip(" ")
    return _INDENT * (len(line) - len(bare)) + bare
