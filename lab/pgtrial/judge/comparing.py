"""Compares the arms of a table of numbers: by the rule of studies where a coin ordered the runs, and never with a
verdict elsewhere.

The rule P9 assumes nothing of the noise but that a coin gave each block its order. Numbers of another harness have that
only if their user says so. Without it a drift of the machine looks like a difference of the arms, so that the
comparison is withheld; its interval then holds only if nothing but the arms changed between the runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from pgtrial.judge.blocks import MOST_BLOCKS, Block, blocks_of, chance_of, consecutive_blocks, pattern_of
from pgtrial.judge.judgement import Better, Pattern
from pgtrial.judge.numbers import Numbers
from pgtrial.judge.reasons import not_drawn, not_like_a_coin
from pgtrial.model.errors import StudyError
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
"""The probability of an order below which it is not taken for one that was drawn."""


@dataclass(frozen=True)
class Asked:
    """The options with which the user describes the numbers and chooses the comparison."""

    drawn: bool = False
    """True if the order of the arms was drawn at random in each block before it ran."""
    better: Better = "more"
    margin: float = 0.01
    """The share below which a difference counts as equivalent."""
    baseline: str | None = None
    """The arm that the others are compared with; None: the first one in the file."""
    planned: int | None = None
    """The number of blocks that were planned before the first run; None: those of the file."""

    @property
    def scale(self) -> Scale:
        """Returns the scale on which two values are compared."""
        return RATIO if self.better == "more" else REDUCTION


@dataclass(frozen=True)
class Runs:
    """The runs, and the order in which they were made."""

    numbers: Numbers
    asked: Asked
    arms: Sequence[str]
    """The arms, the baseline first."""
    blocks: Sequence[Block] | None
    """The blocks; None if the runs form none."""
    pattern: Pattern

    @property
    def claims(self) -> int:
        """Returns how many claims share the error: one for each arm beside the baseline, and at least one."""
        return max(1, len(self.arms) - 1)

    def gains(self, arm: str) -> list[float]:
        """Returns by how much the mean value of an arm is better than the baseline's in each block, as a log-ratio."""
        asked, gains = self.asked, []
        for block in self.blocks or ():
            mean, base = (fmean(block.values[name]) for name in (arm, self.arms[0]))
            gain = asked.scale.compared(*((mean, base) if asked.better == "more" else (base, mean))) or 0.0
            gains.append(max(-p8.WORST, min(p8.WORST, gain)))
        return gains


def runs_of(numbers: Numbers, asked: Asked) -> Runs:
    """Returns the runs in their blocks. Raises StudyError if a block lacks an arm, or if the question does not fit."""
    arms = _arms(numbers, asked)
    blocks = None
    if len(arms) > 1:
        blocks = blocks_of(numbers) if asked.drawn else consecutive_blocks(numbers)
    if asked.drawn and blocks is not None and len(blocks) > MOST_BLOCKS:
        raise StudyError(
            f"{numbers.source} has {len(blocks):,} blocks, and at most {MOST_BLOCKS:,} are judged; if its values are "
            "those of seconds or transactions, write one value for each run, or name by a column block which of them "
            "belong together"
        )
    return Runs(numbers, asked, arms, blocks, pattern_of(numbers, blocks))


def withheld_of(runs: Runs) -> list[str]:
    """Returns why the order of the runs gives no verdict; nothing if it may."""
    names, order, number = runs.numbers.names, runs.numbers.arms, len(runs.blocks or ())
    if len(names) == 1:
        return []
    if not runs.asked.drawn:
        return [not_drawn(names, order, runs.pattern)]
    apart = runs.pattern == "one after the other" and number > 1
    if apart or 2 * chance_of(runs.pattern, len(names), number) < _TOO_REGULAR:
        return [not_like_a_coin(names, order, runs.pattern, number)]
    return []


def claims_of(runs: Runs) -> list[Claim]:
    """Returns the comparison of each arm with the baseline."""
    withheld = bool(withheld_of(runs))
    if runs.asked.drawn and runs.blocks is not None:
        return [_by_the_rule(runs, arm, runs.blocks, withheld=withheld) for arm in runs.arms[1:]]
    return [_if_nothing_drifts(runs, arm) for arm in runs.arms[1:]]


def _arms(numbers: Numbers, asked: Asked) -> list[str]:
    """Returns the arms, the baseline first. Raises StudyError if there is none of its name, or nothing to order."""
    names = numbers.names
    if asked.baseline is not None and asked.baseline not in names:
        cure = nearest(asked.baseline, names, "its arms are")
        raise StudyError(f"{numbers.source} has no arm {asked.baseline!r}, which --baseline names; {cure}")
    if len(names) == 1 and asked.drawn:
        raise StudyError(
            f"{numbers.source} has the single arm {names[0]!r}, and --order drawn is about the order of two or more; "
            "add the runs of the other arm, or leave --order out to see how the runs of one scatter"
        )
    baseline = asked.baseline or names[0]
    return [baseline, *(name for name in names if name != baseline)]


def _by_the_rule(runs: Runs, arm: str, blocks: Sequence[Block], *, withheld: bool) -> Claim:
    """Returns the claim on an arm by the rule of studies."""
    asked, claims, gains = runs.asked, runs.claims, runs.gains(arm)
    plan = planned(asked.planned or len(blocks), claims)
    looks = Looks(plan.rule, tuple(plan.until(len(blocks))))
    series = read_values(looks, gains, claims, asked.margin, asked.scale)
    ratios = [
        BlockRatio(block=place, log_ratio=gain, counted=True, failed=[], order=list(block.order))
        for place, (gain, block) in enumerate(zip(gains, blocks, strict=True))
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
    """Returns the withheld claim on an arm, with an interval that holds if only the arms changed between the runs.

    It is the t interval of the log-ratios of blocks. Without blocks, or if the arms ran one after the other, it is that
    of the difference of mean logarithms.
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
