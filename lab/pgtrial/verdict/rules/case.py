"""The input of every rule of the audit (`Case`), its output (`Concern`), and comparisons that several rules need. The
audit checks whether the comparison of the arms is fair."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from pgtrial.model.records.facts import Audit, FactChange, Facts, Finding
from pgtrial.model.records.instructions import InstructionCounts
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
"""Groups of facts that are not compared between arms. `settings` repeats the first two groups, `probes` is noisy, and
the last two groups have rules of their own (`rows.py`, `scripts.py`)."""

_SHOWN = 80
"""The number of characters of a value that a message shows."""


Severity = Literal["withhold", "warning", "info"]


@dataclass(frozen=True)
class Concern:
    """A problem that a rule has found. `message` says what was found and `cure` what the user can do; each is one
    sentence."""

    arms: Sequence[str]
    message: str
    cure: str
    severity: Severity = "warning"
    cells: Collection[tuple[str, int]] = ()
    """The arms and load points for which the concern withholds the verdict, if it is that severe. If it is empty, the
    verdicts at all load points of `arms` are withheld."""


@dataclass(frozen=True)
class Rule:
    """A rule of the audit: a function with a name. It reads a case (the facts and trials of a study) and returns the
    concerns (problems) that it finds there."""

    name: str
    title: str
    """The finding in a few words. Rules with the same name have the same title."""
    find: Callable[[Case], Iterable[Concern]]
    over_trials: bool
    """True if the rule reads the stored trials; other rules read only the facts (settings and other properties) of the
    arms."""

    def findings(self, case: Case) -> list[tuple[Finding, Concern]]:
        """Returns the concerns (problems) that the rule finds in a study, each with the finding: the concern in the
        form in which it is stored."""
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
    """Returns a decorator that makes a function into a rule of the audit. The findings of the rule have its name."""
    return lambda find: Rule(name, title, find, over_trials)


@dataclass(frozen=True)
class Difference:
    """A fact (a setting or other property) that differs between an arm and the baseline, with both values. Both values
    are known."""

    arm: str
    group: str
    name: str
    baseline_value: Any
    value: Any

    @property
    def key(self) -> str:
        """Returns the name of the fact, in the form in which studies declare it: `settings.work_mem`,
        `storage.filesystem`."""
        return f"{self.group}.{self.name}"


@dataclass(frozen=True)
class Case:
    """The input of the rules of the audit: the facts of a study, which describe its arms, and its stored trials with
    their measurements."""

    plan: Plan
    facts: Mapping[str, Facts]
    study: Design | None = None
    """The design of the study: its study file with all that follows from it. It is None for rules that read the trials,
    since they do not need it."""
    deployments: Mapping[str, Sequence[Facts]] = field(default_factory=dict)
    """The facts (settings and other properties) of each deployment, by arm, if an arm runs on several deployments
    (servers of the same product)."""
    trials: Sequence[Trial] = ()
    audit: Audit | None = None
    """The stored findings of the rules that read only facts (settings and other properties); None if these rules have
    not run yet."""
    seconds: Seconds | None = None
    """The number of commits in each second, by the index of the trial. If it is None, the rules do not check whether
    the speed changes within trials."""
    slices: Slices = field(default_factory=dict)
    """The slices of the trials in which arms take turns in slices of time. If they are missing, the effect of one arm's
    slice on the next one (carry-over) is not examined."""
    interruptions: Sequence[Interruption] = ()
    instructions: InstructionCounts | None = None
    """The counted instructions of the arms; None if the study does not count them."""
    voided: Sequence[int] = ()
    """The blocks that an earlier version of pgtrial had excluded from the study. The present version counts them."""

    @cached_property
    def grid(self) -> Grid:
        """Returns the trials by block, load point and arm. Some of them may be missing."""
        return Grid(self.plan, self.trials)

    @cached_property
    def speeds(self) -> CellSpeeds:
        """Returns the speeds of the trials in which arms took turns in slices of time. The speeds after slices of
        different arms are kept apart, so that carry-over, the effect of one arm's slice on the next arm, can be
        computed from them."""
        return cell_speeds(self.grid, self.slices)

    @cached_property
    def shifts(self) -> list[CarryOverShift]:
        """Returns by how much carry-over changes each comparison. Carry-over is the effect of one arm's slice on the
        speed of the next arm, in trials in which arms take turns in slices."""
        return shifts(self.grid, self.speeds)

    @property
    def design(self) -> Design:
        """Returns the design of the study: its study file with all that follows from it, such as the server of each
        arm. Only rules that read facts may ask for it. Raises RuntimeError if the case has no design."""
        if self.study is None:
            raise RuntimeError("this case has no design; only rules over facts may read it")
        return self.study

    @property
    def baseline(self) -> str:
        """Returns the arm with which the other arms are compared."""
        return self.plan.baseline

    @property
    def arms(self) -> list[str]:
        """Returns the arms whose facts (settings and other properties) are known, the baseline first."""
        return [arm for arm in self.plan.arms if arm in self.facts]

    @property
    def others(self) -> list[str]:
        """Returns all arms except the baseline."""
        return [arm for arm in self.plan.arms if arm != self.baseline]

    def completed(self, arm: str | None = None, point: LoadPoint | None = None) -> list[Trial]:
        """Returns the completed trials in their order, of one arm or of all arms, at one load point or at all load
        points."""
        index = None if point is None else self.plan.load_points.index(point)
        trials = [trial for name in self.plan.arms if arm in (None, name) for trial in self.grid.of(name, index)]
        return sorted((trial for trial in trials if trial.status == "completed"), key=lambda trial: trial.index)

    def pairs(self, arm: str, point: LoadPoint) -> list[tuple[Trial, Trial]]:
        """Returns pairs of completed trials of the same block: the trial of the baseline, and the trial of the arm."""
        base = {trial.block: trial for trial in self.completed(self.baseline, point)}
        return [(base[trial.block], trial) for trial in self.completed(arm, point) if trial.block in base]

    def value(self, arm: str, group: str, name: str) -> Any:
        """Returns the value of a fact, such as a setting, in an arm; None if it is unknown. It also knows settings that
        have their default value."""
        return known_value(self.facts[arm], group, name) if arm in self.facts else None

    def both(self, arm: str, group: str, name: str) -> tuple[Any, Any]:
        """Returns the value of a fact (a setting or other property) in the baseline and in an arm."""
        return self.value(self.baseline, group, name), self.value(arm, group, name)

    def known(self, group: str, name: str) -> dict[str, Any]:
        """Returns the value of a fact (a setting or other property) by arm, for every arm in which it is known."""
        values = {arm: self.value(arm, group, name) for arm in self.arms}
        return {arm: value for arm, value in values.items() if value is not None}

    def where(self, group: str, name: str, *values: Any) -> list[str]:
        """Returns the arms in which a fact (a setting or other property) has one of these values."""
        return [arm for arm, value in self.known(group, name).items() if value in values]

    def on_labs_machine(self, arm: str) -> bool:
        """True if the arm's server runs on the same machine as pgtrial."""
        return bool(self.value(arm, "client", "connection") == THIS_MACHINE)

    def declared(self, arm: str, *keys: str) -> bool:
        """True if the study declares that this arm differs from the baseline in one of these keys of the study file,
        such as `settings.work_mem`."""
        return any(key in self.plan.declared.get(arm, []) for key in keys)

    def declared_below(self, arm: str, *prefixes: str) -> bool:
        """True if the study declares that this arm differs from the baseline in a key of the study file that begins
        with one of the prefixes, such as `settings.`."""
        return any(key.startswith(prefixes) for key in self.plan.declared.get(arm, []))

    @cached_property
    def differences(self) -> list[Difference]:
        """Returns every fact (a setting or other property) that differs between an arm and the baseline, whether or not
        the study declares the difference, in the order of the groups."""
        return [
            Difference(arm, group, name, base, value)
            for arm in (self.arms if self.baseline in self.facts else ())
            for group, name, (base, value) in compared([self.facts[self.baseline], self.facts[arm]])
            if base is not None and value is not None and base != value
        ]

    def is_unset(self, difference: Difference) -> bool:
        """True if the differing setting was set neither in the arm nor in the baseline, so that only the defaults
        differ."""
        arms = (self.baseline, difference.arm)
        return not any(difference.name in self.facts[arm].facts.get("settings", {}) for arm in arms)


def known_value(facts: Facts, group: str, name: str) -> Any:
    """Returns the value of a fact, such as a setting; None if it is unknown. It also knows settings that have their
    default value."""
    groups = facts.facts
    if group == "settings" and name not in groups.get("settings", {}):
        return groups.get("defaults", {}).get(name)
    return groups.get(group, {}).get(name)


def compared(facts: Sequence[Facts]) -> Iterator[tuple[str, str, list[Any]]]:
    """Yields the group, the name and the values of every fact that can distinguish servers, in the order of the
    groups."""
    for group in facts[0].facts:
        if group not in _NOT_COMPARED:
            parts = ("settings", "defaults") if group == "settings" else (group,)
            names = {name for fact in facts for part in parts for name in fact.facts.get(part, {})}
            yield from ((group, name, [known_value(fact, group, name) for fact in facts]) for name in sorted(names))


_NAMES = frozenset(f"storage.{of}{name}" for of in ("", "wal_") for name in ("source", "device", "mount_point"))
"""Facts that are only names and do not affect the speed. If pgtrial creates a volume again, its names change."""


def changes(known: Facts, now: Facts, block: int) -> list[FactChange]:
    """Returns the facts (settings and other properties) of an arm that have changed since they were last collected.
    `known` has the facts as they were first collected, with the changes found since then, and `now` the facts as they
    are before the block with the number `block`.

    A fact that is unknown at one of the two times does not count as changed.
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
    """True if both values are known, their ratio is above `factor`, and their difference is above `by`."""
    if not first or not second:
        return False
    return max(first, second) > factor * min(first, second) and abs(first - second) > by


def is_frequent(odd: int, of: int) -> bool:
    """True if too many trials, or pairs of trials, are disturbed: `odd` out of `of`. Any study may have a small share
    of disturbed trials (TOLERATED in `pgtrial.statistics.p8`) without a finding."""
    return odd > TOLERATED * of


def listed(names: Iterable[str]) -> str:
    """Returns the names in words: `a`, `a and b`, `a, b and c`."""
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last


def as_shown(value: Any) -> str:
    """Returns a value in the form in which messages show it, shortened if it is long."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return shortened(text or "''", _SHOWN)
