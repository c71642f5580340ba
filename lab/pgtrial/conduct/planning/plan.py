"""The plan of a study: load points, looks, the number of blocks, and the order of all trials, which is drawn once from
a recorded seed. The functions have no input or output.

The random order is the reason why the verdict is exact: in every block each arm runs once at every load point, and
NumPy's Philox generator decides by a fair draw which arm comes first. The plan is stored before the first trial runs.

A study that has ended can be extended. For the same seed, the order of more blocks begins with the order of fewer
blocks, so the extended plan only adds trials. Further looks follow from the plan as well (statistics/p9.py), and each
of them uses a further part of the error.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

import pgtrial
from pgtrial.conduct.planning.block_estimates import (
    TrialLengths,
    fewest_for_a_verdict,
    kept_of,
    planned_lengths,
    preliminary_time,
)
from pgtrial.conduct.planning.declared import metric_warnings
from pgtrial.conduct.planning.deployments import are_units, fewest_of, planned_blocks, planned_looks, share_out
from pgtrial.conduct.planning.factors import draw_levels
from pgtrial.conduct.planning.interleaving import interleaved
from pgtrial.conduct.planning.layouts import blocks_for_all, draw_layouts, layouts_for
from pgtrial.conduct.planning.lengths import LEAST_BUDGET_S, expected_lengths
from pgtrial.conduct.planning.scope import differing_keys, hosts_of, scope_of
from pgtrial.conduct.planning.stopping import OVERRUN, as_option, longest_planned, waiting
from pgtrial.model import marks
from pgtrial.model.errors import BudgetError, StudyError
from pgtrial.model.records.plan import Extension, Lengths, Plan, PlannedTrial, Spending
from pgtrial.model.records.trial import Trial
from pgtrial.model.study.design import Design
from pgtrial.model.study.shared_storage import draw_storage
from pgtrial.model.study.spec import StudySpec
from pgtrial.model.units import format_duration, plural
from pgtrial.servers.configured_values import equal_arms
from pgtrial.statistics import p8, p9
from pgtrial.statistics.rules import planned
from pgtrial.store.workloads import digest
from pgtrial.verdict.pace import block_time
from pgtrial.verdict.units import looks_of

SEEDS = 2**31


def make_plan(spec: StudySpec, seed: int, created: str) -> Plan:
    """Returns the plan of a study that begins on this machine. Decides first whether trials alternate, and otherwise
    does the same as `plan_of`."""
    return plan_of(interleaved(Design(spec)), seed, created)


def plan_of(design: Design, seed: int, created: str, lengths: TrialLengths | None = None) -> Plan:
    """Returns the plan, which has everything that is fixed before the first trial. The same arguments always give the
    same plan.

    `created` is a UTC time in the format of ISO 8601. `lengths` are the lengths of the trials; with None, they are
    estimated. Raises StudyError if the budget is too small for any verdict.
    """
    arms, deployments, verdict = list(design.servers), design.deployments, design.verdict
    lengths = lengths or expected_lengths(design)
    max_blocks = planned_blocks(design, lengths.block_s) if are_units(design) else _max_blocks(design, lengths)
    trials = share_out(list(_order(arms, len(design.load_points), max_blocks, seed)), deployments, seed)
    trials = draw_levels(design, trials, seed)
    return Plan(
        name=design.spec.study.name or "study",
        created=created,
        pgtrial=pgtrial.__version__,
        seed=seed,
        baseline=design.baseline,
        arms=arms,
        load_points=design.load_points,
        max_blocks=max_blocks,
        looks=planned_looks(deployments, max_blocks) if are_units(design) else _looks(design, max_blocks),
        spending=Spending(
            end=max_blocks,
            kept=p9.KEPT if are_units(design) else kept_of(design),
            worse=p9.ONE_SIDED if verdict.one_sided else 0.5,
        ),
        **verdict.model_dump(include={"margin", "stop_early", "drop_decided", "allow_busy_client"}),
        studies=verdict.studies or 1,
        families=design.families,
        metrics=design.metrics,
        own_metrics=design.spec.own_metrics,
        prices={arm: price.cents_an_hour for arm, price in design.prices.items()},
        warmup_s=lengths.warmup_s,
        duration_s=lengths.duration_s,
        trial_estimate_s=lengths.block_s / lengths.trials,
        declared={arm: declared(design, arm) for arm in arms},
        factors=design.factors,
        scope=scope_of(design, max_blocks),
        statistics=design.statistics,
        scripts={name: digest(text) for name, text in design.spec.scripts.items()},
        deployments=deployments,
        hosts=hosts_of(design),
        interleaving=design.interleaving,
        lengths=lengths.chosen,
        trials=draw_layouts(design, draw_storage(design.shared_storage, trials, seed), seed),
    )


def block_estimate(spec: StudySpec) -> float:
    """Returns the expected wall time of a block in seconds. In a block every arm runs once at every load point."""
    return expected_lengths(interleaved(Design(spec))).block_s


def with_lengths(plan: Plan, design: Design, lengths: TrialLengths) -> Plan:
    """Returns the plan with other lengths of trials, and with as many blocks as then fit into the budget. It must not
    be called any more when a trial of the plan is stored."""
    drawn = plan_of(design, plan.seed, plan.created, lengths)
    of_lengths = ("max_blocks", "looks", "spending", "warmup_s", "duration_s", "trial_estimate_s", "lengths", "trials")
    return plan.model_copy(update={name: getattr(drawn, name) for name in of_lengths})


def study_estimate(plan: Plan) -> float:
    """Returns the expected wall time of all planned trials and of the preliminary block, in seconds. The time for
    loading data is not included."""
    return plan.trial_estimate_s * len(plan.trials) + preliminary_time(plan)


def fewest_blocks(design: Design, plan: Plan) -> int:
    """Returns the number of blocks before the first planned look (interim analysis) at which every arm can get a
    verdict. For a study with a single arm, it is the first look at which this arm can get an interval."""
    if len(design.servers) > 1 and are_units(design):
        return fewest_of(plan.deployments, plan.max_blocks, design.claims)
    return fewest_for_a_verdict(design)


def declared(design: Design, arm: str) -> list[str]:
    """Returns the keys of the study file in which this arm differs from the baseline, such as
    `settings.synchronous_commit`."""
    return differing_keys(design.servers[arm], design.servers[design.baseline])


def warnings(design: Design, plan: Plan) -> list[str]:
    """Returns warnings that the user should read before the first trial. Each is one sentence."""
    sentences = list(equal_arms(design))
    floor = fewest_blocks(design, plan)
    if plan.max_blocks < floor:
        given, needed = f"blocks = {plan.max_blocks}", f"{floor}"
        if are_units(design):
            given, needed = f"{plan.deployments} deployments", f"{p9.first_look(len(plan.arms) - 1)} of each"
        what = "no verdict is possible" if plan.others else "the capacity has no interval"
        compared = plural(len(plan.factors), "factor") if plan.factors else plural(len(plan.arms), "arm")
        sentences.append(f"with {given} {what}; {compared} take at least {needed}")
    all_layouts = blocks_for_all(design)
    if all_layouts is not None and plan.max_blocks > all_layouts:
        sentences.append(
            f"the layouts are used a second time after {plural(all_layouts, 'block')}, so the verdict is about these "
            f"layouts and not about the source; for {plan.max_blocks} blocks set layouts = "
            f"{layouts_for(design, plan.max_blocks)}"
        )
    sentences += metric_warnings(design, plan)
    if (caution := design.load.kind.caution(design.spec)) is not None:
        sentences.append(caution)
    time_s = plan.max_blocks * plan.block_estimate_s
    limit_s = longest_planned(design.verdict.budget) if _is_measured(plan.lengths) else design.verdict.budget
    if time_s > limit_s and not plan.extensions:
        sentences.append(
            f"{plan.max_blocks} blocks take about {format_duration(time_s)}, more than the budget of "
            f"{format_duration(design.verdict.budget)}, which ends the study"
        )
    return sentences


def _looks(design: Design, max_blocks: int) -> list[int]:
    """Returns the planned looks (interim analyses) for `Plan.looks`, each as the number of blocks after which it comes.
    The first look is included even if the study ends before it."""
    return list(planned(max_blocks, design.claims, kept_of(design)).planned)


def _max_blocks(design: Design, lengths: TrialLengths) -> int:
    load, verdict = design.load, design.verdict
    if verdict.blocks is not None:
        return verdict.blocks
    block_s, budget_s = lengths.block_s, verdict.budget - lengths.preliminary_s
    affordable = int(budget_s / block_s)
    floor = fewest_for_a_verdict(design)
    if affordable >= floor:
        return affordable
    longest_s = longest_planned(verdict.budget) - lengths.preliminary_s
    if floor * block_s > (longest_s if _is_measured(lengths.chosen) else OVERRUN * budget_s):
        minutes = math.ceil(floor * block_s / 60)
        chosen = verdict.budget >= LEAST_BUDGET_S and not load.ends_itself
        lengths_out = f"leave out {marks.short_key('load', 'warmup')} and {marks.short_key('load', 'duration')}"
        cures = f"{lengths_out if chosen else 'shorten the trials'}, or use fewer load points"
        if load.kind.stored.time_is_unknown:
            cures = f"take less data ({marks.key('load', 'scale')}), or use fewer {load.kind.fewer}"
        goal = "a verdict" if len(design.servers) > 1 else "an interval"
        if design.factors:
            goal = f"a verdict on {plural(len(design.factors), 'factor')}"
            cures = f"{lengths_out if chosen else 'shorten the trials'}, or screen fewer factors"
        raise BudgetError(
            f"{goal} needs at least {floor} blocks of about {format_duration(block_s)}, and the budget of "
            f"{format_duration(verdict.budget)} holds {affordable}; "
            f"{marks.set_key('verdict', 'budget', f'{minutes}min')} or more, {cures}",
            60.0 * minutes,
        )
    return floor


def _is_measured(lengths: Lengths | None) -> bool:
    return lengths is not None and lengths.preliminary is not None


def _order(arms: list[str], points: int, blocks: int, seed: int) -> Iterator[PlannedTrial]:
    """Yields the planned trials block by block. Within a block the load points are in random order, and at each load
    point the arms are in a new random order."""
    generator = np.random.Generator(np.random.Philox(seed))
    index = itertools.count()
    for block in range(blocks):
        for point in generator.permutation(points):
            load_seed = int(generator.integers(SEEDS))
            for arm in generator.permutation(len(arms)):
                yield PlannedTrial(
                    index=next(index), block=block, load_point=int(point), arm=arms[int(arm)], seed=load_seed
                )


_OF_THE_STUDY = {
    "baseline", "arms", "load_points", "metrics", "prices", "margin", "stop_early", "drop_decided", "allow_busy_client",
    "studies", "warmup_s", "duration_s", "declared", "scripts", "deployments",
    "factors",
}  # fmt: skip
"""The fields of the plan that follow directly from keys of the study."""


@dataclass(frozen=True)
class More:
    """The amount by which a study that has ended is extended: by a number of blocks, or by as many blocks as fit into a
    time in seconds."""

    blocks: int | None = None
    time_s: float | None = None


def extend(plan: Plan, design: Design, more: More, stored: Sequence[Trial], *, decided: bool, created: str) -> Plan:
    """Returns the extended plan of a study that has ended.

    `stored` has the stored trials of the study, and `decided` is true if every comparison is decided already. Raises
    StudyError if the study cannot be extended.
    """
    if are_units(design):
        raise StudyError(
            f"a study whose verdict counts {plan.deployments} deployments cannot continue with more blocks on the same "
            "deployments; run another study with more deployments"
        )
    if design.verdict.final:
        raise StudyError(
            f"this study has ended for good ({marks.key('verdict', 'final')}, which gate, bisect and selftest set): "
            "its looks have used the whole error of 5%, so it cannot be extended; run another study"
        )
    if not plan.looks:  # earlier versions of pgtrial wrote plans without a look if the study was too short for one
        plan = plan.model_copy(update={"looks": [p8.first_look(design.claims)]})
    done = {trial.index for trial in stored}
    after = next((planned.block for planned in plan.wanted if planned.index not in done), plan.max_blocks)
    end = after + _blocks(more, plan, after, stored)
    blocks = max(plan.max_blocks, end)
    trials = _continued(plan, design, blocks)
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
            "max_blocks": blocks,
            **(
                {"scope": scope_of(design, blocks, statistics=plan.statistics)}
                if blocks_for_all(design) is not None
                else {}
            ),
            "looks": looks_of(plan).until(end),
            "extensions": [*plan.extensions, step],
            "trials": trials,
        }
    )


def announcement(plan: Plan, stored: Sequence[Trial]) -> str:
    """Returns a sentence that announces the last extension of a plan: how many blocks it adds, how long they take, and
    after which blocks a look (an interim analysis) comes."""
    step = plan.extensions[-1]
    blocks = step.end - step.after
    looks = [look for look in plan.looks if step.after < look <= step.end]
    at_looks = (
        f"looks at the verdict after block {', '.join(map(str, looks))}"
        if looks
        else "no look at the verdict among them"
    )
    return (
        f"going on after {plural(step.after, 'block')} with {blocks} more, about "
        f"{format_duration(round(blocks * block_time(plan, stored)))}; {at_looks}{waiting(plan, stored, step.end)}"
    )


def _blocks(more: More, plan: Plan, after: int, stored: Sequence[Trial]) -> int:
    """Returns the number of blocks by which the study is extended: the number that the user gave, or the blocks up to
    the last look (interim analysis) that fits into the given time."""
    if more.time_s is None:
        return more.blocks or 1
    block_s = block_time(plan, stored)
    held = int(more.time_s / block_s)
    looks = looks_of(plan)
    ahead = looks.next_after(after)
    if after + held >= ahead:
        return max(looks.until(after + held)) - after
    needed_s = (ahead - after) * block_s
    raise StudyError(
        f"{format_duration(more.time_s)} holds {plural(held, 'block')} of about {format_duration(round(block_s))}, and "
        f"the next look at the verdict comes after {ahead - after}: give --more {as_option(needed_s)}"
    )


def _continued(plan: Plan, design: Design, blocks: int) -> list[PlannedTrial]:
    """Returns the planned trials of `blocks` blocks. They are drawn again from the seed of the plan, so that they begin
    with the trials of the plan. Raises StudyError if they do not, or if the study was changed."""
    longer = replace(design, spec=design.spec.with_verdict(blocks=blocks))
    drawn = plan_of(longer, plan.seed, plan.created, planned_lengths(plan) if plan.lengths is not None else None)
    if drawn.model_dump(include=_OF_THE_STUDY) != plan.model_dump(include=_OF_THE_STUDY):
        raise StudyError(
            "study.toml was changed after the study began, and is not the study of plan.json; restore it from a copy, "
            "or run the changed study as a new study"
        )
    if drawn.trials[: len(plan.trials)] != plan.trials:
        raise StudyError(
            f"the order of the blocks cannot be continued: pgtrial {plan.pgtrial} drew another order from seed "
            f"{plan.seed} than this version does; continue with that version, or run the study again"
        )
    return drawn.trials
