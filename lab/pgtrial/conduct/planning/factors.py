"""Draws the levels of a screening study's factors: for each block a set-up, and its complement with the other level of
each factor.

Each level is the toss of a coin of its own, and no coin depends on another one or on the order of the trials. Given the
levels of all other factors, the level of a factor is therefore as likely to be its first as its second one, and this is
the only thing that the statistics of a factor rely on.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pgtrial.model.records.plan import PlannedTrial
from pgtrial.model.study.design import Design
from pgtrial.model.study.factors import COMPLEMENT, complement_of

_STREAM = 4
"""The spawn key of the random numbers by which levels are drawn. The keys 0 to 3 belong to the order of trials, to
storage, to deployments and to layouts."""


def draw_levels(design: Design, trials: Sequence[PlannedTrial], seed: int) -> list[PlannedTrial]:
    """Draws the levels of the factors, and returns the planned trials with their levels; unchanged for a study that has
    no factors. For the same seed, the levels of more blocks begin with those of fewer blocks."""
    number = len(design.factors)
    if not number:
        return list(trials)
    generator = np.random.Generator(np.random.Philox(np.random.SeedSequence(seed, spawn_key=(_STREAM,))))
    blocks = 1 + max(trial.block for trial in trials)
    drawn = ["".join(map(str, generator.integers(2, size=number))) for _ in range(blocks)]
    return [trial.model_copy(update={"levels": _of_arm(trial.arm, drawn[trial.block])}) for trial in trials]


def _of_arm(arm: str, levels: str) -> str:
    return complement_of(levels) if arm == COMPLEMENT else levels
