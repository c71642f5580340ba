"""The tables of what was compared: facts that differ, what was measured once an arm, and facts that are the same."""

from __future__ import annotations

import json
from typing import Any

from pgtrial.model.units import plural
from pgtrial.report.data import StudyData
from pgtrial.report.tables import Table

_NOT_COMPARED = ("probes", "sources")


def facts_tables(data: StudyData) -> list[Table]:
    """First the facts in which the arms differ, side by side; then, group by group, those that are the same in all."""
    arms = [arm for arm in data.plan.arms if arm in data.facts]
    declared = {key for keys in data.plan.declared.values() for key in keys}
    set_somewhere = {name for arm in arms for name in data.facts[arm].facts.get("settings", {})}
    differing: list[list[str]] = []
    same: list[Table] = []
    for group in dict.fromkeys(group for arm in arms for group in data.facts[arm].facts):
        if group in _NOT_COMPARED:
            continue
        of_arms = [data.facts[arm].facts.get(group, {}) for arm in arms]
        shared: list[list[str]] = []
        for name in dict.fromkeys(name for facts in of_arms for name in facts):
            if group == "defaults" and name in set_somewhere:
                continue
            values = [_shown(data.facts[arm].facts, group, name) for arm in arms]
            key = f"{group}.{name}"
            if len(set(values)) > 1:
                differing.append([key, *values, "yes" if key in declared else "no"])
            else:
                shared.append([name, values[0]])
        same.append(Table(f"{group}: {plural(len(shared), 'fact')} the same in all arms", ["fact", "value"], shared))
    caption = "Facts that differ between the arms, and whether the study declares that very difference."
    if data.plan.deployments > 1:
        caption += " Of each arm's deployments they are those of one; what differs between them the audit says."
    compared = Table(caption, ["fact", *arms, "declared"], differing, marked=frozenset(range(len(differing))))
    return [compared, *_probes(data, arms), *same]


def _probes(data: StudyData, arms: list[str]) -> list[Table]:
    """What was measured once an arm: side by side, for no two measurements are the same."""
    names = dict.fromkeys(name for arm in arms for name in data.facts[arm].facts.get("probes", {}))
    if not names:
        return []
    rows = [[name, *(_fact(data.facts[arm].facts.get("probes", {}).get(name)) for arm in arms)] for name in names]
    return [Table("Measured once an arm, with noise: flushes of the volume, round trips.", ["fact", *arms], rows)]


def _shown(facts: dict[str, dict[str, Any]], group: str, name: str) -> str:
    """A fact of an arm; of what is set in another arm and not in this one its default."""
    known = facts.get(group, {})
    if group == "settings" and name not in known and name in (defaults := facts.get("defaults", {})):
        return f"{_fact(defaults[name])} (default)"
    return _fact(known.get(name))


def _fact(value: Any) -> str:
    match value:
        case None:
            return "unknown"
        case bool():
            return "yes" if value else "no"
        case str():
            return value
        case int() | float():
            return str(value)
    return json.dumps(value, ensure_ascii=False)
