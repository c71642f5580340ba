"""Compares the arms of a table of numbers. If a coin ordered the runs, the comparison uses the statistical rule of
studies; otherwise it gives no verdict.

The rule P9 assumes nothing about the noise except that a coin decided the order of the arms in each block. For numbers
of another benchmark program, pgtrial knows that only from the user. Without it, a drift of the machine looks like a
difference between the arms, so the verdict is withheld. The interval of a withheld comparison is valid only if nothing
but the arms changed between the runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from pgtrial.judge.blocks import (
    MOST_BLOCKS,
    Block,
    blocks_of,
    chance_of,
    consecutive_blocks,
    pattern_of,
    scattered_block,
)
from pgtrial.judge.judgement import Better, Pattern
from pgtrial.judge.numbers import Numbers
from pgtrial.judge.reasons import not_consecutive, not_drawn, not_like_a_coin
from pgtrial.model.errors import StudyError
from pgtrial.model.quoting import quoted
from pgtrial.model.records.claims import BlockRatio, Claim
from pgtrial.model.units import nearest
from pgtrial.statistics import p8
from pgtrial.statistics.paired_t import ALPHA, t_interval
from pgtrial.statistics.rules import Looks, planned
from pgtrial.statistics.welch import welch_interval
from pgtrial.verdict.claims import claim_of
from pgtrial.verdict.metric import RATIO, REDUCTION, Scale
from pgtrial.verdict.series import as_difference, read_values

_TOO_REGULAR = 0.01
"""If randomly drawn orders would follow a rule, such as `in turn`, with a probability below this value, and the runs do
follow it, pgtrial does not believe that their order was drawn."""


@dataclass(frozen=True)
class Asked:
    """The options with which the user describes the numbers and chooses what to compare."""

    drawn: bool = False
    """True if the user states that the order of the arms in each block was drawn at random before the block ran."""
    better: Better = "more"
    margin: float = 0.01
    """The margin, as a share: differences that are smaller count as equivalent."""
    baseline: str | None = None
    """The arm with which the others are compared; None for the first arm in the file."""
    planned: int | None = None
    """The number of blocks that the user planned before the first run; None for the number of blocks in the file."""

    @property
    def scale(self) -> Scale:
        """Returns the scale on which two values are compared: their ratio, or the inverse ratio if less is better."""
        return RATIO if self.better == "more" else REDUCTION


@dataclass(frozen=True)
class Runs:
    """The runs of a table, their blocks, and the order in which they were made."""

    numbers: Numbers
    asked: Asked
    arms: Sequence[str]
    """The arms. The baseline is the first one."""
    blocks: Sequence[Block] | None
    """The blocks; None if the runs do not form blocks."""
    pattern: Pattern

    @property
    def claims(self) -> int:
        """Returns how many claims (comparisons with the baseline) share the error of 5%: one for each arm except the
        baseline, and at least one."""
        return max(1, len(self.arms) - 1)

    def gains(self, arm: str) -> list[float]:
        """Returns, for each block, by how much the mean value of an arm is better than that of the baseline, as a
        log-ratio."""
        asked, gains = self.asked, []
        for block in self.blocks or ():
            mean, base = (fmean(block.values[name]) for name in (arm, self.arms[0]))
            gain = asked.scale.compared(*((mean, base) if asked.better == "more" else (base, mean))) or 0.0
            gains.append(max(-p8.WORST, min(p8.WORST, gain)))
        return gains


def runs_of(numbers: Numbers, asked: Asked) -> Runs:
    """Returns the runs of a table with their blocks. Raises StudyError if a block does not have equally many values of
    each arm, if there are too many blocks, or if the options of the user do not fit the table."""
    arms = _arms(numbers, asked)
    blocks = None
    if len(arms) > 1:
        blocks = blocks_of(numbers) if asked.drawn else consecutive_blocks(numbers)
    if asked.drawn and blocks is not None and len(blocks) > MOST_BLOCKS:
        raise StudyError(
            f"{numbers.source} has {len(blocks):,} blocks, and pgtrial judges at most {MOST_BLOCKS:,}; if each value "
            "stands for a second or a transaction, write one value for each run instead, or add a column block that "
            "says which values belong together"
        )
    return Runs(numbers, asked, arms, blocks, pattern_of(numbers, blocks))


def withheld_of(runs: Runs) -> list[str]:
    """Returns the reasons why the order of the runs allows no verdict, as sentences; empty if it allows a verdict."""
    names, order, number = runs.numbers.names, runs.numbers.arms, len(runs.blocks or ())
    if len(names) == 1:
        return []
    if not runs.asked.drawn:
        return [not_drawn(names, order, runs.pattern)]
    apart = runs.pattern == "one after the other" and number > 1
    if apart or 2 * chance_of(runs.pattern, len(names), number) < _TOO_REGULAR:
        return [not_like_a_coin(names, order, runs.pattern, number)]
    if (block := scattered_block(runs.numbers)) is not None:
        return [not_consecutive(block)]
    return []


def claims_of(runs: Runs) -> list[Claim]:
    """Returns the comparisons of each arm with the baseline."""
    withheld = bool(withheld_of(runs))
    if runs.asked.drawn and runs.blocks is not None:
        return [_by_the_rule(runs, arm, runs.blocks, withheld=withheld) for arm in runs.arms[1:]]
    return [_if_nothing_drifts(runs, arm) for arm in runs.arms[1:]]


def _arms(numbers: Numbers, asked: Asked) -> list[str]:
    """Returns the arms, with the baseline first. Raises StudyError if the file has no arm with the name of the
    baseline, or if it has a single arm although the user says that the order was drawn."""
    names = numbers.names
    if asked.baseline is not None and asked.baseline not in names:
        cure = nearest(asked.baseline, names, "its arms are")
        raise StudyError(f"{numbers.source} has no arm {quoted(asked.baseline)}, which --baseline names; {cure}")
    if len(names) == 1 and asked.drawn:
        raise StudyError(
            f"{numbers.source} has the single arm {quoted(names[0])}, and --order drawn is about the order of two or "
            "more; add the runs of the other arm, or leave --order out to see how the runs of this arm scatter"
        )
    baseline = asked.baseline or names[0]
    return [baseline, *(name for name in names if name != baseline)]


def _by_the_rule(runs: Runs, arm: str, blocks: Sequence[Block], *, withheld: bool) -> Claim:
    """Returns the claim on an arm, which is its comparison with the baseline, by the statistical rule of studies."""
    asked, claims, gains = runs.asked, runs.claims, runs.gains(arm)
    plan = planned(asked.planned or len(blocks), claims)
    looks = Looks(plan.rule, tuple(plan.until(len(blocks))))
    series = read_values(looks, gains, claims, asked.margin, asked.scale)
    ratios = [
        BlockRatio(block=number, log_ratio=gain, counted=True, failed=[], order=list(block.order))
        for number, (gain, block) in enumerate(zip(gains, blocks, strict=True))
    ]
    more = None if series.decided else looks.more(gains, asked.margin, claims)
    readings = series.decision.readings
    return claim_of(arm, runs.arms[0], series, ratios, looks.fewest(claims), withheld=withheld).model_copy(
        update={
            "changing": series.decided and series.look != readings[-1].look,
            "more_blocks": more,
            "more_chance": looks.chance(gains, asked.margin, claims, len(gains) + more) if more else None,
        }
    )


def _if_nothing_drifts(runs: Runs, arm: str) -> Claim:
    """Returns the claim on an arm, which is its comparison with the baseline, without a verdict. Its interval is valid
    only if nothing but the arms changed between the runs.

    It is the t interval of the blocks' log-ratios. If there are no blocks, or if the arms ran one after the other, it
    is the interval of the difference between mean logarithms.
    """
    asked, alpha, gains = runs.asked, ALPHA / runs.claims, runs.gains(arm)
    if len(gains) > 1 and runs.pattern != "one after the other":
        interval = t_interval(gains, alpha)
    else:
        logs, base = (np.log(runs.numbers.by_arm[name]) for name in (arm, runs.arms[0]))
        interval = welch_interval(*((logs, base) if asked.better == "more" else (base, logs)), alpha)
    return Claim(
        arm=arm,
        baseline=runs.arms[0],
        load_point=None,
        family=runs.claims,
        verdict="withheld",
        within_margin=False,
        blocks=len(gains),
        difference=as_difference(interval, asked.scale),
        fewest_blocks=planned(1, runs.claims).fewest(runs.claims),
    )
