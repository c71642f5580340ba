"""What the facts say about fairness; the rules are functions that register themselves here."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pgtrial.discover import load_modules
from pgtrial.store.records import Audit, Facts, Finding, Plan
from pgtrial.study.spec import StudySpec

ORDER = {"withhold": 0, "warning": 1, "info": 2}
"""Of severities, the gravest first."""

_NOT_COMPARED = ("defaults", "sources", "probes")
"""Groups in which a difference is none of the arms': what `settings` says already, and what is measured with noise."""

_SHOWN = 80
"""Characters of a value in a message."""


@dataclass(frozen=True)
class Difference:
    """One fact in which an arm is not as the baseline; both values are known."""

    arm: str
    group: str
    name: str
    baseline_value: Any
    value: Any

    @property
    def key(self) -> str:
        """As a study declares it: `settings.work_mem`, `storage.filesystem`."""
        return f"{self.group}.{self.name}"


@dataclass(frozen=True)
class Case:
    """What a rule looks at."""

    plan: Plan
    facts: Mapping[str, Facts]
    spec: StudySpec
    deployments: Mapping[str, Sequence[Facts]] = field(default_factory=dict)
    """By arm the facts of each of its deployments."""

    @property
    def arms(self) -> list[str]:
        """The arms whose facts are known, the baseline first."""
        return [arm for arm in self.plan.arms if arm in self.facts]

    def value(self, arm: str, group: str, name: str) -> Any:
        """A fact, None if unknown; a setting is found whether or not it is at its default."""
        return known_value(self.facts[arm], group, name)

    def declared(self, arm: str, *keys: str) -> bool:
        """Whether the study says that this arm differs from the baseline in one of the keys."""
        return any(key in self.plan.declared.get(arm, []) for key in keys)

    def differences(self) -> list[Difference]:
        """Every fact in which an arm differs from the baseline, declared or not, in the order of the groups."""
        if not self.arms or self.plan.baseline not in self.facts:
            return []
        return [
            found
            for arm in self.arms
            if arm != self.plan.baseline
            for found in _differing(self, self.plan.baseline, arm)
        ]


Rule = Callable[[Case], Iterable[Finding]]
_rules: list[Rule] = []


def rule(function: Rule) -> Rule:
    """Register a rule."""
    _rules.append(function)
    return function


def audit(
    plan: Plan,
    facts: Mapping[str, Facts],
    spec: StudySpec,
    deployments: Mapping[str, Sequence[Facts]] | None = None,
) -> Audit:
    """All findings, those that withhold the verdict first.

    Arms are compared by one deployment of each, whose facts are in `facts`; `deployments` has those of all.
    """
    load_modules("pgtrial.facts")
    case = Case(plan, facts, spec, deployments or {})
    findings = [finding for function in _rules for finding in function(case)]
    return Audit(findings=sorted(findings, key=lambda finding: (ORDER[finding.severity], finding.rule)))


def known_value(facts: Facts, group: str, name: str) -> Any:
    """A fact, None if unknown; a setting is found whether or not it is at its default."""
    found = facts.facts
    if group == "settings" and name not in found.get("settings", {}):
        return found.get("defaults", {}).get(name)
    return found.get(group, {}).get(name)


def compared(facts: Sequence[Facts]) -> Iterator[tuple[str, str]]:
    """Group and name of every fact that may tell servers apart, in the order of the groups."""
    for group in facts[0].facts:
        if group not in _NOT_COMPARED:
            parts = ("settings", "defaults") if group == "settings" else (group,)
            names = {name for each in facts for part in parts for name in each.facts.get(part, {})}
            yield from ((group, name) for name in sorted(names))


def listed(names: Iterable[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last


def shortened(value: Any) -> str:
    """A value for a message."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    text = text or "''"
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def _differing(case: Case, baseline: str, arm: str) -> Iterable[Difference]:
    for group, name in compared([case.facts[baseline], case.facts[arm]]):
        first, second = case.value(baseline, group, name), case.value(arm, group, name)
        if first is not None and second is not None and first != second:
            yield Difference(arm, group, name, first, second)
