"""What a study does next: a pure function of the plan, the budget and the stored trials, so that any lab can go on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pgtrial.analyse.results import analyse_study
from pgtrial.store.records import Plan, PlannedTrial, Trial
from pgtrial.study.units import format_duration

_OVERRUN = 1.25
"""Estimates are rough: a study may take a quarter longer than its budget before it is cut short of a planned look."""


@dataclass(frozen=True)
class Stop:
    """The study is finished."""

    reason: str


def next_step(plan: Plan, budget_s: float, stored: Sequence[Trial]) -> PlannedTrial | Stop:
    """The next planned trial, or why there is none. Verdicts are looked at only at the planned looks."""
    done = {trial.index for trial in stored}
    missing = next((planned for planned in plan.trials if planned.index not in done), None)
    if missing is None:
        return Stop(f"all {plan.max_blocks} planned blocks are complete")
    starts_block = missing.index == 0 or plan.trials[missing.index - 1].block != missing.block
    if not starts_block or missing.block == 0:
        return missing
    complete = [trial for trial in stored if trial.block < missing.block]
    if plan.stop_early and analyse_study(plan, complete).decided:
        return Stop(f"every comparison is decided after {missing.block} blocks")
    spent = sum(wall_time(trial) for trial in complete)
    if spent + spent / missing.block > _OVERRUN * budget_s:
        return Stop(f"the budget of {format_duration(budget_s)} is used up after {missing.block} blocks")
    return missing


def wall_time(trial: Trial) -> float:
    """Seconds of all phases of a stored trial."""
    return sum(trial.phases_s.values())


def time_left(plan: Plan, stored: Sequence[Trial]) -> float:
    """Seconds that the planned trials not yet stored will take, if they take as long as those that are."""
    each = sum(map(wall_time, stored)) / len(stored) if stored else plan.trial_estimate_s
    return each * (len(plan.trials) - len(stored))
