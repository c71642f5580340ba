"""Synthetic studies as the store holds them: a plan and trials whose tps is given, without a server."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import product

import numpy as np

from pgtrial.conduct.planning.deployments import planned_looks, share_out
from pgtrial.model.records.facts import Audit, Facts, Finding
from pgtrial.model.records.load_point import LoadPoint
from pgtrial.model.records.plan import Plan, PlannedTrial, Spending
from pgtrial.model.records.results import StudyResult
from pgtrial.model.records.trial import ClientUse, Latency, Phase, Trial
from pgtrial.report import verdict
from pgtrial.statistics import p8, p9
from pgtrial.verdict import decide
from pgtrial.verdict.rules import by_gravity, found_in_trials
from pgtrial.verdict.rules.case import Case

START = datetime(2026, 11, 20, 14, 12, 3, tzinfo=UTC)

POINT = LoadPoint(workload="tpcb-like", scale=10, clients=8, protocol="prepared")


def case_of(
    plan: Plan, trials: Sequence[Trial], audit: Audit | None = None, seconds=None, *, facts=None, **known
) -> Case:
    return Case(plan, facts or {}, trials=trials, audit=audit, seconds=seconds, **known)


def verdict_of(*study, **known) -> StudyResult:
    """Returns the result of a study with the texts of its verdicts; the arguments are those of `case_of`."""
    return verdict.verdict_of(case_of(*study, **known))


def decision_of(*study, **known) -> StudyResult:
    return decide.decide(case_of(*study, **known))


def findings_over(plan: Plan, facts: Mapping[str, Facts], trials: Sequence[Trial]) -> list[Finding]:
    """Returns the findings of the rules over trials."""
    ordered = sorted(trials, key=lambda trial: trial.index)
    return by_gravity(finding for finding, _ in found_in_trials(Case(plan, facts, trials=ordered)))


def make_plan(
    arms: Sequence[str] = ("on", "off"),
    *,
    blocks: int = 8,
    points: Sequence[LoadPoint] = (POINT,),
    margin: float = 0.01,
    declared: bool = True,
    seed: int = 42,
    duration_s: float = 6.0,
) -> Plan:
    rng = np.random.Generator(np.random.Philox(seed))
    trials: list[PlannedTrial] = []
    for block in range(blocks):
        for point in rng.permutation(len(points)):
            load_seed = int(rng.integers(2**31))
            for arm in rng.permutation(len(arms)):
                trials.append(
                    PlannedTrial(
                        index=len(trials), block=block, load_point=int(point), arm=arms[int(arm)], seed=load_seed
                    )
                )
    return Plan(
        name="synthetic",
        created=START.isoformat(),
        pgtrial="0.1.0",
        seed=seed,
        baseline=arms[0],
        arms=list(arms),
        load_points=list(points),
        max_blocks=blocks,
        looks=p8.looks(blocks),
        margin=margin,
        stop_early=True,
        warmup_s=2.0,
        duration_s=duration_s,
        trial_estimate_s=11.0,
        declared={arm: ["settings.synchronous_commit"] if declared and arm != arms[0] else [] for arm in arms},
        scope="this host, a fresh copy of the data for every trial",
        trials=trials,
    )


Tps = Callable[[PlannedTrial], float | None]
"""The goodput of a planned trial; None: it failed."""


def run(
    plan: Plan, tps: Tps, *, upto: int | None = None, failures: dict[str, dict[str, int]] | None = None
) -> list[Trial]:
    """Returns the planned trials as if they had run, at the tps that `tps` returns. With `upto` only the first `upto`
    trials have run; `failures` has the failed transactions of each trial by arm.
    """
    return [
        make_trial(plan, planned, tps(planned), (failures or {}).get(planned.arm)) for planned in plan.trials[:upto]
    ]


def make_trial(plan: Plan, planned: PlannedTrial, tps: float | None, failures: dict[str, int] | None = None) -> Trial:
    started = START + timedelta(seconds=12 * planned.index)
    point = plan.load_points[planned.load_point]
    return Trial(
        index=planned.index,
        block=planned.block,
        arm=planned.arm,
        load_point=point,
        seed=planned.seed,
        status="failed" if tps is None else "completed",
        reason="the server closed the connection" if tps is None else None,
        started=started.isoformat(),
        ended=(started + timedelta(seconds=11)).isoformat(),
        phases_s={"restore": 0.6, "start": 0.4, "warm": 0.5, "load": 8.1, "collect": 0.3, "stop": 1.1},
        warmup=None if tps is None else _phase(0.9 * tps, 2.0, point.clients, {}),
        measured=None if tps is None else _phase(tps, plan.duration_s, point.clients, failures or {}),
        client=None if tps is None else ClientUse(cpu_user_s=0.7, cpu_system_s=0.5, busiest_thread_share=0.2),
    )


def _phase(tps: float, duration_s: float, clients: int, failures: dict[str, int]) -> Phase:
    mean = 1e6 * clients / tps if tps else 0.0
    latency = Latency(
        mean=mean, stddev=0.4 * mean, min=0.3 * mean, p50=0.9 * mean, p90=1.5 * mean, p95=1.8 * mean, p99=3.1 * mean,
        p999=8.0 * mean, max=20 * mean,
    )  # fmt: skip
    return Phase(
        duration_s=duration_s,
        transactions=round(tps * duration_s),
        failures=failures,
        tps=tps,
        latency_us=latency if tps else None,
    )


def exchanged(trials: Sequence[Trial], blocks: Collection[int]) -> list[Trial]:
    """Returns the trials of two arms as if the draw of the order had come out the other way in these blocks: the two
    arms' names are exchanged there.
    """
    arms = sorted({trial.arm for trial in trials})
    other = dict(zip(arms, reversed(arms), strict=True))
    return [trial.model_copy(update={"arm": other[trial.arm]}) if trial.block in blocks else trial for trial in trials]


def ways(blocks: int) -> Iterator[set[int]]:
    """Yields sets of blocks whose arms to exchange, one for each outcome of drawing the order. The last block is in
    none, since exchanging all blocks only renames the arms.
    """
    for falls in product((False, True), repeat=blocks - 1):
        yield {block for block, other in enumerate(falls) if other}


def noisy(ratio: dict[str, float], *, base: float = 2000.0, sd: float = 0.02, seed: int = 1) -> Tps:
    """Returns a function that draws a trial's tps: `base` times the arm's ratio, with independent noise."""
    rng = np.random.default_rng(seed)
    return lambda planned: base * ratio.get(planned.arm, 1.0) * float(np.exp(sd * rng.standard_normal()))


def deployed(number: int, each: int = 4, *, arms=("on", "off"), points=(POINT,)) -> Plan:
    """Returns a plan with `number` deployments of each arm and `each` blocks on every pair of deployments."""
    plan = make_plan(arms, blocks=number * each, points=points)
    trials = share_out(plan.trials, number, seed=3)
    looks = planned_looks(number, number * each) if number >= 4 else plan.looks
    spending = Spending(end=number * each, kept=p9.KEPT) if number >= 4 else None
    return plan.model_copy(update={"deployments": number, "looks": looks, "spending": spending, "trials": trials})


def peculiar(plan: Plan, effect: float = 0.0, *, own: float = 0.03, noise: float = 0.02, seed: int = 0) -> Tps:
    """Returns a function that draws a trial's tps. Each deployment of an arm has a lasting speed of its own, and each
    trial has noise; `own` and `noise` are their standard deviations in logarithms.
    """
    rng = np.random.default_rng(seed)
    kept = {(arm, k): own * rng.standard_normal() for arm in plan.arms for k in range(plan.deployments)}

    def tps(planned: PlannedTrial) -> float:
        true = effect if planned.arm != plan.baseline else 0.0
        of_server = kept[planned.arm, planned.place or 0]
        return 2000.0 * math.exp(true + of_server + noise * float(rng.standard_normal()))

    return tps


def is_decided(result: StudyResult) -> bool:
    """True if the measurements decide every primary claim, whether or not its verdict is withheld for other reasons."""
    return bool(result.primary) and all(
        any(reading.verdict != "undecided" for reading in part.looks) for claim in result.primary for part in claim.read
    )
