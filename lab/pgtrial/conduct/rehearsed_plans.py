"""The plans of a load's statements on every arm before the first trial, and whether it uses what the arms differ in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pgtrial.conduct.load_statements import are_listed, listed_statements
from pgtrial.evidence.observe.statements import SeenStatements
from pgtrial.loads.target import Session
from pgtrial.model.records.load_point import LoadPoint
from pgtrial.model.records.plan import Plan
from pgtrial.model.records.trial import LoadStatement
from pgtrial.model.study.spec import StudySpec, load_points
from pgtrial.verdict.rules.use import LoadUse, Unused, common_plans, unused_words


def has_listed(spec: StudySpec) -> bool:
    """Whether scripts list statements of the load."""
    return any(are_listed(point) and point.job is None for point in load_points(spec))


@dataclass
class RehearsedPlans:
    """The statements that the scripts of a study list, with their plans."""

    by_arm: dict[str, dict[str, LoadStatement]] = field(default_factory=dict)
    """By arm, then by the statement's text without values; several load points each with their own."""
    unlisted: set[str] = field(default_factory=set)
    """Workloads of which scripts list no statements, or too many."""

    def take(self, arm: str, session: Session, point: LoadPoint, script: Path | None, *, several: bool) -> None:
        """Take the plans of a load point. `several`: there are others. Raises psycopg.OperationalError."""
        plans = self.by_arm.setdefault(arm, {})
        if not are_listed(point) or point.job is not None:  # a job's statements have no plans to compare
            self.unlisted.add(point.workload)
            return
        listed = listed_statements(point, script)
        if not listed.are_complete:
            self.unlisted.add(point.workload)
        where = f"{point.workload} at scale {point.scale}: " if several else ""
        plans |= {f"{where}{text}": statement for text, statement in SeenStatements(listed).plans(session).items()}

    def compare(self, plan: Plan) -> list[ComparedPlans]:
        """Each other arm beside the baseline."""
        base = self.by_arm.get(plan.baseline, {})
        compared = []
        for arm in plan.others:
            other = self.by_arm.get(arm, {})
            use = LoadUse(base, other, all_seen=not self.unlisted)
            compared.append(
                ComparedPlans(
                    arm,
                    len(base.keys() | other.keys()),
                    common_plans(base, other),
                    unused_words(use, plan.declared.get(arm, [])),
                )
            )
        return compared


@dataclass(frozen=True)
class ComparedPlans:
    """The plans of an arm beside those of the baseline."""

    arm: str
    statements: int
    """With those that have no plan on one of the arms."""
    plans: dict[str, tuple[Sequence[str], Sequence[str]]]
    """By statement, on the baseline and on the arm."""
    unused: Unused | None
    """What the load certainly does not use."""

    @property
    def differing(self) -> dict[str, tuple[Sequence[str], Sequence[str]]]:
        """Those that are not the same."""
        return {text: (base, other) for text, (base, other) in self.plans.items() if base != other}

    def never_used(self, baseline: str) -> str | None:
        """A sentence on what the load certainly does not use; None: nothing is known of that."""
        if self.unused is None:
            return None
        text = f"this load never uses {self.unused.what} between {baseline} and {self.arm}: {self.unused.names}"
        return f"{text}; choose a load that uses it" if self.unused.everything else text
