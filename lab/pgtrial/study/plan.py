"""The plan: load points, looks, the number of blocks and the order, drawn once from a recorded seed. Pure functions.

The order is what makes the verdict exact: in every block, at every load point, each arm runs once, and which one comes
first is a fair draw of NumPy's Philox generator. The plan is stored before the first trial runs.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from pathlib import PurePosixPath

import numpy as np

import pgtrial
from pgtrial.analyse import p8
from pgtrial.errors import StudyError
from pgtrial.store.records import LoadPoint, Plan, PlannedTrial
from pgtrial.study.declared import declared as differing_keys
from pgtrial.study.scripts import digest
from pgtrial.study.spec import SetUp, StudySpec
from pgtrial.study.units import format_duration

_RESTORE_S_PER_SCALE = 0.03
"""Copying 15 MB at 500 MB/s, or vacuuming it."""
_START_AND_STOP_S = 2.0
_COLLECT_S = 0.5
_SEEDS = 2**31


def make_plan(spec: StudySpec, seed: int, created: str) -> Plan:
    """Everything that is fixed before the first trial; the same arguments give the same plan.

    `created` is a UTC time, ISO 8601. Raises StudyError when the budget is too small for any verdict.
    """
    points = load_points(spec)
    arms = list(spec.arms)
    block_s = block_estimate(spec)
    max_blocks = _max_blocks(spec, block_s)
    return Plan(
        name=spec.study.name or "study",
        created=created,
        pgtrial=pgtrial.__version__,
        seed=seed,
        baseline=spec.baseline,
        arms=arms,
        load_points=points,
        max_blocks=max_blocks,
        looks=p8.looks(max_blocks),
        margin=spec.verdict.margin,
        stop_early=spec.verdict.stop_early,
        allow_busy_client=spec.verdict.allow_busy_client,
        warmup_s=spec.load.warmup,
        duration_s=spec.load.duration,
        trial_estimate_s=block_s / (len(points) * len(arms)),
        declared={arm: declared(spec, arm) for arm in arms},
        scope=_scope(spec),
        scripts={name: digest(text) for name, text in spec.scripts.items()},
        trials=list(_order(arms, len(points), max_blocks, seed)),
    )


def load_points(spec: StudySpec) -> list[LoadPoint]:
    """The crossing of workloads, scales, clients and rates, in the order of the study file."""
    load = spec.load
    rates: list[float | None] = [*load.rate] or [None]
    cells = itertools.product(load.workload, load.scale, load.clients, rates)
    return [
        LoadPoint(workload=PurePosixPath(w).name, scale=s, clients=c, protocol=load.protocol, rate=r)
        for w, s, c, r in cells
    ]


def block_estimate(spec: StudySpec) -> float:
    """Expected wall time of one block, seconds: every arm once at every load point, all phases of a trial."""
    fixed = spec.load.warmup + spec.load.duration + _START_AND_STOP_S + _COLLECT_S
    return len(spec.arms) * sum(fixed + _RESTORE_S_PER_SCALE * point.scale for point in load_points(spec))


def fewest_blocks(spec: StudySpec) -> int:
    """The first planned look at which a verdict on every arm is possible at all."""
    return p8.fewest_blocks(claims=len(spec.arms) - 1)


def declared(spec: StudySpec, arm: str) -> list[str]:
    """The keys in which the study says that this arm differs from the baseline, e.g. `settings.synchronous_commit`."""
    return differing_keys(spec.resolved(arm), spec.resolved(spec.baseline))


def identical_arms(spec: StudySpec) -> list[tuple[str, str]]:
    """Pairs of arms whose set-ups are the same."""
    return [(a, b) for a, b in itertools.combinations(spec.arms, 2) if spec.resolved(a) == spec.resolved(b)]


def warnings(spec: StudySpec, plan: Plan) -> list[str]:
    """What the user should know before the first trial, one sentence each."""
    found = [
        f"the arms {first} and {second} are identical: this is an A/A study, and any difference it shows is noise"
        for first, second in identical_arms(spec)
    ]
    floor = fewest_blocks(spec)
    if plan.max_blocks < floor:
        found.append(
            f"with blocks = {plan.max_blocks} no verdict is possible; {len(plan.arms)} arms take at least {floor}"
        )
    needed = plan.max_blocks * block_estimate(spec)
    if needed > spec.verdict.budget:
        found.append(
            f"{plan.max_blocks} blocks take about {format_duration(needed)}, more than the budget of "
            f"{format_duration(spec.verdict.budget)}, which ends the study"
        )
    return found


def _max_blocks(spec: StudySpec, block_s: float) -> int:
    if spec.verdict.blocks is not None:
        return spec.verdict.blocks
    affordable = int(spec.verdict.budget / block_s)
    floor = fewest_blocks(spec)
    if affordable < floor:
        enough = f"{math.ceil(floor * block_s / 60)}min"
        raise StudyError(
            f"a verdict needs at least {floor} blocks of about {format_duration(block_s)}, and the budget of "
            f'{format_duration(spec.verdict.budget)} holds {affordable}; set [verdict] budget = "{enough}" or more, '
            "shorten the trials, or use fewer load points"
        )
    within = itertools.takewhile(lambda look: look.blocks <= affordable, p8.open_ended_looks())
    return max(look.blocks for look in within)


def _order(arms: list[str], points: int, blocks: int, seed: int) -> Iterator[PlannedTrial]:
    """Block after block: the load points in random order, at each every arm once in fresh random order."""
    generator = np.random.Generator(np.random.Philox(seed))
    index = itertools.count()
    for block in range(blocks):
        for point in generator.permutation(points):
            load_seed = int(generator.integers(_SEEDS))
            for arm in generator.permutation(len(arms)):
                yield PlannedTrial(
                    index=next(index), block=block, load_point=int(point), arm=arms[int(arm)], seed=load_seed
                )


def _scope(spec: StudySpec) -> str:
    setups: list[SetUp] = [spec.resolved(arm) for arm in spec.arms]
    given = sum(setup.dsn is not None for setup in setups)
    if given == 0:
        return "this host, a fresh copy of the data for every trial"
    if given == len(setups):
        return "these given servers as they are deployed"
    return "this host and these given servers as they are deployed"
