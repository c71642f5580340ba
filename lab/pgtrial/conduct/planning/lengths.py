"""Chooses the lengths of trials, that is of the warm-up and the measured part. The study gives them, or pgtrial chooses
them from the budget, the recorded noise of this machine and a preliminary block.

The preliminary block runs every arm once at every load point before the first block, and its results do not count. It
shows for how long the speed rises after the start of a load, and how much time a block takes in addition to its loads.
From this pgtrial chooses one warm-up and one measured part for all arms, and writes them into the plan before the first
block that counts. Therefore no trial that counts has a length that was chosen by its own result, and the random order
of each block is drawn after the choice.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from pgtrial.conduct.planning.block_estimates import (
    TrialLengths,
    fewest_for_a_verdict,
    overhead_estimate,
    planned_lengths,
)
from pgtrial.conduct.planning.declared import least_duration
from pgtrial.conduct.planning.deployments import are_units
from pgtrial.conduct.planning.interleaving import SLICE_S, is_whole
from pgtrial.conduct.planning.stopping import OVERRUN, longest_planned
from pgtrial.model import marks
from pgtrial.model.errors import BudgetError, StudyError
from pgtrial.model.records.machine import Noise
from pgtrial.model.records.plan import Interleaving, Lengths, Plan, PreliminaryBlock
from pgtrial.model.study.design import Design
from pgtrial.model.study.sysbench import is_sysbench
from pgtrial.model.units import format_duration, percent, plural
from pgtrial.statistics import capacity
from pgtrial.statistics.precision import best_length

MEASURED_SHARE = 0.75
"""The share of a block's wall time that the measured parts should have, if the budget permits. The measured part is the
whole number of steps whose share is closest to it."""
LEAST_BUDGET_S = 120.0
"""The smallest budget, in seconds, for which pgtrial chooses lengths."""
_SPARE_BLOCKS = 2
"""The number of blocks that are planned after the first look (interim analysis), if the budget permits. They are useful
because the first look decides only if all blocks agree."""
_SPENT_SHARE = 0.95
"""The share of the budget into which the smallest number of blocks has to fit. The rest is a reserve, since the
preliminary block may have been faster than later blocks."""
_LEAST_WARMUP_S, _WARMUP_STEP_S = 0.5, 0.25
_LEAST_DURATION_S = 2.0
_LONGEST_LOAD_SHARE = 0.25
"""The largest share of a trial's load that the warm-up may take if the budget is too short for the share
MEASURED_SHARE."""
_NOT_TOO_SHORT_S = 4.0
_FEWEST_SLICES = 2
_LONGEST_STEP_S = 86_400

_PRELIMINARY_SHARE = 0.03
"""The share of the budget that the loads of the preliminary block may take."""
_PRELIMINARY_S = (3.0, 30.0)
"""The shortest and the longest load of a trial in the preliminary block, in seconds."""
_LEAST_BY_SECONDS = 5.0
"""The shortest load of a trial in the preliminary block if trials do not alternate, in seconds. It is longer than the
shortest load in `_PRELIMINARY_S`, since the speed is then known only for each second and not for each slice."""


@dataclass(frozen=True)
class _Steps:
    """The steps in which lengths can be chosen, in seconds. A length is a whole number of steps, so that alternating
    trials end together with a slice."""

    warmup_s: float
    least_warmup_s: float
    """The shortest possible warm-up, which is a whole number of steps."""
    duration_s: float
    least_duration_s: float
    """The shortest possible measured part, which is a whole number of steps."""


@dataclass(frozen=True)
class _Known:
    """The facts from which pgtrial chooses the lengths. Times are in seconds."""

    budget_s: float
    trials: int
    """The number of trials in a block."""
    overhead_s: float
    """The time that a block takes in addition to its loads."""
    preliminary_s: float
    steps: _Steps
    together: int
    """The number of trials that alternate with each other; 1 if each trial runs alone."""
    block: PreliminaryBlock | None = None
    noise: Noise | None = None


def expected_lengths(design: Design, overhead_s: float | None = None, noise: Noise | None = None) -> TrialLengths:
    """Returns the lengths of trials as far as they are known before the first trial.

    `overhead_s` is the time that a block of such studies takes on this machine in addition to its loads; None if it is
    not known. `noise` is the recorded noise of such studies. Raises StudyError if no lengths fit into the budget.
    """
    overhead_s = overhead_estimate(design) if overhead_s is None else overhead_s
    if (given := _given(design, overhead_s)) is not None:
        return given
    known = replace(_before(design, overhead_s, _slices(design, design.interleaving)), noise=noise)
    lengths = _choose(design, known)
    if lengths is None or (design.verdict.blocks is None and design.verdict.budget < LEAST_BUDGET_S):
        raise _too_short(design, known)
    return lengths


def measured_lengths(design: Design, plan: Plan, block: PreliminaryBlock, noise: Noise | None) -> TrialLengths:
    """Returns the lengths that follow from the results of the preliminary block. Raises StudyError if no lengths fit
    into the budget."""
    if design.load.kind.stored.time_is_unknown:
        chosen = Lengths(wanted_warmup_s=0.0, expected_s=block.wall_s, preliminary=block)
        return TrialLengths(block.load_s, 0.0, 0.0, design.trials_of_block, block.overhead_s, chosen, block.wall_s)
    budget_s = design.verdict.budget
    known = _known(design, _slices(design, plan.interleaving), block.overhead_s, block.wall_s)
    known = replace(known, block=block, noise=noise)
    for held_s in (budget_s, OVERRUN * budget_s, longest_planned(budget_s)):
        if (lengths := _choose(design, replace(known, budget_s=held_s))) is not None:
            return lengths
    raise _too_short(design, known)


def preliminary_lengths(design: Design, slice_s: float) -> tuple[float, float]:
    """Returns the lengths of the warm-up and the measured part for trials of the preliminary block, in seconds.
    `slice_s` is the length of a slice."""
    alternate = design.interleaving is not None
    least, most = _PRELIMINARY_S
    if not alternate:
        least = _LEAST_BY_SECONDS
    load_s = min(most, max(least, _PRELIMINARY_SHARE * design.verdict.budget / design.trials_of_block))
    warmup_s = max(1.0, math.floor(load_s / 2))
    steps = _steps(design, [slice_s] if alternate else [])
    duration_s = max(steps.least_duration_s, _up(math.floor(load_s) - warmup_s, steps.duration_s))
    return _up(warmup_s, steps.warmup_s), duration_s


def longest_duration(design: Design) -> float:
    """Returns the length of the measured part in seconds, if the study gives it. Otherwise returns the longest length
    with which the budget can be sufficient for a verdict."""
    given_s = design.load.given_s[1]
    if given_s is not None:
        return given_s
    return max(_LEAST_DURATION_S, design.verdict.budget / _fewest(design) / design.trials_of_block - _LEAST_WARMUP_S)


def least_time(design: Design) -> float:
    """Returns the shortest time in which the study can reach a verdict, in seconds, with the shortest possible trials.
    The time includes the preliminary block."""
    overhead_s = overhead_estimate(design)
    if (given := _given(design, overhead_s)) is not None:
        return fewest_for_a_verdict(design) * given.block_s
    return _needed(design, _before(design, overhead_s, ()))[1]


def with_rehearsed_time(plan: Plan, design: Design, passes_s: Sequence[float]) -> Plan:
    """Returns the plan of a suite with the expected time of a trial as measured in the rehearsal. Returns the plan
    unchanged if a preliminary block will measure this time, or if the server restarts within trials.

    `passes_s` has, for each arm, the time in seconds that all queries together took when each ran once.
    """
    if plan.lengths is not None or design.load.suite.drops_caches:
        return plan
    beside_s = overhead_estimate(design) / len(plan.arms)
    return plan.model_copy(update={"trial_estimate_s": round(beside_s + design.load.suite.passes * fmean(passes_s), 3)})


def in_words(plan: Plan, design: Design) -> Iterator[str]:
    """Yields sentences that say which lengths pgtrial has chosen and why; none if the study gives the lengths."""
    chosen = plan.lengths
    if chosen is None:
        return
    lengths = planned_lengths(plan)
    if plan.kind.time_is_unknown:
        yield _end_in_words(plan, chosen)
        return
    both = f"{format_duration(plan.warmup_s)} of warm-up and {format_duration(plan.duration_s)} measured"
    fits = (
        f"{plural(plan.max_blocks, 'block')} of about {format_duration(round(lengths.block_s))}, "
        f"{percent(lengths.measured_share, 0)} of it measured"
    )
    if chosen.preliminary is None:
        yield f"about {both}: {fits}; a block before them, which does not count, sets both lengths"
        return
    noise = (
        ", the length with which the study finds the smallest differences in the noise of this machine"
        if chosen.from_noise
        else ""
    )
    yield f"{both}: {chosen.preliminary.text}; {fits}{noise}"
    total_s = chosen.preliminary.wall_s + plan.max_blocks * lengths.block_s
    if total_s > OVERRUN * design.verdict.budget and design.verdict.blocks is None:
        yield (
            f"the {plural(plan.max_blocks, 'block')} take about {format_duration(round(total_s))} with the one before "
            f"them, longer than the budget of {format_duration(design.verdict.budget)}, since fewer allow no verdict"
        )
    if plan.warmup_s < chosen.wanted_warmup_s and design.load.given_s[0] is None:
        yield (
            f"a warm-up of {format_duration(chosen.wanted_warmup_s)} does not fit into the budget of "
            f"{format_duration(design.verdict.budget)}; set a longer {marks.key('verdict', 'budget')} for it"
        )


def _end_in_words(plan: Plan, chosen: Lengths) -> str:
    """Returns a sentence on the time of a load that ends by itself: before the preliminary block how long a trial may
    take, and afterwards how long the job or the suite takes."""
    blocks, what = plural(plan.max_blocks, "block"), plan.kind.called
    if chosen.preliminary is None:
        return (
            f"the budget holds {blocks} if a trial takes {format_duration(round(plan.trial_estimate_s))}, and more if "
            f"it takes less; a block before them, which does not count, finds the time of {what}"
        )
    took = format_duration(round(chosen.preliminary.load_s, 1))
    block = format_duration(round(plan.block_estimate_s))
    return f"{what} takes {took} in the mean of all arms; {blocks} of about {block}"


def _given(design: Design, overhead_s: float) -> TrialLengths | None:
    """Returns the lengths that follow from the study file alone; None if pgtrial has to choose them."""
    load, trials = design.load, design.trials_of_block
    if load.kind.stored.time_is_unknown:
        return _of_unknown_end(design, trials, overhead_s)
    if load.capacity is not None:
        blocks = design.verdict.blocks or fewest_for_a_verdict(design) + _SPARE_BLOCKS
        held_s = (_SPENT_SHARE * design.verdict.budget / blocks - overhead_s) / trials
        warmup_s, probe_s = load.capacity.lengths(*load.given_s, held_s, capacity.EXPECTED)
        search_s = load.capacity.search_s(warmup_s, probe_s, capacity.EXPECTED)
        return TrialLengths(search_s, warmup_s, probe_s, trials, overhead_s)
    return None if load.chooses_lengths else TrialLengths(load.expected_s, *load.phases_s, trials, overhead_s)


def _of_unknown_end(design: Design, trials: int, overhead_s: float) -> TrialLengths:
    """Returns the lengths for a study of a job or a suite, whose time is not known yet. A trial is expected to take the
    longest time with which the budget is still sufficient for a verdict; the preliminary block measures the real time.

    There is no preliminary block if the study gives the number of blocks, or if the units of the verdict are
    deployments.
    """
    blocks, limit_s = design.verdict.blocks, design.load.longest_s
    share_s = design.verdict.budget / (blocks or fewest_for_a_verdict(design) + 1)
    load_s = min(limit_s, max(0.0, share_s - overhead_s) / trials)
    lengths = TrialLengths(load_s, 0.0, 0.0, trials, overhead_s)
    if blocks is not None or are_units(design):
        return lengths
    chosen = Lengths(wanted_warmup_s=0.0, expected_s=round(lengths.block_s, 3))
    return replace(lengths, chosen=chosen, preliminary_s=lengths.block_s)


def _before(design: Design, overhead_s: float, slices: Sequence[float]) -> _Known:
    """Returns the facts on which the choice of lengths depends, before the preliminary block has run."""
    preliminary_s = overhead_s + design.trials_of_block * sum(preliminary_lengths(design, SLICE_S))
    return _known(design, slices, overhead_s, preliminary_s)


def _known(design: Design, slices: Sequence[float], overhead_s: float, preliminary_s: float) -> _Known:
    """Returns the facts on which the choice of lengths depends, for a study whose trials alternate in slices of these
    lengths. If `slices` is empty, the trials do not alternate."""
    budget_s, trials, together = design.verdict.budget, design.trials_of_block, len(design.servers) if slices else 1
    return _Known(budget_s, trials, overhead_s, preliminary_s, _steps(design, slices), together)


def _choose(design: Design, known: _Known) -> TrialLengths | None:
    """Returns lengths with which a verdict is possible within the budget; None if there are none.

    The first look decides only if all blocks agree. Therefore two more blocks are planned, unless this makes the trials
    too short. Declared percentiles have priority over these two blocks, since no number of blocks can decide a
    percentile if a trial has too few transactions for it.
    """
    fewest, needed_s = _fewest(design), least_duration(design)
    if design.verdict.blocks is not None or are_units(design):
        return _fitting(design, known, fewest)
    for spare in range(_SPARE_BLOCKS, -1, -1) if needed_s else ():
        lengths = _fitting(design, known, fewest + spare)
        if lengths is not None and lengths.duration_s >= needed_s:
            return lengths
    more = _fitting(design, known, fewest + _SPARE_BLOCKS)
    if more is not None and (more.duration_s >= _NOT_TOO_SHORT_S or design.load.given_s[1] is not None):
        return more
    return _fitting(design, known, fewest)


def _fitting(design: Design, known: _Known, blocks: int) -> TrialLengths | None:
    """Returns lengths of trials with which this number of blocks fits into the budget; None if there are none. If the
    study itself gives the number of blocks, they may exceed the budget.

    The measured part takes its usual share of a block's time, or less if only that fits into the budget. It is longer
    than usual if declared percentiles need more transactions, or if the recorded noise shows that longer trials make
    the whole study shorter.
    """
    given_warmup, given_duration = design.load.given_s
    trials, overhead_s, steps = known.trials, known.overhead_s, known.steps
    wanted_s = _wanted_warmup(known)
    warmup_s = given_warmup if given_warmup is not None else wanted_s
    most_load_s = (_SPENT_SHARE * (known.budget_s - known.preliminary_s) / blocks - overhead_s) / trials
    if design.verdict.blocks is not None:  # if the given number of blocks exceeds the budget, the user is only warned
        most_load_s = max(most_load_s, (given_duration or steps.least_duration_s) + warmup_s)
    duration_s, from_noise = given_duration, False
    if duration_s is None:
        fair_s = MEASURED_SHARE / (1 - MEASURED_SHARE) * (overhead_s / trials + warmup_s)
        needed_s = _up(least_duration(design), steps.duration_s)
        duration_s = max(steps.least_duration_s, needed_s, _nearest(fair_s, steps.duration_s))
        if known.noise is not None and duration_s + warmup_s < most_load_s:
            possible = range(round(duration_s), math.floor(most_load_s - warmup_s) + 1, round(steps.duration_s))
            best_s = best_length(known.noise, possible, trials, overhead_s + trials * warmup_s)
            duration_s, from_noise = float(best_s), best_s > duration_s
    if duration_s + warmup_s > most_load_s:
        if given_warmup is None:
            spare_s = most_load_s - given_duration if given_duration else _LONGEST_LOAD_SHARE * most_load_s
            warmup_s = max(steps.least_warmup_s, min(warmup_s, _down(spare_s, steps.warmup_s)))
        if given_duration is None:
            duration_s = _down(most_load_s - warmup_s, steps.duration_s)
        if duration_s < (given_duration or steps.least_duration_s) or duration_s + warmup_s > most_load_s:
            return None
    chosen = Lengths(
        wanted_warmup_s=wanted_s,
        expected_s=round(known.preliminary_s, 3),
        from_noise=from_noise,
        preliminary=known.block,
    )
    load_s = warmup_s + duration_s
    return TrialLengths(load_s, warmup_s, duration_s, trials, overhead_s, chosen, known.preliminary_s)


def _wanted_warmup(known: _Known) -> float:
    """Returns the length of warm-up, in seconds, after which the speed no longer rises, and after which the checkpoint
    in the middle of the warm-up has ended."""
    block, steps = known.block, known.steps
    if block is None:
        return steps.least_warmup_s
    rises = [block.load_s if shape.rises_s is None else shape.rises_s for shape in block.shapes]
    return _up(max([steps.least_warmup_s, 2 * block.checkpoint_s / known.together, *rises]), steps.warmup_s)


def _slices(design: Design, interleaving: Interleaving | None) -> list[float]:
    """Returns the lengths of the slices at all load points, in seconds. The list is empty if the trials do not
    alternate."""
    if interleaving is None:
        return []
    return sorted({interleaving.slice_at(point) for point in range(len(design.load_points))})


def _steps(design: Design, slices: Sequence[float]) -> _Steps:
    """Returns the steps in which the lengths of trials can be chosen if the trials alternate in slices of these
    lengths. The step of the measured part is a whole number of seconds and a whole number of slices. This is true for
    the step of the warm-up only with sysbench, which accepts whole seconds only.

    Raises StudyError if there is no such step.
    """
    for seconds in range(1, _LONGEST_STEP_S + 1):
        if all(is_whole(seconds, slice_s) for slice_s in slices):
            break
    else:
        raise StudyError(
            f"{marks.key('load', 'interleave')}: no whole number of seconds is a whole number of these slices; write "
            "250ms"
        )
    step_s = float(seconds)
    whole_seconds = any(map(is_sysbench, design.load.workload))
    return _Steps(
        step_s if whole_seconds else _WARMUP_STEP_S,
        step_s if whole_seconds else _LEAST_WARMUP_S,
        step_s,
        _up(max([_LEAST_DURATION_S, *(_FEWEST_SLICES * slice_s for slice_s in slices)]), step_s),
    )


def _up(length_s: float, step_s: float) -> float:
    return step_s * math.ceil(length_s / step_s - 1e-9)


def _nearest(length_s: float, step_s: float) -> float:
    return step_s * math.floor(length_s / step_s + 0.5)


def _down(length_s: float, step_s: float) -> float:
    return step_s * math.floor(length_s / step_s + 1e-9)


def _fewest(design: Design) -> int:
    """Returns the number of blocks that the study gives, or else the smallest number that a verdict needs."""
    return design.verdict.blocks or fewest_for_a_verdict(design)


def _needed(design: Design, known: _Known) -> tuple[float, float]:
    """Returns the time of the shortest possible block, and the time that a verdict takes with such blocks, in
    seconds."""
    given_warmup, given_duration = design.load.given_s
    warmup_s = known.steps.least_warmup_s if given_warmup is None else given_warmup
    load_s = warmup_s + (given_duration or known.steps.least_duration_s)
    block_s = known.overhead_s + known.trials * load_s
    return block_s, max(LEAST_BUDGET_S, known.preliminary_s + _fewest(design) * block_s / _SPENT_SHARE)


def _too_short(design: Design, known: _Known) -> BudgetError:
    """Returns the error that tells the user that no lengths fit into the budget, and which budget would be
    sufficient."""
    block_s, needed_s = _needed(design, known)
    points, budget_s = len(design.load_points), design.verdict.budget
    fitting = [number for number in range(1, points) if needed_s * number / points <= budget_s]
    fewer = f", or use {plural(fitting[-1], 'load point')}" if fitting and budget_s >= LEAST_BUDGET_S else ""
    minutes = math.ceil(needed_s / 60)
    return BudgetError(
        f"a verdict needs at least {_fewest(design)} blocks of about {format_duration(block_s)} and one before them "
        f"that does not count, and the budget is {format_duration(budget_s)}; "
        f"{marks.set_key('verdict', 'budget')} to {minutes}min or more{fewer}",
        60.0 * minutes,
    )
