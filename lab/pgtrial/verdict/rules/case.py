"""The input of every rule of the audit (`Case`), its output (`Concern`), and the comparisons that rules share."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from pgtrial.model.records.facts import Audit, FactChange, Facts, Finding
from pgtrial.model.records.interruptions import Interruption
from pgtrial.model.records.load_point import LoadPoint
from pgtrial.model.records.plan import Plan
from pgtrial.model.records.results import CarryOverShift
from pgtrial.model.records.trial import Trial
from pgtrial.model.study.design import Design
from pgtrial.model.units import shortened
from pgtrial.statistics.p8 import TOLERATED
from pgtrial.verdict.carry_over import CellSpeeds, Slices, cell_speeds, shifts
from pgtrial.verdict.changes import Seconds
from pgtrial.verdict.grid import Grid
from pgtrial.verdict.where_it_ran import THIS_MACHINE

_NOT_COMPARED = ("defaults", "sources", "probes", "data", "answers")
"""The groups of facts whose differences do not distinguish the arms: `settings` repeats the first two, the third is
noisy, and the last two have rules of their own (`rows.py`, `scripts.py`)."""

_SHOWN = 80
"""The number of characters of a value that a message shows."""


Severity = Literal["withhold", "warning", "info"]


@dataclass(frozen=True)
class Concern:
    """A concern that a rule found. `message` and `cure` are one sentence each."""

    arms: Sequence[str]
    message: str
    cure: str
    severity: Severity = "warning"
    cells: Collection[tuple[str, int]] = ()
    """The arms and load points whose verdicts it withholds, if it withholds any; empty: all load points of `arms`."""


@dataclass(frozen=True)
class Rule:
    """A named function that finds concerns in a case."""

    name: str
    title: str
    """The finding in a few words. Rules of one name have one title."""
    find: Callable[[Case], Iterable[Concern]]
    over_trials: bool
    """True if the rule reads the stored trials; other rules read only the facts of the arms."""

    def findings(self, case: Case) -> list[tuple[Finding, Concern]]:
        """Returns what the rule finds in a case: each finding as it is stored, with the concern that it comes from."""
        concerns = list(self.find(case))
        return [
            (
                Finding(
                    rule=self.name,
                    severity=concern.severity,
                    arms=list(concern.arms),
                    message=concern.message,
                    cure=concern.cure,
                ),
                concern,
            )
            for concern in concerns
        ]


def rule(name: str, title: str, *, over_trials: bool = False) -> Callable[[Callable[[Case], Iterable[Concern]]], Rule]:
    """Makes a function a rule. Its findings carry the name."""
    return lambda find: Rule(name, title, find, over_trials)


@dataclass(frozen=True)
class Difference:
    """A fact in which an arm differs from the baseline; both values are known."""

    arm: str
    group: str
    name: str
    baseline_value: Any
    value: Any

    @property
    def key(self) -> str:
        """Returns the fact's name as studies declare it: `settings.work_mem`, `storage.filesystem`."""
        return f"{self.group}.{self.name}"


@dataclass(frozen=True)
class Case:
    """All that is known of a study: its facts, and its stored trials with what was measured in them."""

    plan: Plan
    facts: Mapping[str, Facts]
    study: Design | None = None
    """The design of the study; None for rules over trials, which do not read it."""
    deployments: Mapping[str, Sequence[Facts]] = field(default_factory=dict)
    """The facts of each deployment, by arm."""
    trials: Sequence[Trial] = ()
    audit: Audit | None = None
    """The stored findings over the facts."""
    seconds: Seconds | None = None
    """The commits in each second; if None, the steady state is not checked and no change of regime is seen."""
    slices: Slices = field(default_factory=dict)
    """The slices of trials that alternate; if they are missing, carry-over is not known."""
    interruptions: Sequence[Interruption] = ()
    voided: Sequence[int] = ()
    """The blocks that an earlier version of pgtrial set aside."""

    @cached_property
    def grid(self) -> Grid:
        """Returns the trials by block, load point and arm; some may be missing."""
        return Grid(self.plan, self.trials)

    @cached_property
    def speeds(self) -> CellSpeeds:
        """Returns the speeds of trials that alternated, separately for each arm whose slice came before."""
        return cell_speeds(self.grid, self.slices)

    @cached_property
    def shifts(self) -> list[CarryOverShift]:
        """Returns how far carry-over moves each comparison."""
        return shifts(self.grid, self.speeds)

    @property
    def design(self) -> Design:
        """Returns the design of the study, for rules over facts. Raises RuntimeError if the case has none."""
        if self.study is None:
            raise RuntimeError("this case has no study")
        return self.study

    @property
    def baseline(self) -> str:
        """Returns the arm that the others are compared with."""
        return self.plan.baseline

    @property
    def arms(self) -> list[str]:
        """Returns the arms whose facts are known, the baseline first."""
        return [arm for arm in self.plan.arms if arm in self.facts]

    @property
    def others(self) -> list[str]:
        """Returns all arms but the baseline."""
        return [arm for arm in self.plan.arms if arm != self.baseline]

    def completed(self, arm: str | None = None, point: LoadPoint | None = None) -> list[Trial]:
        """Returns the completed trials in their order, of one arm or all arms, at one load point or all."""
        place = None if point is None else self.plan.load_points.index(point)
        trials = [trial for name in self.plan.arms if arm in (None, name) for trial in self.grid.of(name, place)]
        return sorted((trial for trial in trials if trial.status == "completed"), key=lambda trial: trial.index)

    def pairs(self, arm: str, point: LoadPoint) -> list[tuple[Trial, Trial]]:
        """Returns pairs of completed trials: the baseline's, and the arm's of the same block."""
        base = {trial.block: trial for trial in self.completed(self.baseline, point)}
        return [(base[trial.block], trial) for trial in self.completed(arm, point) if trial.block in base]

    def value(self, arm: str, group: str, name: str) -> Any:
        """Returns a fact of an arm; None if it is unknown. Settings at their default are found, too."""
        return known_value(self.facts[arm], group, name) if arm in self.facts else None

    def both(self, arm: str, group: str, name: str) -> tuple[Any, Any]:
        """Returns a fact of the baseline and of an arm."""
        return self.value(self.baseline, group, name), self.value(arm, group, name)

    def known(self, group: str, name: str) -> dict[str, Any]:
        """Returns a fact of every arm that has it, by arm."""
        values = {arm: self.value(arm, group, name) for arm in self.arms}
        return {arm: value for arm, value in values.items() if value is not None}

    def where(self, group: str, name: str, *values: Any) -> list[str]:
        """Returns the arms in which a fact has one of these values."""
        return [arm for arm, value in self.known(group, name).items() if value in values]

    def on_labs_machine(self, arm: str) -> bool:
        """True if the arm's server runs on the machine that the lab runs on."""
        return bool(self.value(arm, "client", "connection") == THIS_MACHINE)

    def declared(self, arm: str, *keys: str) -> bool:
        """True if the study declares that this arm differs from the baseline in one of the keys."""
        return any(key in self.plan.declared.get(arm, []) for key in keys)

    def declared_below(self, arm: str, *prefixes: str) -> bool:
        """True if the study declares a difference of this arm in a key with one of the prefixes."""
        return any(key.startswith(prefixes) for key in self.plan.declared.get(arm, []))

    @cached_property
    def differences(self) -> list[Difference]:
        """Returns every fact in which an arm differs from the baseline, declared or not, in the order of the groups."""
        return [
            Difference(arm, group, name, base, value)
            for arm in (self.arms if self.baseline in self.facts else ())
            for group, name, (base, value) in compared([self.facts[self.baseline], self.facts[arm]])
            if base is not None and value is not None and base != value
        ]

    def is_unset(self, difference: Difference) -> bool:
        """True if a setting of this name is set neither in the arm nor in the baseline."""
        arms = (self.baseline, difference.arm)
        return not any(difference.name in self.facts[arm].facts.get("settings", {}) for arm in arms)


def known_value(facts: Facts, group: str, name: str) -> Any:
    """Returns a fact; None if it is unknown. Settings at their default are found, too."""
    groups = facts.facts
    if group == "settings" and name not in groups.get("settings", {}):
        return groups.get("defaults", {}).get(name)
    return groups.get(group, {}).get(name)


def compared(facts: Sequence[Facts]) -> Iterator[tuple[str, str, list[Any]]]:
    """Yields group, name and values of every fact that can distinguish servers, in the order of the groups."""
    for group in facts[0].facts:
        if group not in _NOT_COMPARED:
            parts = ("settings", "defaults") if group == "settings" else (group,)
            names = {name for fact in facts for part in parts for name in fact.facts.get(part, {})}
            yield from ((group, name, [known_value(fact, group, name) for fact in facts]) for name in sorted(names))


_NAMES = frozenset(f"storage.{of}{name}" for of in ("", "wal_") for name in ("source", "device", "mount_point"))
"""Facts that are only names and say nothing about speed. A volume that the lab creates again has other names."""


def changes(known: Facts, now: Facts, block: int) -> list[FactChange]:
    """Returns the facts of an arm that have changed since they were collected, as seen before a block.

    A fact that is unknown at one of the two times has not changed.
    """
    latest = {change.key: change.now for change in known.changed}
    changed = []
    for group, name, (first, value) in compared([known, now]):
        key = f"{group}.{name}"
        before = latest.get(key, first)
        if before is not None and value is not None and before != value and key not in _NAMES:
            changed.append(FactChange(block=block, collected=now.collected, key=key, before=before, now=value))
    return changed


def unlike(first: float | None, second: float | None, factor: float, by: float = 0.0) -> bool:
    """True if both values are known and differ by more than a factor and by more than an amount."""
    if not first or not second:
        return False
    return max(first, second) > factor * min(first, second) and abs(first - second) > by


def is_frequent(odd: int, of: int) -> bool:
    """True if odd trials, or odd pairs of a comparison, are more than the rare accidents that every study has."""
    return odd > TOLERATED * of


def listed(names: Iterable[str]) -> str:
    """Returns the names in words: `a`, `a and b`, `a, b and c`."""
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last


def as_shown(value: Any) -> str:
    """Returns a value as a message shows it."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return shortened(text or "''", _SHOWN)
