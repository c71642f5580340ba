"""The unit of analysis, which is what counts as one independent measurement: a block or, if an arm consists of several
deployments (servers of the same product), a pair of deployments.

A deployment keeps its peculiarities as long as it exists: its machine, its neighbours on this machine, and its storage.
More blocks on the same two servers only describe these two servers more exactly. Therefore, if every arm names several
deployments, block b runs on deployment k of each arm, and the mean log-ratio over the blocks of a pair of deployments
is one value of the analysis. The pairs are independent random draws.

With eight pairs or more, the statistical rule P9 (see docs/method.md) treats the pairs as it treats blocks. With four
to seven pairs, its exact interval cannot reach a confidence of 95%. There is then a single look (analysis), at the end,
which uses the paired t test on the means of the pairs (Student 1908). With fewer pairs nothing can be said about the
product, and the verdict is about these servers only.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from statistics import fmean
from typing import Literal

import numpy as np

from pgtrial.model.records.claims import BlockRatio
from pgtrial.model.records.plan import Plan
from pgtrial.statistics import p8, p9, rules
from pgtrial.statistics.paired_t import ALPHA, quantile, t_interval

FEWEST = 4
"""With at least this number of pairs of deployments (servers of the same product), a verdict is about the products.
With fewer pairs it is only about the servers that were measured."""

FEWEST_BY_SIGNS = 8
"""With at least this number of pairs of servers, the same statistical rule is used as for blocks, which is based on the
signs of the log-ratios. With fewer pairs it is the t test."""

_FORECAST = 60
"""A forecast says how many pairs of servers lead to a verdict only if they are at most this many."""


def is_fixed(plan: Plan) -> bool:
    """True if the study is analysed only once, at its end, by the t test over pairs of deployments (servers of the same
    product)."""
    return FEWEST <= plan.deployments < FEWEST_BY_SIGNS


def looks_of(plan: Plan, blocks_each: int = 1) -> rules.Looks:
    """Returns the looks (interim analyses) of a plan together with the statistical rule that evaluates the values at
    each look. The rule is P9 (see docs/method.md), or the older rule P8 if the study was planned before P9 existed.

    Looks are counted in units of analysis, each of which consists of `blocks_each` blocks.
    """
    planned = tuple(look // blocks_each for look in plan.looks)
    if plan.spending is None:
        return rules.Looks(rules.P8(), planned)
    of_plan = plan.spending
    return rules.Looks(rules.P9(p9.Spending(of_plan.end // blocks_each, of_plan.kept, of_plan.worse)), planned)


class Units:
    """The units of analysis of a study (its blocks, or its pairs of servers), and the statistical rule that decides by
    their values. The values are log-ratios, which the module `p8` defines."""

    def __init__(self, plan: Plan):
        several = plan.deployments >= FEWEST
        self.unit: Literal["block", "deployment"] = "deployment" if several else "block"
        self.fixed = is_fixed(plan)
        self.blocks_each = plan.max_blocks // plan.deployments if several else 1
        """The number of blocks in a unit of analysis: 1 unless each arm runs on at least FEWEST deployments."""
        self._looks = looks_of(plan, self.blocks_each)
        self._blocks: dict[int, list[int]] = {}
        for block, number in {trial.block: trial.place or 0 for trial in plan.trials}.items():
            self._blocks.setdefault(number if several else block, []).append(block)

    def blocks(self, units: Collection[int]) -> set[int]:
        """Returns the blocks that belong to these units of analysis. A unit is a block itself or, if each arm has
        several servers, all blocks on one pair of servers."""
        return {block for unit in units for block in self._blocks[unit]}

    def complete(self, counted: Collection[int]) -> list[int]:
        """Returns the units (blocks, or pairs of servers) that are complete: all their blocks are in `counted`, the
        blocks that count. The units are in the order in which the plan begins them."""
        present = set(counted)
        return [unit for unit, blocks in self._blocks.items() if present.issuperset(blocks)]

    def means(self, values: Mapping[int, float], counted: Collection[int]) -> dict[int, float]:
        """Returns the mean of the values of each complete unit's blocks. A unit is a block or a pair of servers. A unit
        without any value is left out."""
        of_units = {
            unit: [values[block] for block in self._blocks[unit] if block in values] for unit in self.complete(counted)
        }
        return {unit: fmean(known) for unit, known in of_units.items() if known}

    def pooled(self, ratios: Sequence[BlockRatio]) -> list[BlockRatio]:
        """Returns the log-ratios of units (blocks, or pairs of servers), computed from the log-ratios of blocks. In the
        result, `block` is the number of the unit.

        The log-ratio of an incomplete unit is provisional, and the unit does not count.
        """
        if self.unit == "block":
            return list(ratios)
        complete = self.complete([ratio.block for ratio in ratios if ratio.counted])
        of_units = []
        for unit, blocks in self._blocks.items():
            within = [ratio for ratio in ratios if ratio.block in blocks]
            values = [ratio.log_ratio for ratio in within if ratio.log_ratio is not None]
            if within:
                log_ratio = fmean(values) if values else None
                failed = list(dict.fromkeys(arm for ratio in within for arm in ratio.failed))
                of_units.append(
                    BlockRatio(
                        block=unit,
                        log_ratio=log_ratio,
                        cut=list(dict.fromkeys(arm for ratio in within for arm in ratio.cut)),
                        counted=unit in complete,
                        failed=failed,
                        order=[],
                    )
                )
        return of_units

    def looks(self) -> list[p8.Look]:
        """Returns the planned looks (interim analyses), counted in units. Each has the probability of a wrong verdict
        that it may have on all claims (comparisons) of a family together."""
        return [p8.Look(look, ALPHA) for look in self._looks.planned] if self.fixed else self._looks.schedule()

    def reached(self, counted: Collection[int]) -> list[tuple[p8.Look, list[int]]]:
        """Returns the planned looks (interim analyses) for which enough of the counted blocks are complete, each with
        the units whose values it reads."""
        units = self.complete(counted)
        return [(look, units[: look.blocks]) for look in self.looks() if look.blocks <= len(units)]

    def can_decide(self, look: p8.Look, claims: int) -> bool:
        """True if the look (interim analysis) has enough units to give a verdict at all, when `claims` claims
        (comparisons) share its allowed probability of a wrong verdict."""
        return self.fixed or self._looks.rule.can_decide(look, claims)

    def reader(self) -> rules.Reader:
        """Returns an object that evaluates one claim (comparison) at the looks (interim analyses), one look after the
        other."""
        return _PairedT() if self.fixed else self._looks.rule.reader()

    def at_once(self, values: Sequence[float], look: p8.Look, claims: int) -> p8.Interval:
        """Returns the interval of values that are evaluated at one look (interim analysis) only and not at the looks
        before it. `claims` is the number of claims (comparisons) that share the look's allowed probability of an
        error."""
        if self.fixed:
            return t_interval(values, look.alpha / claims)
        return p8.interval(values, self._looks.level(look, claims))

    def fewest(self, claims: int) -> int:
        """Returns how many units (blocks, or pairs of servers) a verdict needs at least. `claims` is the number of
        claims (comparisons) that share the allowed probability of a wrong verdict; with more claims more units are
        needed."""
        if self.fixed:
            return self._looks.planned[-1]
        return self._looks.fewest(claims)

    def more(self, values: Sequence[float], margin: float, claims: int, counted: Collection[int]) -> int | None:
        """Returns how many more units (blocks, or pairs of servers) lead to a verdict, if the estimate and the spread
        stay as they are now. The study then ends at the look (interim analysis) that gives the verdict.

        As long as there are too few units for a forecast, it is the number up to the first look that can give a
        verdict. Returns None if no forecast is possible. Looks also count units that gave no value.
        """
        done, fewest = len(self.complete(counted)), self.fewest(claims)
        if not self.fixed:
            return self._looks.more(values, margin, claims, done - len(values))
        needed = self._needed_pairs(values, margin, claims, done)
        if needed is None and done >= fewest:
            return None
        return max(needed or 0, fewest) - done

    def _needed_pairs(self, values: Sequence[float], margin: float, claims: int, done: int) -> int | None:
        """Returns the total number of pairs of servers with which the t test would give a verdict. Returns None if
        there are fewer than three pairs now, or if even `_FORECAST` pairs would not suffice."""
        now = self._present(values, margin)
        if now is None:
            return None
        later = range(done + 1, _FORECAST + 1)
        return next((n for n in later if quantile(ALPHA / claims, n - 1) * now.spread / math.sqrt(n) < now.gap), None)

    def chance(
        self, values: Sequence[float], margin: float, claims: int, counted: Collection[int], more: int
    ) -> float | None:
        """Returns the probability that `more` further units (blocks, or pairs of servers) lead to a verdict on the
        claim (comparison), if the true difference is as estimated now. Returns None if it is not known."""
        done = len(self.complete(counted))
        if not self.fixed:
            return self._looks.chance(values, margin, claims, done + more, done - len(values))
        now = self._present(values, margin)
        return now.chance(done + more, quantile(ALPHA / claims, done + more - 1)) if now is not None else None

    def _present(self, values: Sequence[float], margin: float) -> p8.Present | None:
        """Returns the estimate and the spread of the values so far; None if there are fewer than three values."""
        if len(values) < 3:
            return None
        return p8.Present(len(values), float(np.mean(values)), float(np.std(values, ddof=1)), margin)


class _PairedT:
    """Evaluates a study with four to seven pairs of deployments (servers of the same product) at its single look, by
    the t interval over the pairs."""

    def read(
        self, look: p8.Look, units: Sequence[int], values: Sequence[float], limits: p8.Limits, claims: int
    ) -> p8.Reading:
        """Returns the result of the look (interim analysis) for these values, by their t interval. The probability that
        the interval misses the true difference is the look's error divided by the number of claims (comparisons) that
        share it."""
        level = look.alpha / claims
        interval = t_interval(np.asarray(values, dtype=np.float64), level)
        return p8.Reading(look, level, interval, interval.word(limits), interval.between(limits))
