"""The lengths of trials: as the study gives them, or chosen from the budget, the noise record and a preliminary block.

The preliminary block runs every arm once at every load point before the first block, and does not count. It shows for
how long the speed rises after the start, and what a block takes beside its loads. The lengths follow from that, one
pair for all arms, and are written into the plan before the first block that counts. So no trial that counts has a
length that was chosen by its own result, and the coin of each block is tossed after the choice.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pgtrial.conduct.block_estimates import SPARE_BLOCKS, SPENT_SHARE, fewest_for_a_verdict, overhead_estimate
from pgtrial.conduct.capacity_lengths import lengths_of_searches
from pgtrial.conduct.declared import least_duration
from pgtrial.conduct.deployments import are_units
from pgtrial.conduct.interleaving import SLICE_S, interleaving_of, is_whole
from pgtrial.conduct.run_once_lengths import lengths_of_known_end, lengths_of_unknown_end
from pgtrial.conduct.stopping import OVERRUN, longest_planned
from pgtrial.conduct.trial_lengths import TrialLengths
from pgtrial.model.errors import BudgetError, StudyError
from pgtrial.model.records.machine import Noise
from pgtrial.model.records.plan import Interleaving, Lengths, Plan, PreliminaryBlock
from pgtrial.model.study.spec import StudySpec, load_points
from pgtrial.model.study.sysbench import is_sysbench
from pgtrial.model.units import format_duration, plural
from pgtrial.statistics.lengths import best_length

MEASURED_SHARE = 0.75
"""Of the wall time of a block, to be spent in measured parts where the budget holds that."""
LEAST_BUDGET_S = 120.0
"""Below it no lengths are chosen."""
_LEAST_WARMUP_S, _LEAST_DURATION_S = 0.5, 2.0
_WARMUP_STEP_S = 0.5
_LONGEST_LOAD_SHARE = 0.25
"""Of a trial's load that a warm-up may take where the budget does not hold the measured share."""
_NOT_TOO_SHORT_S = 4.0
_FEWEST_SLICES = 2

_PRELIMINARY_SHARE = 0.06
"""Of the budget, for the loads of the preliminary block."""
_PRELIMINARY_S = (3.0, 30.0)
"""The least and the most time of load of its trials."""
_LEAST_BY_SECONDS = 5.0
"""The least where trials do not alternate: the speed is then known by the second."""


@dataclass(frozen=True)
class _Known:
    """What is known when lengths are chosen; times in seconds."""

    budget_s: float
    trials: int
    """Of a block."""
    overhead_s: float
    """Of a block, beside its loads."""
    preliminary_s: float
    slices: Sequence[float]
    """Lengths of slices at all load points; none where trials do not alternate."""
    block: PreliminaryBlock | None = None
    noise: Noise | None = None


def expected_lengths(spec: StudySpec, overhead_s: float | None = None, noise: Noise | None = None) -> TrialLengths:
    """The lengths as far as they are known before the first trial.

    `overhead_s` is what a block of such a study takes beside its loads on this machine, None: unknown; `noise` that of
    such studies. Raises StudyError if no lengths fit the budget.
    """
    overhead_s = overhead_estimate(spec) if overhead_s is None else overhead_s
    trials = len(spec.arms) * len(load_points(spec))
    if spec.load.kind.stored.time_is_unknown:
        return lengths_of_unknown_end(spec, trials, overhead_s)
    if spec.load.capacity is not None:
        return lengths_of_searches(spec, spec.load.capacity, trials, overhead_s)
    if not spec.load.chooses_lengths:
        load = spec.load
        return TrialLengths(load.expected_s, *load.phases_s, trials, overhead_s)
    preliminary_s = overhead_s + trials * sum(preliminary_lengths(spec, SLICE_S))
    slices = _slices(spec, interleaving_of(spec))
    known = _Known(spec.verdict.budget, trials, overhead_s, preliminary_s, slices, noise=noise)
    lengths = _choose(spec, known)
    if lengths is None or (spec.verdict.blocks is None and spec.verdict.budget < LEAST_BUDGET_S):
        raise _too_short(spec, known)
    return lengths


def measured_lengths(spec: StudySpec, plan: Plan, block: PreliminaryBlock, noise: Noise | None) -> TrialLengths:
    """The lengths that follow from the preliminary block. Raises StudyError if none fit the budget."""
    trials = len(plan.arms) * len(plan.load_points)
    if spec.load.kind.stored.time_is_unknown:
        return lengths_of_known_end(block, trials)
    slices = _slices(spec, plan.interleaving)
    known = _Known(spec.verdict.budget, trials, block.overhead_s, block.wall_s, slices, block, noise)
    for budget_s in (known.budget_s, OVERRUN * known.budget_s, longest_planned(known.budget_s)):
        if (lengths := _choose(spec, replace(known, budget_s=budget_s))) is not None:
            return lengths
    raise _too_short(spec, known)


def preliminary_lengths(spec: StudySpec, slice_s: float) -> tuple[float, float]:
    """Warm-up and measured part of the trials of the preliminary block, seconds; with slices of this length."""
    trials = len(spec.arms) * len(load_points(spec))
    least, most = _PRELIMINARY_S
    if interleaving_of(spec) is None:
        least = _LEAST_BY_SECONDS
    load_s = min(most, max(least, _PRELIMINARY_SHARE * spec.verdict.budget / trials))
    warmup_s = max(1.0, math.floor(load_s / 2))
    rounds = [slice_s] if interleaving_of(spec) is not None else []
    duration_s = _whole_number(max(_LEAST_DURATION_S, math.floor(load_s) - warmup_s), rounds)
    whole = rounds if any(map(is_sysbench, spec.load.workload)) else []
    return _whole_number(warmup_s, whole, fewest=1), duration_s


def longest_duration(spec: StudySpec, plan: Plan) -> float:
    """The longest measured part with which the budget may hold a verdict, seconds; the study's own if it gives one."""
    given_s = spec.load.given_s[1]
    if given_s is not None:
        return given_s
    trials = len(plan.arms) * len(plan.load_points)
    blocks = spec.verdict.blocks or fewest_for_a_verdict(spec)
    return max(_LEAST_DURATION_S, spec.verdict.budget / blocks / trials - _LEAST_WARMUP_S)


def _choose(spec: StudySpec, known: _Known) -> TrialLengths | None:
    """The lengths with which a verdict is possible within the budget; None: there are none.

    A first look decides only if all blocks agree, so two blocks more are planned where their trials are not too short.
    A declared percentile comes before these: without the transactions that it takes, no number of blocks decides it.
    """
    if spec.verdict.blocks is not None or are_units(spec):
        return _fitting(spec, known, spec.verdict.blocks or fewest_for_a_verdict(spec))
    fewest, needed_s = fewest_for_a_verdict(spec), least_duration(spec)
    for spare in range(SPARE_BLOCKS, -1, -1) if needed_s else ():
        lengths = _fitting(spec, known, fewest + spare)
        if lengths is not None and lengths.duration_s >= needed_s:
            return lengths
    more = _fitting(spec, known, fewest + SPARE_BLOCKS)
    if more is not None and (more.duration_s >= _NOT_TOO_SHORT_S or spec.load.given_s[1] is not None):
        return more
    return _fitting(spec, known, fewest)


def _fitting(spec: StudySpec, known: _Known, blocks: int) -> TrialLengths | None:
    """The lengths with which the budget holds so many blocks; None: there are none.

    The measured part takes its share of the time, or as much as the budget holds. It is longer than that where declared
    percentiles take more transactions, or the noise record says that a study then takes less time.
    """
    given_warmup, given_duration = spec.load.given_s
    trials, overhead_s, slices = known.trials, known.overhead_s, known.slices
    wanted_s = _wanted_warmup(spec, known)
    warmup_s = given_warmup if given_warmup is not None else wanted_s
    most_load_s = (SPENT_SHARE * (known.budget_s - known.preliminary_s) / blocks - overhead_s) / trials
    if spec.verdict.blocks is not None:  # a number of blocks that the budget does not hold is only warned of
        most_load_s = max(most_load_s, (given_duration or _LEAST_DURATION_S) + warmup_s)
    duration_s, from_noise = given_duration, False
    if duration_s is None:
        fair_s = MEASURED_SHARE / (1 - MEASURED_SHARE) * (overhead_s / trials + warmup_s)
        duration_s = _whole_number(max(_LEAST_DURATION_S, fair_s, least_duration(spec)), slices)
        if known.noise is not None and duration_s + warmup_s < most_load_s:
            possible = range(round(duration_s), math.floor(most_load_s - warmup_s) + 1)
            fitting = [length_s for length_s in possible if _is_whole_number(length_s, slices)]
            best_s = best_length(known.noise, fitting, trials, overhead_s + trials * warmup_s)
            duration_s, from_noise = float(best_s), best_s > duration_s
    if duration_s + warmup_s > most_load_s:
        if given_warmup is None:
            spare_s = most_load_s - given_duration if given_duration else _LONGEST_LOAD_SHARE * most_load_s
            warmup_s = max(_least_warmup(spec, slices), min(warmup_s, _floor(spare_s, _warmup_step(spec, slices))))
        if given_duration is None:
            duration_s = _whole_number_below(most_load_s - warmup_s, slices)
        if duration_s < (given_duration or _LEAST_DURATION_S) or duration_s + warmup_s > most_load_s:
            return None
    chosen = Lengths(
        wanted_warmup_s=wanted_s,
        expected_s=round(known.preliminary_s, 3),
        from_noise=from_noise,
        preliminary=known.block,
    )
    load_s = warmup_s + duration_s
    return TrialLengths(load_s, warmup_s, duration_s, trials, overhead_s, chosen, known.preliminary_s)


def _wanted_warmup(spec: StudySpec, known: _Known) -> float:
    """Until the speed no longer rises, and the checkpoint in the middle of the warm-up has ended."""
    block, slices = known.block, known.slices
    wanted_s = _least_warmup(spec, slices)
    if block is not None:
        together = len(spec.arms) if slices else 1
        rises = [block.load_s if shape.rises_s is None else shape.rises_s for shape in block.shapes]
        wanted_s = max([wanted_s, 2 * block.checkpoint_s / together, *rises])
    step_s = _warmup_step(spec, slices)
    return step_s * math.ceil(wanted_s / step_s - 1e-9)


def _warmup_step(spec: StudySpec, slices: Sequence[float]) -> float:
    """Warm-ups are a whole number of these; sysbench's take whole seconds and whole slices."""
    return _whole_number(1.0, slices, fewest=1) if any(map(is_sysbench, spec.load.workload)) else _WARMUP_STEP_S


def _least_warmup(spec: StudySpec, slices: Sequence[float]) -> float:
    return max(_LEAST_WARMUP_S, _warmup_step(spec, slices))


def _slices(spec: StudySpec, interleaving: Interleaving | None) -> list[float]:
    """The lengths of slices of all load points; none where trials do not alternate."""
    if interleaving is None:
        return []
    return sorted({interleaving.slice_at(point) for point in range(len(load_points(spec)))})


def _floor(length_s: float, step_s: float) -> float:
    return step_s * math.floor(length_s / step_s + 1e-9)


def _is_whole_number(length_s: float, slices: Sequence[float], fewest: int = _FEWEST_SLICES) -> bool:
    return all(is_whole(length_s, slice_s) and length_s >= fewest * slice_s - 1e-9 for slice_s in slices)


_LONGEST_S = 86_400


def _whole_number(length_s: float, slices: Sequence[float], fewest: int = _FEWEST_SLICES) -> float:
    """The next whole number of seconds, and of slices, from a length on. Raises StudyError if there is none."""
    first = math.ceil(length_s - 1e-9)
    for seconds in range(first, first + _LONGEST_S):
        if _is_whole_number(seconds, slices, fewest):
            return float(seconds)
    raise StudyError("[load] interleave: no whole number of seconds is a whole number of these slices; write 250ms")


def _whole_number_below(length_s: float, slices: Sequence[float]) -> float:
    """The last whole number of seconds, and of slices, up to a length; 0: there is none."""
    fitting = (seconds for seconds in range(math.floor(length_s + 1e-9), 0, -1) if _is_whole_number(seconds, slices))
    return float(next(fitting, 0))


def least_time(spec: StudySpec) -> float:
    """Time that a verdict takes at least, with the shortest trials and the block before them, seconds."""
    trials, overhead_s = len(spec.arms) * len(load_points(spec)), overhead_estimate(spec)
    if spec.load.capacity is not None:
        return fewest_for_a_verdict(spec) * lengths_of_searches(spec, spec.load.capacity, trials, overhead_s).block_s
    if not spec.load.chooses_lengths:
        return fewest_for_a_verdict(spec) * (overhead_s + trials * spec.load.expected_s)
    preliminary_s = overhead_s + trials * sum(preliminary_lengths(spec, SLICE_S))
    return _needed(spec, _Known(spec.verdict.budget, trials, overhead_s, preliminary_s, ()))[1]


def _needed(spec: StudySpec, known: _Known) -> tuple[float, float]:
    """The shortest block, and the time that a verdict then takes, seconds."""
    given_warmup, given_duration = spec.load.given_s
    blocks = spec.verdict.blocks or fewest_for_a_verdict(spec)
    warmup_s = _least_warmup(spec, known.slices) if given_warmup is None else given_warmup
    load_s = warmup_s + (given_duration or _whole_number(_LEAST_DURATION_S, known.slices))
    block_s = known.overhead_s + known.trials * load_s
    return block_s, max(LEAST_BUDGET_S, known.preliminary_s + blocks * block_s / SPENT_SHARE)


def _too_short(spec: StudySpec, known: _Known) -> BudgetError:
    """That no lengths fit the budget, and what would fit."""
    block_s, needed_s = _needed(spec, known)
    blocks = spec.verdict.blocks or fewest_for_a_verdict(spec)
    points = len(load_points(spec))
    fitting = [number for number in range(1, points) if needed_s * number / points <= spec.verdict.budget]
    fewer = f", or use {plural(fitting[-1], 'load point')}" if fitting and spec.verdict.budget >= LEAST_BUDGET_S else ""
    minutes = math.ceil(needed_s / 60)
    return BudgetError(
        f"a verdict needs at least {blocks} blocks of about {format_duration(block_s)} and one before them that does "
        f"not count, and the budget is {format_duration(spec.verdict.budget)}; set [verdict] budget to "
        f"{minutes}min or more{fewer}",
        60.0 * minutes,
    )
