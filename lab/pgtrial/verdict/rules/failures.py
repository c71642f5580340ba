"""A rule on failures: an arm that fails more of its transactions must not win because of that."""

from __future__ import annotations

from collections.abc import Iterator

from pgtrial.model.records.claims import Comparison
from pgtrial.model.units import percent
from pgtrial.verdict.claims import comparisons
from pgtrial.verdict.failures import Shares, shares
from pgtrial.verdict.family import primary_sharing
from pgtrial.verdict.metric import Scale
from pgtrial.verdict.rules.case import Case, Concern, rule


@rule("unequal_failures", "the arms fail different shares of their transactions", over_trials=True)
def unequal_failures(case: Case) -> Iterator[Concern]:
    """Finds unequal shares of failed transactions. Only committed transactions count for the speed, so that failures
    can reverse a comparison.

    The verdict is kept if speed and failures point in the same direction: the arm is slower and fails more, or it is
    faster and fails less.
    """
    slower = worse_arms(case)
    for arm in case.others:
        found = shares(case.grid, arm, primary_sharing(case.plan))
        if found is None or not found.differ_notably(case.plan.margin):
            continue
        agrees = (arm in slower) == (found.excess > 0)
        yield Concern(
            [arm],
            f"{_sentence(case, arm, found)}.",
            "Find out why they fail: the report lists the SQLSTATEs. Transactions that fail take less time than they "
            "would, and so do those that come after them."
            if not agrees
            else "The report lists the SQLSTATEs.",
            "warning" if agrees else "withhold",
        )


def worse_arms(case: Case) -> set[str]:
    """Returns the arms that some look (planned interim analysis) has found to be worse than the baseline by the metric
    that decides the verdict."""
    return {one.arm for one in comparisons(case.grid) if _is_worse(one, case.grid.primary.scale)}


def _is_worse(comparison: Comparison, scale: Scale) -> bool:
    """True if the comparison says that the arm is worse by the metric that decides the verdict. For times and costs,
    larger values are worse."""
    seen = comparison.at_look
    if not comparison.decided or seen is None:
        return False
    if scale.falls:
        return seen.low is not None and seen.low > 0
    return seen.high is not None and seen.high < 0


def _sentence(case: Case, arm: str, found: Shares) -> str:
    ours, theirs = (percent(share) if share else "none" for share in (found.arm, found.baseline))
    return f"{arm} failed {ours} of its transactions and {case.baseline} {theirs}"
