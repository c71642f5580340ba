"""What the rules of the audit look at: the facts of a study, or its stored trials; and what rules share."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pgtrial.model.records.study import Facts, LoadPoint, Plan, Trial
from pgtrial.model.study.spec import StudySpec

_NOT_COMPARED = ("defaults", "sources", "probes")
"""Groups in which a difference is none of the arms': what `settings` says already, and what is measured with noise."""

TOLERATED = 1 / 8
"""Share of an arm's trials, or of the pairs of a comparison, that may be odd: rare accidents decide no verdict."""

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
class Pair:
    """Two trials of one block at one load point, both completed: the baseline's and an arm's."""

    base: Trial
    own: Trial


@dataclass(frozen=True)
class Case:
    """What a rule looks at: the facts of a study, or its stored trials with them."""

    plan: Plan
    facts: Mapping[str, Facts]
    study: StudySpec | None = None
    """None for rules over trials, which ask for nothing of it."""
    deployments: Mapping[str, Sequence[Facts]] = field(default_factory=dict)
    """By arm the facts of each of its deployments."""
    trials: Sequence[Trial] = ()

    @property
    def spec(self) -> StudySpec:
        """The study, for rules over facts."""
        if self.study is None:
            raise RuntimeError("this case has no study")
        return self.study

    @property
    def arms(self) -> list[str]:
        """The arms whose facts are known, the baseline first."""
        return [arm for arm in self.plan.arms if arm in self.facts]

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
        """A fact, None if unknown; a setting is found whether or not it is at its default."""
        return known_value(self.facts[arm], group, name) if arm in self.facts else None

    def declared(self, arm: str, *keys: str) -> bool:
        """Whether the study says that this arm differs from the baseline in one of the keys."""
        return any(key in self.plan.declared.get(arm, []) for key in keys)

    def declared_below(self, arm: str, *beginnings: str) -> bool:
        """The same for a key that begins so."""
        return any(key.startswith(beginnings) for key in self.plan.declared.get(arm, []))

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
