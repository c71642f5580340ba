"""How long a trial of a job or a suite takes: both end by themselves, and the preliminary block finds their time."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from pgtrial.conduct.block_estimates import fewest_for_a_verdict, overhead_estimate
from pgtrial.conduct.deployments import are_units
from pgtrial.conduct.stopping import OVERRUN
from pgtrial.conduct.trial_lengths import TrialLengths
from pgtrial.model.records.plan import Lengths, Plan, PreliminaryBlock
from pgtrial.model.study.spec import StudySpec, load_points
from pgtrial.model.units import format_duration, plural


def lengths_of_unknown_end(spec: StudySpec, trials: int, overhead_s: float) -> TrialLengths:
    """The longest job or suite with which the budget holds a verdict; the preliminary block finds its real time.

    With a number of blocks that the study gives there is no such block.
    """
    blocks, limit_s = spec.verdict.blocks, spec.load.longest_s
    share_s = spec.verdict.budget / (blocks or fewest_for_a_verdict(spec) + 1)
    load_s = min(limit_s, max(0.0, share_s - overhead_s) / trials)
    if blocks is not None or are_units(spec):
        return TrialLengths(load_s, 0.0, 0.0, trials, overhead_s)
    block_s = overhead_s + trials * load_s
    return TrialLengths(
        load_s, 0.0, 0.0, trials, overhead_s, Lengths(wanted_warmup_s=0.0, expected_s=round(block_s, 3)), block_s
    )


def lengths_of_known_end(block: PreliminaryBlock, trials: int) -> TrialLengths:
    """The lengths of a job or a suite whose time the preliminary block has found; `trials` of a block."""
    chosen = Lengths(wanted_warmup_s=0.0, expected_s=block.wall_s, preliminary=block)
    return TrialLengths(block.load_s, 0.0, 0.0, trials, block.overhead_s, chosen, block.wall_s)


def with_rehearsed_time(plan: Plan, spec: StudySpec, passes_s: Sequence[float]) -> Plan:
    """The plan of a suite with its time as rehearsed, where no preliminary block measures it and no server restarts.

    `passes_s` is how long all queries took once on each arm, seconds.
    """
    if plan.lengths is not None or spec.load.suite.drops_caches:
        return plan
    beside_s = overhead_estimate(spec) / len(plan.arms)
    return plan.model_copy(update={"trial_estimate_s": round(beside_s + spec.load.suite.passes * fmean(passes_s), 3)})


def longest_loads(spec: StudySpec) -> float:
    """The time of a block's loads above which the budget holds no verdict, whatever else a block takes; seconds."""
    return OVERRUN * spec.verdict.budget / fewest_for_a_verdict(spec)


def longest_job(spec: StudySpec) -> float:
    """The time of a job above which the budget holds no verdict, whatever else a block takes; seconds."""
    return longest_loads(spec) / (len(spec.arms) * len(load_points(spec)))


def end_in_words(plan: Plan, chosen: Lengths) -> str:
    """How long a trial may take, or how long the job or the suite takes."""
    blocks, what = plural(plan.max_blocks, "block"), plan.kind.called
    if chosen.preliminary is None:
        return (
            f"the budget holds {blocks} if a trial takes {format_duration(round(plan.trial_estimate_s))}, and more if "
            f"it takes less; a block before them, which does not count, finds the time of {what}"
        )
    took = format_duration(round(chosen.preliminary.load_s, 1))
    block = format_duration(round(plan.block_estimate_s))
    return f"{what} takes {took} in the mean of all arms; {blocks} of about {block}"
