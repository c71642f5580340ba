"""What a study does next: a pure function of the plan, the budget and what is stored, so that any lab can go on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pgtrial.model.records.canary import Canary
from pgtrial.model.records.study import Plan, PlannedTrial, Trial
from pgtrial.model.units import format_duration
from pgtrial.statistics.canaries import judgements
from pgtrial.statistics.changes import Seconds
from pgtrial.statistics.claims import decide

_OVERRUN = 1.25
"""Estimates are rough: a study may take a quarter longer than its budget before it is cut short of a planned look."""


@dataclass(frozen=True)
class Stop:
    """The study is finished."""

    reason: str


@dataclass(frozen=True)
class JudgeBlock:
    """A block has ended that no canary has judged yet."""

    block: int


def next_step(
    plan: Plan,
    budget_s: float,
    stored: Sequence[Trial],
    canaries: Sequence[Canary] = (),
    seconds: Callable[[], Seconds] | None = None,
) -> PlannedTrial | JudgeBlock | Stop:
    """The next planned trial, or why there is none. Verdicts are looked at only at the planned looks.

    `seconds` is asked for the trials' timelines when a verdict may end the study: it takes two where regimes change.
    """
    done = {trial.index for trial in stored}
    watched = canaries[-1].next_block if canaries else None
    if watched is not None and all(planned.index in done for planned in plan.trials if planned.block == watched):
        return JudgeBlock(watched)
    missing = next((planned for planned in plan.due if planned.index not in done), None)
    if missing is None:
        return Stop("the planned block is complete" if plan.end == 1 else f"all {plan.end} planned blocks are complete")
    starts_block = missing.index == 0 or plan.trials[missing.index - 1].block != missing.block
    if not starts_block or missing.block == 0:
        return missing
    complete = [trial for trial in stored if trial.block < missing.block]
    extension = plan.extensions[-1] if plan.extensions else None
    if plan.stop_early and not (extension and extension.decided):
        known = seconds() if seconds else None
        if all(comparison.decided for comparison in decide(plan, complete, known)):
            return Stop(f"every comparison is decided after {missing.block} blocks")
    budget, since = (extension.budget_s, extension.after) if extension else (budget_s, 0)
    counted = sum(wall_time(trial) for trial in complete if trial.block >= since)
    voided = sum(each.spent_s for each in judgements(canaries) if each.outcome == "void" and each.block >= since)
    if budget is not None and voided + counted + block_time(complete) > _OVERRUN * budget:
        return Stop(f"the budget of {format_duration(budget)} is used up after {missing.block} blocks")
    return missing


def wall_time(trial: Trial) -> float:
    """Seconds of all phases of a stored trial."""
    return sum(trial.phases_s.values())


def block_time(complete: Sequence[Trial]) -> float:
    """Mean seconds of a block, of the trials of complete blocks."""
    return sum(map(wall_time, complete)) / len({trial.block for trial in complete})


def time_left(plan: Plan, stored: Sequence[Trial]) -> float:
    """Seconds that the planned trials not yet stored will take, if they take as long as those that are."""
    each = sum(map(wall_time, stored)) / len(stored) if stored else plan.trial_estimate_s
    return each * (len(plan.due) - len(stored))
