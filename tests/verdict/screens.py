"""Synthetic screening studies: their plan, and trials whose speed follows from the levels of the factors."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pgtrial.conduct.planning.plan import make_plan
from pgtrial.model.records.plan import Plan, PlannedTrial
from pgtrial.model.records.trial import Trial
from pgtrial.model.study.spec import StudySpec
from pgtrial.store.study_file import build_study

from .studies import make_trial

FACTORS = {
    "shared_buffers": ["128MB", "1GB"],
    "jit": ["on", "off"],
    "work_mem": ["4MB", "64MB"],
    "wal_compression": ["off", "pglz"],
}


def screening_study(factors: Mapping[str, Sequence[Any]] = FACTORS, blocks: int = 30, **sections: Any) -> StudySpec:
    """Returns a study that screens these factors. `sections` has further sections of its study file."""
    load = {
        "workload": "select-only",
        "duration": "5s",
        "warmup": "1s",
        "interleave": "off",
        **sections.pop("load", {}),
    }
    verdict = {"blocks": blocks, **sections.pop("verdict", {})}
    return build_study({"factors": factors, "load": load, "verdict": verdict, **sections}, "test")


def plan_of(spec: StudySpec, seed: int = 7) -> Plan:
    """Returns the plan of a study with the levels that follow from a seed."""
    return make_plan(spec, seed, "2026-11-20T14:12:03+00:00")


def screened(
    plan: Plan,
    effects: Mapping[str, float],
    *,
    pairs: Mapping[tuple[str, str], float] | None = None,
    sd: float = 0.02,
    seed: int = 1,
    failing: str | None = None,
    failing_share: float = 1.0,
    lost: Mapping[str, float] | None = None,
) -> list[Trial]:
    """Returns the trials of a screening study. `effects` has the logarithm of the speed that the second level of a
    factor adds, and `pairs` what the second levels of two factors add together. With `failing`, the share
    `failing_share` of the trials with the second level of this factor fail. `lost` has the share of the transactions
    that fail with the second level of a factor; the speed, which is that of the committed ones, is not changed by it.
    """
    rng = np.random.default_rng(seed)
    of_failures = np.random.default_rng(seed)
    names = [factor.name for factor in plan.factors]

    def trial(planned: PlannedTrial) -> Trial:
        second = {name for name, level in zip(names, planned.levels or "", strict=True) if level == "1"}
        log = sum(effects.get(name, 0.0) for name in second) + sd * float(rng.standard_normal())
        log += sum(worth for pair, worth in (pairs or {}).items() if second.issuperset(pair))
        fails = of_failures.random() < failing_share and failing in second
        tps, share = 2000.0 * math.exp(log), max((lost or {}).get(name, 0.0) for name in ["", *second])
        failures = {"57014": round(tps * plan.duration_s * share / (1 - share))} if share else {}
        made = make_trial(plan, planned, None if fails else tps, failures)
        return made.model_copy(update={"levels": planned.levels})

    return [trial(planned) for planned in plan.trials]
