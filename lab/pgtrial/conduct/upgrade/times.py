"""The studies of a rehearsal of an upgrade, which measure how long the statements take on both versions. Statements
whose plans differ are measured first, in a study of their own."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pgtrial.conduct.shared_budget import shares
from pgtrial.conduct.upgrade.statements import NamedStatement, write_suite
from pgtrial.model.records.upgrade import RehearsedStatement
from pgtrial.model.study.spec import StudySpec
from pgtrial.model.study.suites import SUITE
from pgtrial.store.study_file import build_study

_OTHER, _SAME = "other-plans", "same-plans"
"""The names of the suites with the statements whose plans differ, and with those whose plans do not differ."""


@dataclass(frozen=True)
class UpgradeKeys:
    """The keys that the studies of a rehearsal have in common, as a study file would have them."""

    arms: Mapping[str, Mapping[str, Any]]
    """The old version and the new one."""
    server: Mapping[str, Any]
    limit_s: float
    seed: int | None
    margin: str | None

    def study(
        self,
        suite: Path,
        data: Sequence[str],
        question: str,
        *,
        number: int = 0,
        unchecked: Collection[str] = (),
    ) -> StudySpec:
        """Returns the study that measures the queries of a suite on both versions. Rows of the queries `unchecked` may
        differ. Studies with different numbers have different seeds, so that the random order of one does not follow
        from that of another. Raises StudyError."""
        section: dict[str, Any] = {"question": question}
        if self.seed is not None:
            section["seed"] = self.seed + number
        of_suite = {"limit": self.limit_s, "unchecked": sorted(unchecked)}
        keys = {
            "study": section,
            "load": {"workload": f"{SUITE}{suite}", "data": list(data), "suite": of_suite},
            "server": self.server,
            "arms": self.arms,
            "verdict": {} if self.margin is None else {"margin": self.margin},
        }
        return build_study(keys, "the command line")


@dataclass(frozen=True)
class TimedPart:
    """A study of the times of some statements, before it runs."""

    directory: str
    """The name of its directory within that of the rehearsal."""
    plans_differ: bool
    spec: StudySpec
    share_s: float
    """The part of the budget, in seconds, that the study has at least."""


def timed_parts(
    asked: UpgradeKeys,
    statements: Sequence[RehearsedStatement],
    data: Sequence[str],
    folder: Path,
    budget_s: float,
) -> list[TimedPart]:
    """Returns the studies that measure the statements which run on both versions, the statements with other plans
    first. The studies share the error of 5% and the budget in seconds.

    `folder` gets the suites. Raises StudyError, and BudgetError if the budget is too short.
    """
    old, new = asked.arms
    timed = [statement for statement in statements if _can_be_timed(statement)]
    chosen = {
        name: [one for one in timed if (one.on["restored"].plan is not None) == (name == _OTHER)]
        for name in (_OTHER, _SAME)
    }
    wanted = {name: of_part for name, of_part in chosen.items() if of_part}
    specs = {}
    for number, (name, of_part) in enumerate(wanted.items()):
        write_suite(folder / name, {one.name: NamedStatement(one.name, one.text).undone for one in of_part})
        question = f"Which statements with {name.replace('-', ' ')} are slower on {new} than on {old}?"
        unchecked = [one.name for one in of_part if one.rows_vary or one.on["restored"].rows is not None]
        spec = asked.study(folder / name, data, question, number=number, unchecked=unchecked)
        specs[name] = spec.with_verdict(studies=len(wanted))
    of_each = shares(specs, budget_s) if specs else []
    return [
        TimedPart(f"{number}-{name}", name == _OTHER, specs[name], share_s)
        for number, (name, share_s) in enumerate(zip(specs, of_each, strict=True), start=1)
    ]


def _can_be_timed(statement: RehearsedStatement) -> bool:
    restored = statement.on.get("restored")
    return restored is not None and restored.error is None and not restored.over_limit
