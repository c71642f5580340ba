"""Divides the budget of a gate among its studies, which run one after the other.

Each study has a share that is fixed before the first study begins. The time that a study does not use goes in equal
parts to the studies after it. The error stays exact: the plan of a study, with its budget, is fixed before its first
block, and the random order of its trials is drawn for it alone. So whatever decided how long the earlier studies took,
the study is wrong in at most its own part of the error.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from pgtrial.conduct.planning.stopping import time_spent
from pgtrial.conduct.study_directory import plan_now
from pgtrial.model import marks
from pgtrial.model.errors import BudgetError
from pgtrial.model.records.gate import GatedStudy
from pgtrial.model.study.spec import StudySpec
from pgtrial.model.units import format_duration, plural
from pgtrial.store.gate_directory import GateDirectory

_TINY_S = 1.0
"""A budget in seconds that is too short for any study. Planning with it finds the shortest one that suffices."""
_STEP_S = 60.0
"""The step in seconds by which a budget is lengthened if a plan within the time that it asked for is refused too. A
longer budget has a longer preliminary block."""


def shares(specs: Mapping[str, StudySpec], budget_s: float) -> list[float]:
    """Returns the share of each study in seconds. The studies, given by their names, have equal shares, but a study
    that needs more time for a verdict has as much as it needs.

    Raises BudgetError if the budget is too short for all studies together.
    """
    least: dict[str, float] = {}
    while len(least) < len(specs):
        equal_s = (budget_s - sum(least.values())) / (len(specs) - len(least))
        needing = {
            name: needed_s
            for name, spec in specs.items()
            if name not in least and (needed_s := _needed(spec, max(equal_s, _TINY_S))) is not None
        }
        if not needing and equal_s >= _TINY_S:
            return [least.get(name, equal_s) for name in specs]
        if not needing:
            break
        least |= needing
    raise _too_short(specs, budget_s)


def time_for(gate: GateDirectory, study: GatedStudy) -> float:
    """Returns the budget in seconds of a study that has not begun: its share, and its part of the time that earlier
    studies have not used. A study that has begun and has not ended keeps its whole budget."""
    saved_s, waiting = gate.record.budget_s, 0
    for other in gate.record.studies:
        begun = gate.begun(other)
        if begun is None:
            waiting += 1
            saved_s -= other.share_s
        else:
            spent_s = time_spent(begun.plan, begun.trials())
            saved_s -= spent_s if gate.ended(other) else max(spent_s, begun.spec.verdict.budget)
    return study.share_s + max(0.0, saved_s) / waiting


def _needed(spec: StudySpec, budget_s: float) -> float | None:
    """Returns the shortest budget in seconds that suffices for a verdict of the study, if `budget_s` does not suffice;
    otherwise None."""
    try:
        plan_now(spec.with_verdict(budget=budget_s))
    except BudgetError as error:
        return error.needed_s
    return None


def _least(spec: StudySpec) -> float:
    """Returns a budget in seconds that suffices for a verdict of the study and is hardly longer than it must be."""
    budget_s = _TINY_S
    while (needed_s := _needed(spec, budget_s)) is not None:
        budget_s = needed_s if needed_s > budget_s else budget_s + _STEP_S
    return budget_s


def _too_short(specs: Mapping[str, StudySpec], budget_s: float) -> BudgetError:
    least = {name: _least(spec) for name, spec in specs.items()}
    needed_s = sum(least.values())
    each = ", ".join(f"{name} {format_duration(of_study_s)}" for name, of_study_s in least.items())
    return BudgetError(
        f"a gate of {plural(len(specs), 'study')} needs at least {format_duration(needed_s)} ({each}), since they "
        f"share the error of 5%, and its budget is {format_duration(budget_s)}; "
        f"{marks.set_key('verdict', 'budget', f'{math.ceil(needed_s / 60)}min')} or more, or leave out a study",
        needed_s,
    )
