"""Decides what a study does next. The decision depends only on the plan, the budget and the stored trials, so that any
process of the lab can continue the study."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pgtrial.conduct.planning.readings import Readings
from pgtrial.model.records.plan import Plan, PlannedTrial
from pgtrial.model.records.trial import Trial
from pgtrial.model.units import format_duration, plural
from pgtrial.statistics import p8
from pgtrial.store.directory import StudyDirectory
from pgtrial.verdict.changes import Regimes
from pgtrial.verdict.claims import comparisons, decided_arms
from pgtrial.verdict.grid import Grid
from pgtrial.verdict.metrics.queries import queries_of_plan
from pgtrial.verdict.metrics.single_parts import slower_parts, undecided_parts
from pgtrial.verdict.pace import block_time, under_way_s
from pgtrial.verdict.units import looks_of

OVERRUN = 1.25
"""The factor by which a study may exceed its budget in order to reach a look (an interim analysis), since time
estimates are rough."""

_LONGER_TO_FIRST_LOOK_S = 180.0
"""The time, in seconds, by which a short study may exceed its budget in order to reach its first look. If it ended
before that look, all its time would be wasted."""

_FAILED_BLOCKS = 2
"""The number of blocks after which a study ends if all trials so far have failed. One block is not enough for this
decision, since a temporary fault of the machine can make all its trials fail."""

_FEWEST_MEASURED = 2
"""The smallest number of blocks from which the time of a block is estimated, since a single block can be slow by
chance."""


@dataclass(frozen=True)
class Stop:
    """The decision that the study ends, with the reason."""

    reason: str
    blocks_to_look: int = 0
    """The number of blocks up to the next look at the verdict, if the budget has ended the study; otherwise 0."""


Step = PlannedTrial | Stop


def longest_planned(budget_s: float) -> float:
    """Returns the longest time for which a study is planned after its preliminary block, in seconds.

    Up to its first look, a study may exceed its budget by some time. Only half of this time is planned; the other half
    is a reserve for blocks that are slower than the preliminary block.
    """
    return max(OVERRUN * budget_s, budget_s + _LONGER_TO_FIRST_LOOK_S / 2)


def _longest(budget_s: float, *, before_first_look: bool) -> float:
    """Returns the longest time that a study may take up to its next look, in seconds."""
    longest_s = OVERRUN * budget_s
    return max(longest_s, budget_s + _LONGER_TO_FIRST_LOOK_S) if before_first_look else longest_s


def ended_too_early(plan: Plan, step: Step, stored: Sequence[Trial]) -> bool:
    """True if the budget has ended the study before its first look, so that it has no verdict."""
    blocks = len({trial.block for trial in stored})
    return isinstance(step, Stop) and step.blocks_to_look > 0 and blocks < min(plan.looks, default=0)


def next_step_of(study: StudyDirectory, readings: Readings, *, stop_asked: bool = False) -> Step:
    """Returns the next step of a study: the trial to run next, or the reason to stop. The arguments are as for
    `next_step`."""
    return next_step(study.plan, study.spec.verdict.budget, readings.trials, readings.regimes, stop_asked=stop_asked)


def next_step(
    plan: Plan,
    budget_s: float,
    stored: Sequence[Trial],
    regimes: Callable[[], Regimes] | None = None,
    *,
    stop_asked: bool = False,
) -> Step:
    """Returns the next planned trial, or the reason why the study ends. Whether the verdicts end the study is checked
    only at a planned look.

    `regimes` returns the levels of performance within the trials. It is called only when the verdicts may end the
    study; if the level changes within trials, a comparison has two verdicts, one for each level. With `stop_asked` the
    study ends before its next block.
    """
    done = {trial.index for trial in stored}
    missing = next((planned for planned in plan.due if planned.index not in done), None)
    if missing is None:
        ended = "the planned block is complete" if plan.end == 1 else f"all {plan.end} planned blocks are complete"
        return Stop(ended + waiting(plan, stored, plan.end))
    first = next(planned for planned in plan.wanted if planned.block == missing.block)
    if missing.block == 0 or missing != first:
        return missing
    complete = [trial for trial in stored if trial.block < missing.block]
    if missing.block >= _FAILED_BLOCKS and not plan.extensions and all(trial.status == "failed" for trial in complete):
        return Stop(f"no trial of the first {missing.block} blocks completed, on any arm")
    extension = plan.extensions[-1] if plan.extensions else None
    if plan.others and plan.stop_early and missing.block in plan.looks and not (extension and extension.decided):
        grid = Grid(plan, complete)
        if _is_answered_by_a_part(plan) and slower_parts(grid) == set(plan.others):
            noun = "query" if queries_of_plan(plan) else "statement"
            slower = " and ".join(plan.others)
            return Stop(f"a {noun} is certainly slower on {slower} after {missing.block} blocks")
        known = regimes() if regimes else None
        if all(comparison.decided for comparison in comparisons(grid, known)) and not undecided_parts(grid):
            return Stop(f"the intervals of all comparisons decide after {missing.block} blocks")
    return _cut_short(plan, budget_s, complete, stop_asked=stop_asked) or missing


def _is_answered_by_a_part(plan: Plan) -> bool:
    """True if a single query or statement that is slower answers the question of the study, whatever the other
    comparisons show later. This is so in a gate, which only asks whether an arm is worse, and whose claims on single
    queries and statements share one error with the claim on the mean."""
    return plan.is_final and plan.is_one_sided and plan.families > 1


def _cut_short(plan: Plan, budget_s: float, complete: Sequence[Trial], *, stop_asked: bool) -> Stop | None:
    """Returns the reason why the study has to end before the next block although comparisons are undecided, such as the
    budget or a request of the user; None if it need not end."""
    blocks = len({trial.block for trial in complete})
    if stop_asked:
        return Stop(f"stopped on request after {plural(blocks, 'block')}; run it again to go on")
    extension = plan.extensions[-1] if plan.extensions else None
    budget, since = (extension.budget_s, extension.after) if extension else (budget_s, 0)
    if budget is None or blocks < _FEWEST_MEASURED:
        return None
    block_s = block_time(plan, complete)
    spent_s = (
        time_spent(plan, complete)
        if extension is None
        else under_way_s([trial for trial in complete if trial.block >= since])
    )
    ahead = next((look for look in plan.looks if blocks < look <= plan.end), plan.end)
    before_first_look = blocks < min(plan.looks, default=0) == ahead
    if spent_s + (ahead - blocks) * block_s <= _longest(budget, before_first_look=before_first_look):
        return None
    ended = f"the budget of {format_duration(budget)} ended after {blocks} of {plural(plan.end, 'block')}"
    left_s, more = (ahead - blocks) * block_s, plural(ahead - blocks, "more block")
    if before_first_look:
        takes = f"a verdict takes {plural(ahead, 'block')}, and {more} about {format_duration(round(left_s))}"
        return Stop(f"{ended}: {takes}; the same command goes on with this study", ahead - blocks)
    upcoming = "up to the next look at the verdict" if ahead in plan.looks else "up to the end"
    return Stop(
        f"{ended}: {more} {upcoming} would take about {format_duration(round(left_s))}"
        + waiting(plan, complete, blocks),
        ahead - blocks,
    )


def time_spent(plan: Plan, stored: Sequence[Trial]) -> float:
    """Returns the part of its budget that a study has used, in seconds: the time of its trials and of its preliminary
    block."""
    preliminary = plan.lengths.preliminary if plan.lengths is not None else None
    return under_way_s(stored) + (preliminary.wall_s if preliminary is not None else 0.0)


def waiting(plan: Plan, stored: Sequence[Trial], blocks: int) -> str:
    """Returns a clause about blocks that come after the last look, so that no verdict uses them yet: `; 5 of them wait
    for the next look at the verdict, after block 27 (4 blocks, about 1min 20s: --more 80s)`.

    Returns an empty text if there are no such blocks, or if the study is too short for a look.
    """
    number = p8.waiting(plan.looks, blocks)
    if not number or not plan.looks_within or plan.deployments > 1:
        return ""
    ahead = looks_of(plan).next_after(blocks)
    left_s = (ahead - blocks) * block_time(plan, stored)
    which = f"{number} of them" if number < blocks else "all of them"
    return (
        f"; {which} {'waits' if number == 1 else 'wait'} for the next look at the verdict, after block {ahead} "
        f"({plural(ahead - blocks, 'block')}, about {format_duration(round(left_s))}: --more {as_option(left_s)})"
    )


def as_option(seconds: float) -> str:
    """Returns a time in the form in which a user writes it for an option, such as `80s` or `12min`. It is rounded
    up."""
    return f"{math.ceil(seconds)}s" if seconds <= 2 * 60 else f"{math.ceil(seconds / 60)}min"


def leaving(plan: Plan, stored: Sequence[Trial], regimes: Callable[[], Regimes] | None = None) -> list[str]:
    """Returns the arms that get no further trials, because a look has decided all their claims while claims of other
    arms are still undecided.

    If every comparison is decided, returns no arms, since then the stopping rule decides what comes next.
    """
    if not plan.drop_decided:
        return []
    grid = Grid(plan, stored)
    blocks = len(grid.counted)
    begun = any(trial.block >= blocks for trial in stored)
    if begun or blocks not in plan.looks or (plan.extensions and plan.extensions[-1].decided):
        return []
    decided = decided_arms(grid, regimes() if regimes else None)
    remaining = [arm for arm in plan.arms if arm != plan.baseline and arm not in plan.left]
    return [] if set(decided) >= set(remaining) else [arm for arm in remaining if arm in decided]


def time_left(plan: Plan, stored: Sequence[Trial]) -> float:
    """Returns the time that the remaining planned trials will take, in seconds, if they take as long as the stored
    trials."""
    trials = len(plan.load_points) * (len(plan.arms) - len(plan.left))
    return block_time(plan, stored) / trials * (len(plan.due) - len(stored))
