"""What the stored trials say about fairness; the rules are functions that register themselves here.

The rules of `audit` look at what the arms are, once, before most trials are there. These look at what happened in the
trials, and are evaluated anew from the stored files whenever a study is analysed: they are pure, and what was not
recorded is no finding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pgtrial.discover import load_modules
from pgtrial.facts.audit import ORDER, known_value
from pgtrial.store.records import Audit, Facts, Finding, LoadPoint, Plan, Trial

TOLERATED = 1 / 8
"""Share of an arm's trials, or of the pairs of a comparison, that may be odd: rare accidents decide no verdict."""


@dataclass(frozen=True)
class Pair:
    """Two trials of one block at one load point, both completed: the baseline's and an arm's."""

    base: Trial
    own: Trial


@dataclass(frozen=True)
class TrialCase:
    """What a rule looks at."""

    plan: Plan
    facts: Mapping[str, Facts]
    trials: Sequence[Trial]

    @property
    def others(self) -> list[str]:
        """The arms that are compared with the baseline."""
        return [arm for arm in self.plan.arms if arm != self.plan.baseline]

    def of(self, arm: str, point: LoadPoint | None = None) -> list[Trial]:
        """An arm's completed trials, at one load point or at all."""
        return [
            trial
            for trial in self.trials
            if trial.arm == arm and trial.status == "completed" and point in (None, trial.load_point)
        ]

    def pairs(self, arm: str, point: LoadPoint) -> list[Pair]:
        """The completed trials of an arm, each with the baseline's of the same block."""
        base = {trial.block: trial for trial in self.of(self.plan.baseline, point)}
        return [Pair(base[own.block], own) for own in self.of(arm, point) if own.block in base]

    def value(self, arm: str, group: str, name: str) -> Any:
        """A fact, None if unknown."""
        return known_value(self.facts[arm], group, name) if arm in self.facts else None

    def declared(self, arm: str, *beginnings: str) -> bool:
        """Whether the study says that this arm differs from the baseline in a key that begins so."""
        return any(key.startswith(beginnings) for key in self.plan.declared.get(arm, []))


TrialRule = Callable[[TrialCase], Iterable[Finding]]
_rules: list[TrialRule] = []


def trial_rule(function: TrialRule) -> TrialRule:
    """Register a rule over the trials."""
    _rules.append(function)
    return function


def audit_trials(plan: Plan, facts: Mapping[str, Facts], trials: Sequence[Trial]) -> list[Finding]:
    """The findings of all rules over the trials, the gravest first."""
    load_modules("pgtrial.facts")
    case = TrialCase(plan, facts, sorted(trials, key=lambda trial: trial.index))
    findings = [finding for function in _rules for finding in function(case)]
    return sorted(findings, key=lambda finding: (ORDER[finding.severity], finding.rule))


def whole_audit(stored: Audit | None, plan: Plan, facts: Mapping[str, Facts], trials: Sequence[Trial]) -> Audit | None:
    """The stored audit of the facts with what the trials add; None where there is neither."""
    found = audit_trials(plan, facts, trials)
    if stored is None and not found:
        return None
    return Audit(findings=[*(stored.findings if stored else []), *found])
