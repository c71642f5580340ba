"""Reads the claims of a screening study: one for each factor, about its second level against its first one. A factor is
a setting or another key of a server; `statistics/screening.py` has the reasoning.

In each block one trial has the second level of a factor and the other trial the first one, whichever of the two set-ups
was drawn. So each block has a value for each factor, and all claims are read at the same looks and share their error.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pgtrial.model.records.claims import BlockRatio, Claim
from pgtrial.model.records.plan import Plan
from pgtrial.model.records.screens import FactorPair, Screen
from pgtrial.model.records.trial import Trial
from pgtrial.statistics import p8, p9, screening
from pgtrial.statistics.screening import Signs, fewest_units
from pgtrial.verdict.grid import Grid
from pgtrial.verdict.series import Question, Series

_FEWEST_FOR_PAIRS = 12
"""The smallest number of blocks from which pairs of factors are examined."""

_MOST_PAIRS = 3
"""The largest number of pairs of factors at which a study hints."""


def labels(plan: Plan) -> list[str]:
    """Returns the names of a screening study's claims: the second level of each factor, such as `jit=off`."""
    return [factor.labels[1] for factor in plan.factors]


def first_label(plan: Plan, arm: str) -> str:
    """Returns the first level of the factor whose second level is `arm`: `jit=on` for `jit=off`."""
    return plan.factors[labels(plan).index(arm)].labels[0]


def signs_of(plan: Plan, blocks: Collection[int]) -> Signs:
    """Returns the drawn levels of these blocks, with a row for each block and a column for each factor: 1 if the arm
    has the second level and the baseline the first one, otherwise -1."""
    drawn = {trial.block: trial.levels or "" for trial in plan.trials if trial.arm != plan.baseline}
    return np.array([[1.0 if level == "1" else -1.0 for level in drawn[block]] for block in blocks]).reshape(
        len(blocks), len(plan.factors)
    )


def trials_with(grid: Grid, factor: int, level: str) -> list[Trial]:
    """Returns the trials of complete blocks in which the factor with this index has a level: `0` for its first level
    and `1` for its second one."""
    having = {planned.index for planned in grid.plan.trials if (planned.levels or "")[factor : factor + 1] == level}
    return [trial for trials in grid.by_block.values() for trial in trials if trial.index in having]


def block_logs(grid: Grid) -> dict[int, float]:
    """Returns the log-ratio of the arm to the baseline for each complete block in which it is known."""
    ratios = grid.ratios(grid.plan.others[0], grid.points)
    return {ratio.block: ratio.log_ratio for ratio in ratios if ratio.counted and ratio.log_ratio is not None}


def noise_of_blocks(grid: Grid) -> list[float]:
    """Returns the log-ratios of the complete blocks without the effects of the factors; empty if there are too few
    blocks to tell the factors apart."""
    logs = block_logs(grid)
    return screening.noise(signs_of(grid.plan, logs), screening.tamed(list(logs.values())))


def factor_series(grid: Grid, arm: str, family: int) -> tuple[list[BlockRatio], Series]:
    """Returns the values of a factor, one for each block, and the state of the claim on it after the looks (interim
    analyses) so far. `arm` is the factor's second level, and `family` the number of claims that share the error.

    At each look the other factors are fitted anew, by the blocks up to this look. The value that is shown for a block
    is the factor's effect plus the residual of the block, in a fit of all factors. A look that reads a failed trial
    does not find that the levels are equivalent, and failed trials may hide the effect of the factor (`_is_hidden`).
    """
    at, logs = labels(grid.plan).index(arm), block_logs(grid)
    spoiled = _spoiled(grid, at)
    shown = {} if _is_hidden(grid.plan, spoiled, grid.counted) else _shown_values(grid, at, logs)
    cut = {block: of_block.cut for block, of_block in spoiled.items() if of_block.cut}
    failed = frozenset(block for block, of_block in spoiled.items() if of_block.failed)
    question = Question(shown, family, grid.plan.margin, grid.primary.scale, cut, arm, failed)
    series = read_factor(grid, at, question, logs, lambda units: _is_hidden(grid.plan, spoiled, units))
    return _ratios(grid, shown), series


def read_factor(
    grid: Grid,
    factor: int,
    question: Question,
    logs: Mapping[int, float],
    hidden: Callable[[Sequence[int]], bool] = lambda _: False,
) -> Series:
    """Returns the state of a claim on the factor with this index after the looks (interim analyses) so far. `logs` has
    the value of each block: by how much its arm is better than its baseline. `hidden` tells whether a look at these
    blocks gets no reading.
    """
    plan = grid.plan
    worse = plan.spending.worse if plan.spending is not None else 0.5
    reached = grid.units.reached(grid.counted)
    steps: tuple[p9.Step, ...] = ()
    readings: list[p8.Reading] = []
    spent = 0.0
    for look, units in reached:
        spent += look.alpha / question.family
        if known := [unit for unit in units if unit in logs]:
            values = screening.tamed([logs[unit] for unit in known])
            steps += (screening.step(known, signs_of(plan, known), values, factor, spent),)
            if p9.has_estimate(steps[-1]) and not hidden(units):
                reading = p9.read(steps, look, question.limits, question.family, worse)
                readings.append(question.allowed(reading, units))
    decision = p8.conclude(readings)
    rests_on = dict(reached)[decision.shown.look] if decision.shown is not None else question.values
    return Series(question, decision, [unit for unit in rests_on if unit in question.values])


@dataclass(frozen=True)
class _Spoiled:
    """The levels of a factor, such as `jit=off`, whose values in a block do not tell the speed."""

    failed: frozenset[str]
    """The levels whose trial failed."""
    cut: frozenset[str]
    """The levels whose value is only a bound, so that the true value may be worse."""


def _spoiled(grid: Grid, factor: int) -> dict[int, _Spoiled]:
    """Returns the levels of the factor with this index whose trials failed or whose values are only bounds, for each
    complete block that has such a level."""
    baseline, (first, second) = grid.plan.baseline, grid.plan.factors[factor].labels

    def levels(arms: Collection[str], sign: float) -> frozenset[str]:
        return frozenset(second if (arm != baseline) == (sign > 0) else first for arm in arms)

    ratios = grid.ratios(grid.plan.others[0], grid.points)
    of_blocks = {ratio.block: ratio for ratio in ratios if ratio.counted and (ratio.failed or ratio.cut)}
    signs = signs_of(grid.plan, of_blocks)[:, factor]
    return {
        block: _Spoiled(levels(ratio.failed, sign), levels(ratio.cut, sign))
        for (block, ratio), sign in zip(of_blocks.items(), signs, strict=True)
    }


def _is_hidden(plan: Plan, spoiled: Mapping[int, _Spoiled], blocks: Sequence[int]) -> bool:
    """True if failed trials hide the effect of a factor: trials with each of its levels failed in these blocks, so that
    the failures have another cause, and too few blocks without a failed trial are left to tell the factors apart."""
    failed = [spoiled[block].failed for block in blocks if block in spoiled and spoiled[block].failed]
    if len(frozenset[str]().union(*failed)) <= 1:
        return False
    return len(blocks) - len(failed) < max(fewest_units(len(plan.factors)), 1)


def _shown_values(grid: Grid, factor: int, logs: Mapping[int, float]) -> dict[int, float]:
    """Returns the factor's effect plus the residual of each block. These values have the factor's effect as their mean.
    The result is empty if there are too few blocks to tell the factors apart."""
    signs = signs_of(grid.plan, logs)
    fitted = screening.effects(signs, screening.tamed(list(logs.values())))
    if fitted is None:
        return {}
    found, residuals = fitted
    values = found[factor] + signs[:, factor] * residuals
    return {block: float(value) for block, value in zip(logs, values, strict=True)}


def _ratios(grid: Grid, shown: Mapping[int, float]) -> list[BlockRatio]:
    """Returns the values of a factor in the form in which claims store them."""
    of_blocks = grid.ratios(grid.plan.others[0], grid.points)
    return [ratio.model_copy(update={"log_ratio": shown.get(ratio.block), "cut": []}) for ratio in of_blocks]


def best_first(claims: Sequence[Claim]) -> list[Claim]:
    """Returns the claims on factors in the order in which reports show them: the decided ones first, and each group
    with the largest effect first."""

    def size(claim: Claim) -> float:
        value = claim.difference.value if claim.difference is not None else claim.running
        return abs(math.log1p(max(value, -0.9999))) if value is not None else 0.0

    return sorted(claims, key=lambda claim: (claim.verdict not in ("better", "worse"), -size(claim)))


def screen_of(grid: Grid, claims: Sequence[Claim]) -> Screen:
    """Returns what only a screening study has: the winning set-up, and the pairs of factors that seem to interact."""
    verdicts = {claim.arm: claim.verdict for claim in claims}
    winner = {
        factor.name: factor.second if verdicts[factor.labels[1]] == "better" else factor.first
        for factor in grid.plan.factors
        if verdicts[factor.labels[1]] in ("better", "worse")
    }
    return Screen(winner=winner, pairs=_pairs(grid))


def _pairs(grid: Grid) -> list[FactorPair]:
    """Returns the pairs of factors that seem to interact, the strongest one first."""
    plan, levels = grid.plan, _block_levels(grid)
    if len(levels) < _FEWEST_FOR_PAIRS:
        return []
    found = screening.interactions(signs_of(plan, levels), list(levels.values()))
    strongest = sorted(found.items(), key=lambda pair: -abs(pair[1]))[:_MOST_PAIRS]
    return [
        FactorPair(one=plan.factors[one], other=plan.factors[other], difference=grid.primary.scale.shown(log))
        for (one, other), log in strongest
    ]


def _block_levels(grid: Grid) -> dict[int, float]:
    """Returns the mean of the logarithms of the speeds of each complete block's trials. Blocks with a failed trial are
    left out."""
    levels = {}
    for block in grid.counted:
        logs = [log for arm in grid.plan.arms if (log := _log(grid, grid.trial(block, 0, arm))) is not None]
        if len(logs) == len(grid.plan.arms):
            levels[block] = sum(logs) / len(logs)
    return levels


def _log(grid: Grid, trial: Trial | None) -> float | None:
    """Returns the logarithm of a trial's metric, as a gain: it is larger if the trial is better. Returns None if the
    trial failed or has no value."""
    if trial is None or not grid.goodput(trial):
        return None
    value = grid.primary.value(trial)
    if value is None or not 0 < value < math.inf:
        return None
    return -math.log(value) if grid.primary.scale.falls else math.log(value)
