"""Going on with a study that has ended: more blocks in the order of its seed, and the looks that come next.

The coin goes on where it stopped, since the order of more blocks begins with the order of fewer. So do the looks: those
beyond the plan follow from the plan (statistics/p8.py), and each spends the next error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pgtrial
from pgtrial.conduct.deployments import are_units
from pgtrial.conduct.plan import CANARY_S, make_plan, takes_canaries
from pgtrial.conduct.stopping import block_time
from pgtrial.model.errors import StudyError
from pgtrial.model.records.plan import Extension, Plan, PlannedTrial
from pgtrial.model.records.trial import Trial
from pgtrial.model.study.spec import StudySpec
from pgtrial.model.units import format_duration, plural
from pgtrial.statistics import p8

_OF_THE_STUDY = {
    "baseline", "arms", "load_points", "margin", "stop_early", "drop_decided", "allow_busy_client", "warmup_s",
    "duration_s", "declared", "scripts", "deployments",
}  # fmt: skip
"""Fields of the plan that repeat the study."""


@dataclass(frozen=True)
class More:
    """How far a study goes on: so many blocks, or as many as a time holds, seconds."""

    blocks: int | None = None
    time_s: float | None = None


def extend(plan: Plan, spec: StudySpec, more: More, stored: Sequence[Trial], *, decided: bool, created: str) -> Plan:
    """The plan of a study that has ended and goes on; `stored` are its trials, `decided` whether every comparison is.

    Raises StudyError where the study cannot go on.
    """
    if are_units(spec):
        raise StudyError(
            f"a study whose verdict counts {plan.deployments} deployments cannot go on with more blocks on the same "
            "ones; run another study with more deployments"
        )
    done = {trial.index for trial in stored}
    after = next((planned.block for planned in plan.wanted if planned.index not in done), plan.max_blocks)
    end = after + _blocks(more, plan, spec, stored)
    trials = _order(plan, spec, max(plan.max_blocks, end))
    step = Extension(
        created=created,
        pgtrial=pgtrial.__version__,
        after=after,
        end=end,
        budget_s=more.time_s,
        decided=decided,
    )
    return plan.model_copy(
        update={
            "max_blocks": max(plan.max_blocks, end),
            "looks": p8.looks_until(end, plan.looks),
            "extensions": [*plan.extensions, step],
            "trials": trials,
        }
    )


def announcement(plan: Plan, stored: Sequence[Trial]) -> str:
    """What the last extension will do, for people."""
    step = plan.extensions[-1]
    blocks = step.end - step.after
    looks = [look for look in plan.looks if step.after < look <= step.end]
    ahead = next(look.blocks for look in p8.plan_and_beyond(plan.looks) if look.blocks > step.end)
    told = f"looks at {', '.join(map(str, looks))}" if looks else f"no look among them, the next is after block {ahead}"
    return (
        f"going on after {plural(step.after, 'block')} with {blocks} more, about "
        f"{format_duration(blocks * block_time(stored))}; {told}"
    )


def _blocks(more: More, plan: Plan, spec: StudySpec, stored: Sequence[Trial]) -> int:
    if more.time_s is None:
        return more.blocks or 1
    each = block_time(stored) + (CANARY_S if takes_canaries(spec, plan) else 0)
    blocks = int(more.time_s / each)
    if not blocks:
        raise StudyError(
            f"{format_duration(more.time_s)} holds no further block: one takes about {format_duration(each)}"
        )
    return blocks


def _order(plan: Plan, spec: StudySpec, blocks: int) -> list[PlannedTrial]:
    """The trials of so many blocks, drawn anew from the seed; those of the plan come first."""
    verdict = spec.verdict.model_copy(update={"blocks": blocks})
    drawn = make_plan(spec.model_copy(update={"verdict": verdict}).with_scripts(spec.scripts), plan.seed, plan.created)
    if drawn.model_dump(include=_OF_THE_STUDY) != plan.model_dump(include=_OF_THE_STUDY):
        raise StudyError(
            "study.toml was changed after the study began, and is not the study of plan.json; restore it from a copy, "
            "or run the changed study as one of its own"
        )
    if drawn.trials[: len(plan.trials)] != plan.trials:
        raise StudyError(
            f"the order of the blocks cannot be continued: pgtrial {plan.pgtrial} drew another one from seed "
            f"{plan.seed} than this version does; go on with that version, or run the study anew"
        )
    return drawn.trials
