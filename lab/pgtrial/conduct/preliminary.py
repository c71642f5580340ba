"""The preliminary block: before the first block every arm runs once at every load point, so that pgtrial can choose the
lengths of trials."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence

from pgtrial.conduct.drawn_values import ValuesOfArms
from pgtrial.conduct.planning.block_estimates import fewest_for_a_verdict
from pgtrial.conduct.planning.lengths import in_words, longest_duration, measured_lengths, preliminary_lengths
from pgtrial.conduct.planning.noise import noise_for
from pgtrial.conduct.planning.plan import with_lengths
from pgtrial.conduct.planning.stopping import OVERRUN
from pgtrial.conduct.progress import Listener, Preparing
from pgtrial.conduct.trial.longer_slices import SlicesTooShort
from pgtrial.conduct.trial.run_trials import UnstoredTrial, run_unstored
from pgtrial.loads.load_makers import LoadMaker
from pgtrial.model import marks
from pgtrial.model.errors import BudgetError, StudyError
from pgtrial.model.records.plan import Plan, PlannedTrial, PreliminaryBlock, WarmUpShape
from pgtrial.model.study.design import Design
from pgtrial.model.study.load_section import LoadSection
from pgtrial.model.units import format_duration
from pgtrial.servers.arm import Arm
from pgtrial.statistics.warming import rises_s
from pgtrial.store.directory import StudyDirectory

_SECOND_S = 1.0


def find_lengths(
    study: StudyDirectory,
    design: Design,
    arms: Mapping[str, Arm],
    listener: Listener,
    *,
    maker: LoadMaker,
    engine_grace_s: float,
    values: ValuesOfArms | None = None,
) -> Plan:
    """Runs the preliminary block if the plan needs it, writes the chosen lengths of trials into the plan, and returns
    the plan.

    Raises StudyError if no lengths fit into the budget, and the errors of `run_trials`.
    """
    if study.plan.lengths is None or study.plan.lengths.preliminary is not None:
        return study.plan

    def run(group: Sequence[PlannedTrial], load: LoadSection, longest_s: float) -> list[UnstoredTrial]:
        return run_unstored(
            study,
            group,
            arms,
            listener,
            load,
            longest_s=longest_s,
            engine_grace_s=engine_grace_s,
            maker=maker,
            values=values,
        )

    block = _run(study, design, run, listener)
    plan = study.plan
    lengths = measured_lengths(design, plan, block, noise_for(design, plan.duration_s))
    study.extend(plan := with_lengths(plan, design, lengths))
    for sentence in in_words(plan, design):
        listener(Preparing(f"lengths: {sentence}", stays=True))
    return plan


_Run = Callable[[Sequence[PlannedTrial], LoadSection, float], list[UnstoredTrial]]
"""A function that runs trials that belong together. Its arguments are the trials, the load with their lengths, and the
longest measured part that may be chosen after them, in seconds."""


def _run(study: StudyDirectory, design: Design, run: _Run, listener: Listener) -> PreliminaryBlock:
    due = [planned for planned in study.plan.wanted if planned.block == 0]
    stored = design.load.kind.stored
    what = f"the time of {stored.called}" if stored.time_is_unknown else "the lengths of trials"
    listener(Preparing(f"a preliminary block, which does not count, finds {what}", stays=True))
    began = time.monotonic()
    trials: list[UnstoredTrial] = []
    lost_s = 0.0
    while due:
        group_began = time.monotonic()
        group = study.together(due[0])
        load = design.load.timed(*preliminary_lengths(design, _slice_s(study.plan, group)))
        # a job that takes longer leaves no time for a verdict within the budget
        load = load.kind.limited(load, longest_job(design))
        try:
            trials += run(group, load, longest_duration(design))
            _check_job(design, load, trials[-1])
            _check_suite(design, trials)
        except SlicesTooShort as too_short:
            listener(Preparing(f"{too_short}", stays=True))
            study.extend(too_short.lengthened(study.plan))
            lost_s += time.monotonic() - group_began
            continue
        due = due[len(group) :]
    wall_s = time.monotonic() - began
    load_s = sum(_load_s(trial) for trial in trials)
    return PreliminaryBlock(
        wall_s=round(wall_s, 3),
        load_s=round(load_s / len(trials), 3),
        overhead_s=round(max(0.0, wall_s - lost_s - load_s), 3),
        checkpoint_s=round(max((trial.result.collected.checkpoint_s or 0.0 for trial in trials), default=0.0), 3),
        shapes=[_shape(study.plan, trial) for trial in trials if _has_shape(trial)],
    )


def longest_loads(design: Design) -> float:
    """Returns the longest time, in seconds, that the loads of a block may take. If they took longer, the budget would
    not be sufficient for a verdict, even if blocks took no other time."""
    return OVERRUN * design.verdict.budget / fewest_for_a_verdict(design)


def longest_job(design: Design) -> float:
    """Returns the longest time, in seconds, that a job may take. If it took longer, the budget would not be sufficient
    for a verdict, even if blocks took no other time."""
    return longest_loads(design) / design.trials_of_block


def _check_job(design: Design, load: LoadSection, trial: UnstoredTrial) -> None:
    """Raises StudyError if pgtrial has ended the job because it took too long for a verdict within the budget."""
    limit_s, arm = load.job.limit, trial.order.planned.arm
    if limit_s == design.load.job.limit or _load_s(trial) < limit_s:
        return
    blocks, trials = fewest_for_a_verdict(design), design.trials_of_block
    least_s = (blocks + 1) * trials * limit_s
    took = format_duration(round(limit_s, 1))
    raise StudyError(
        f"the job had not ended on {arm} after {took}, but a verdict needs at least {blocks} blocks; "
        f"{marks.set_key('verdict', 'budget')} to {math.ceil(least_s / 60)}min or more, or take less data "
        f"({marks.key('load', 'scale')})"
    )


def _check_suite(design: Design, trials: Sequence[UnstoredTrial]) -> None:
    """Raises BudgetError if the queries of a suite took too long for a verdict within the budget."""
    load_s, blocks = sum(map(_load_s, trials)), fewest_for_a_verdict(design)
    if not design.load.kind.is_of_queries or load_s <= longest_loads(design):
        return
    minutes = math.ceil((blocks + 1) * load_s / 60)
    took, arms = format_duration(round(load_s, 1)), " and ".join(trial.order.planned.arm for trial in trials)
    raise BudgetError(
        f"the queries took {took} on {arms}, but a verdict needs at least {blocks} blocks; "
        f"{marks.set_key('verdict', 'budget')} to {minutes}min or more, or take less data "
        f"({marks.key('load', 'scale')}) or fewer queries",
        60.0 * minutes,
    )


def _load_s(trial: UnstoredTrial) -> float:
    """Returns the time of a trial's load in seconds: the planned time or, for a job or a suite, the time that it
    took."""
    load = trial.order.load
    return trial.result.seconds.get("load", 0.0) if load.kind.stored.time_is_unknown else sum(load.phases_s)


def _has_shape(trial: UnstoredTrial) -> bool:
    return bool(trial.result.load.outcome.ticks) and not trial.order.load.kind.stored.time_is_unknown


def _slice_s(plan: Plan, group: Sequence[PlannedTrial]) -> float:
    return plan.interleaving.slice_at(group[0].load_point) if plan.interleaving is not None else _SECOND_S


def _shape(plan: Plan, trial: UnstoredTrial) -> WarmUpShape:
    planned = trial.order.planned
    step_s = _slice_s(plan, [planned])
    speeds = trial.result.load.outcome.speeds(paced=trial.order.point.rate is not None)
    return WarmUpShape(
        load_point=planned.load_point,
        arm=planned.arm,
        step_s=step_s,
        speeds=[round(speed, 2) for speed in speeds],
        rises_s=rises_s(speeds, step_s),
    )
