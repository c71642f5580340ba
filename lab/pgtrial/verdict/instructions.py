"""Compares the counted instructions of each arm with those of the baseline, and finds the functions that differ."""

from __future__ import annotations

from collections.abc import Mapping

from pgtrial.model.records.instructions import (
    FunctionCount,
    FunctionDifference,
    InstructionComparison,
    InstructionCount,
    InstructionCounts,
)
from pgtrial.model.records.plan import Plan

_MOST_FUNCTIONS = 30
"""The largest number of functions that a comparison lists."""

_NOTABLE = 1e-4
"""The share of the baseline's instructions from which on a difference of a function is listed."""

_Functions = Mapping[tuple[str, str], FunctionCount]


def compare_instructions(plan: Plan, counts: InstructionCounts | None) -> list[InstructionComparison]:
    """Returns a comparison of each arm with the baseline, for each load of which both were counted."""
    if counts is None:
        return []
    by_load: dict[str, dict[str, InstructionCount]] = {}
    for count in counts.counts:
        by_load.setdefault(count.load, {})[count.arm] = count
    return [
        _compared(of_arms[plan.baseline], of_arms[arm])
        for of_arms in by_load.values()
        for arm in plan.others
        if arm in of_arms and plan.baseline in of_arms
    ]


def _compared(base: InstructionCount, other: InstructionCount) -> InstructionComparison:
    return InstructionComparison(
        arm=other.arm,
        baseline=base.arm,
        load=other.load,
        transactions=other.transactions,
        baseline_instructions=base.mean,
        instructions=other.mean,
        spread=max(base.spread, other.spread),
        unnamed=max(base.unnamed, other.unnamed),
        functions=_differences(base, other),
    )


def _differences(base: InstructionCount, other: InstructionCount) -> list[FunctionDifference]:
    before, after = _by_name(base), _by_name(other)
    found = [_difference(key, before, after) for key in {**before, **after}]
    notable = [one for one in found if abs(one.difference) >= max(_NOTABLE, base.spread, other.spread) * base.mean]
    return sorted(notable, key=lambda one: (-abs(one.difference), one.name, one.program))[:_MOST_FUNCTIONS]


def _by_name(count: InstructionCount) -> _Functions:
    return {(function.name, function.program): function for function in count.functions}


def _difference(key: tuple[str, str], before: _Functions, after: _Functions) -> FunctionDifference:
    name, program = key
    absent = FunctionCount(name=name, program=program, own=0, below=0, callers={})
    one, other = before.get(key, absent), after.get(key, absent)
    by_caller = {
        caller: other.callers.get(caller, 0) - one.callers.get(caller, 0) for caller in {**one.callers, **other.callers}
    }
    sign = 1 if other.own >= one.own else -1
    caller = max(by_caller, key=lambda caller: (sign * by_caller[caller], caller), default=None)
    return FunctionDifference(
        name=name, program=program, baseline_own=one.own, own=other.own, below=other.below - one.below, caller=caller
    )
