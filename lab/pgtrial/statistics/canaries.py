"""Whether a block was disturbed: a rule that reads canaries only, no trial and no arm."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Literal

from pgtrial.model.records.disturbances import Canary, CanaryReading, Deviation, DisturbedBlock, Judgement
from pgtrial.model.records.plan import Plan
from pgtrial.model.units import percent
from pgtrial.statistics.levels import robust_sd

PROBES = {
    "cpu_per_s": "MiB hashed a second",
    "flushes_per_s": "flushes a second",
    "select1_per_s": "transactions of SELECT 1 a second",
}
"""Fields of CanaryReading that are judged, with their units; the others are shown only."""

REFERENCE = 6
"""Canaries taken before the first block; with fewer readings of a probe nothing is called off."""

DEVIATIONS = 5.0
"""Median absolute deviations, scaled to standard deviations, that are tolerated."""

FLOOR = 0.10
"""Deviation that is always tolerated, as a factor less one.

Below it a disturbance of a whole block moves both arms alike, and a ratio hardly; and a canary of a fraction of a
second is itself no more exact than some percent. Without it the few alike readings of a quiet machine, whose median
absolute deviation is nearly zero, would make half a percent an accident.
"""

CAP = 0.10
"""Share of the planned blocks that may be voided, but at least one."""

_UNEVEN = 0.05


def deviations(readings: Sequence[CanaryReading], about: int) -> list[Deviation]:
    """The probes of `readings[about]` that are far from the median of all of them, on a logarithmic scale."""
    found = []
    for probe in PROBES:
        value = getattr(readings[about], probe)
        known = [math.log(each) for reading in readings if (each := getattr(reading, probe))]
        if not value or len(known) < REFERENCE:
            continue
        usual = median(known)
        tolerated = max(DEVIATIONS * robust_sd(known, usual), math.log1p(FLOOR))
        if abs(math.log(value) - usual) > tolerated:
            found.append(
                Deviation(
                    canary=about, probe=probe, value=value, usual=math.exp(usual), tolerated=math.expm1(tolerated)
                )
            )
    return found


def is_off(canaries: Sequence[Canary]) -> bool:
    """Whether the newest canary is off, by all that were taken until then."""
    return bool(canaries) and bool(deviations([each.reading for each in canaries], len(canaries) - 1))


def judge(canaries: Sequence[Canary], after: CanaryReading, block: int, planned_blocks: int) -> Judgement:
    """The judgement of a block that has just ended: `canaries` are all before it, the newest just before the block."""
    readings = [*(each.reading for each in canaries), after]
    numbers = [*(each.number for each in canaries), canaries[-1].number + 1]
    off = [
        each.model_copy(update={"canary": numbers[place]})
        for place in (len(readings) - 2, len(readings) - 1)
        for each in deviations(readings, place)
    ]
    voids = [each for each in judgements(canaries) if each.outcome == "void"]
    outcome: Literal["kept", "void", "noisy"] = "kept"
    if off:
        outcome = "void" if len(voids) < most_voids(planned_blocks) else "noisy"
    return Judgement(
        block=block,
        attempt=1 + sum(each.block == block for each in voids),
        before=numbers[-2],
        outcome=outcome,
        off=off,
        reason=_reason(off, numbers[-2]),
    )


def most_voids(planned_blocks: int) -> int:
    """How many blocks of a study may be voided."""
    return max(1, int(CAP * planned_blocks))


def judgements(canaries: Sequence[Canary]) -> list[Judgement]:
    """All judgements made so far, in order."""
    return [canary.judged for canary in canaries if canary.judged is not None]


def disturbed(canaries: Sequence[Canary], outcome: Literal["void", "noisy"]) -> list[DisturbedBlock]:
    """The blocks that were voided, or kept although the canary was off."""
    return [
        DisturbedBlock(block=each.block, attempt=each.attempt, reason=each.reason, failed=each.failed)
        for each in judgements(canaries)
        if each.outcome == outcome
    ]


def _reason(off: Sequence[Deviation], before: int) -> str:
    """The deviations in words; a sentence without its full stop."""
    parts = []
    for each in off:
        change = each.value / each.usual - 1
        parts.append(
            f"the canary {'before' if each.canary == before else 'after'} it had {each.value:,.0f} {PROBES[each.probe]}"
            f", {percent(abs(change), 0)} {'more' if change > 0 else 'fewer'} than the usual {each.usual:,.0f} "
            f"(tolerated: a factor of {1 + each.tolerated:.2f})"
        )
    return " and ".join(parts)


def last_before_off(plan: Plan, canaries: Sequence[Canary]) -> Counter[str]:
    """How often each arm ran last in a block after which the canary was off."""
    off = [each.block for each in judgements(canaries) if any(one.canary != each.before for one in each.off)]
    last = {trial.block: trial.arm for trial in sorted(plan.wanted, key=lambda trial: trial.index)}
    return Counter(last[block] for block in off)


def uneven(counts: Mapping[str, int], arms: int) -> list[tuple[str, int, float]]:
    """Arms with more than their share, by an exact binomial test at 5%, one arm at a time."""
    total = sum(counts.values())
    found = [(arm, count, _binomial_p(count, total, arms)) for arm, count in counts.items()]
    return [(arm, count, p) for arm, count, p in found if count > total / arms and p < _UNEVEN]


def _binomial_p(hits: int, of: int, arms: int) -> float:
    """Two-sided, in whole numbers: the share of all draws of an arm whose count is no likelier than this one."""
    ways = [math.comb(of, count) * (arms - 1) ** (of - count) for count in range(of + 1)]
    return float(sum(each for each in ways if each <= ways[hits]) / arms**of)
