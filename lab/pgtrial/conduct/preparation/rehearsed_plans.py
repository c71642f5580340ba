"""The plans of a load's statements on every arm, as found before the first trial. They show whether the load uses the
settings, indexes and other properties in which the arms differ."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice

from pgtrial.conduct.trial.load_statements import are_listed
from pgtrial.evidence.observe.statements import Statements
from pgtrial.loads.target import Session
from pgtrial.model.records.load_point import LoadPoint
from pgtrial.model.records.plan import Plan
from pgtrial.model.records.trial import LoadStatement
from pgtrial.model.study.design import Design
from pgtrial.model.units import plural, short_statement
from pgtrial.verdict.plans import PlanPair, plan_pairs
from pgtrial.verdict.rules.use import LoadUse, Unused, unused_words

_MOST_NAMED = 6
"""The largest number of statements whose other plans are named before a study measures anything."""


def has_listed(design: Design) -> bool:
    """True if the study's files list the statements of at least one load point, so that they are known without running
    the load."""
    return any(map(are_listed, design.load_points))


@dataclass
class RehearsedPlans:
    """The plans of the statements that the scripts of a study list, for all arms."""

    by_arm: dict[str, dict[str, LoadStatement]] = field(default_factory=dict)
    """The statements of each arm with their plans, by the text of the statement without values. If the study has
    several load points, the text is preceded by the name of the load point."""
    unlisted: set[str] = field(default_factory=set)
    """The workloads that send statements which are not listed in files."""

    def take(self, arm: str, session: Session, point: LoadPoint, listed: Statements | None, *, several: bool) -> None:
        """Adds the plans of the statements that the load sends at a load point on an arm. `listed` has these
        statements; it is None if they are not listed in files.

        `several` is true if the study has other load points too. Raises psycopg.OperationalError.
        """
        plans = self.by_arm.setdefault(arm, {})
        if listed is None:
            self.unlisted.add(point.workload)
            return
        if not listed.are_complete:
            self.unlisted.add(point.workload)
        where = f"{point.workload} at scale {point.scale}: " if several else ""
        plans |= {f"{where}{text}": statement for text, statement in listed.plans(session).items()}

    def compare(self, plan: Plan) -> list[ComparedPlans]:
        """Returns, for each arm other than the baseline, the comparison of its plans with those of the baseline."""
        base = self.by_arm.get(plan.baseline, {})
        compared = []
        for arm in plan.others:
            other = self.by_arm.get(arm, {})
            use = LoadUse(base, other, all_seen=not (self.unlisted or plan.load_points[0].of_arms))
            compared.append(
                ComparedPlans(
                    arm,
                    len(base.keys() | other.keys()),
                    plan_pairs(base, other),
                    unused_words(use, plan.declared.get(arm, [])),
                )
            )
        return compared


@dataclass(frozen=True)
class ComparedPlans:
    """The comparison of an arm's plans with the plans of the baseline."""

    arm: str
    statements: int
    """The number of statements, including those that have no plan on one of the arms."""
    plans: dict[str, PlanPair]
    """The pair of plans for each statement that has a plan on both arms."""
    unused: Unused | None
    """The differences between the arms that certainly do not affect the load, such as an index that no plan uses; None
    if nothing is known about that."""

    @property
    def differing(self) -> dict[str, PlanPair]:
        """The pairs of plans that differ."""
        return {text: pair for text, pair in self.plans.items() if not pair.is_same}

    def other_plans(self, baseline: str) -> Iterator[str]:
        """Yields a sentence for each statement whose plan has another shape on the arm than on the baseline, with the
        first nodes that differ. Of many statements only the first ones are named."""
        other = {text: pair for text, pair in self.differing.items() if not pair.has_same_shape}
        for text, pair in islice(other.items(), _MOST_NAMED):
            at_baseline, at_arm = pair.first_difference()
            statement = short_statement(text)
            yield f"{self.arm} has another plan than {baseline} for {statement}: {at_arm} in place of {at_baseline}"
        if (more := len(other) - _MOST_NAMED) > 0:
            yield f"{self.arm} has another plan than {baseline} for {plural(more, 'more statement')}"

    def never_used(self, baseline: str) -> str | None:
        """Returns a sentence on the differences between the arms that certainly do not affect the load, such as an
        index that no plan uses; None if there is no such difference."""
        if self.unused is None:
            return None
        text = f"this load never uses {self.unused.what} between {baseline} and {self.arm}: {self.unused.names}"
        return f"{text}; choose a load that uses it" if self.unused.everything else text
