"""A rule on failures: an arm that fails more of its transactions must not win because of that."""

from __future__ import annotations

from collections.abc import Iterator

from pgtrial.model.records.claims import Comparison
from pgtrial.model.records.screens import Factor
from pgtrial.model.units import percent
from pgtrial.verdict.claims import comparisons
from pgtrial.verdict.failures import Shares, factor_shares, shares
from pgtrial.verdict.family import primary_sharing
from pgtrial.verdict.metric import Scale
from pgtrial.verdict.rules.case import Case, Concern, rule
from pgtrial.verdict.screening import factor_series, trials_with

_WHY_THEY_FAIL = (
    "Find out why they fail: the report lists the SQLSTATEs. Transactions that fail take less time than they would, "
    "and so do those that come after them."
)


_UNEVEN = 2
"""The levels of a factor fail unequal numbers of trials if the square of the difference exceeds this many times the
number of failed trials: with three of three, five of five or eight of ten."""


@rule("unequal_failures", "the arms fail different shares of their transactions", over_trials=True)
def unequal_failures(case: Case) -> Iterator[Concern]:
    """Finds unequal shares of failed transactions. Only committed transactions count for the speed, so that failures
    can reverse a comparison.

    The verdict is kept if speed and failures point in the same direction: the arm is slower and fails more, or it is
    faster and fails less.
    """
    if case.plan.factors:
        yield from _unequal_levels(case)
        return
    slower = worse_arms(case)
    for arm in case.others:
        found = shares(case.grid, arm, primary_sharing(case.plan))
        if found is None or not found.differ_notably(case.plan.margin):
            continue
        agrees = (arm in slower) == (found.excess > 0)
        yield Concern(
            [arm],
            f"{_sentence(case, arm, found)}.",
            _WHY_THEY_FAIL if not agrees else "The report lists the SQLSTATEs.",
            "warning" if agrees else "withhold",
        )


def _unequal_levels(case: Case) -> Iterator[Concern]:
    """Finds factors of a screening study one of whose levels makes more transactions or trials fail. The arms of such
    a study have other levels in each block, so the levels are compared. The verdict on a factor is withheld if the
    level that fails more does not lose."""
    of_transactions = factor_shares(case.grid, primary_sharing(case.plan))
    for at, factor in enumerate(case.plan.factors):
        first, second = factor.labels
        (first_failed, first_trials), (second_failed, second_trials) = _failed_trials(case, at)
        excess = second_failed - first_failed
        if excess**2 > _UNEVEN * (first_failed + second_failed):
            message = (
                f"{second_failed} of {second_trials} trials with {second} failed, and {first_failed} of {first_trials} "
                f"with {first}."
            )
            yield _of_levels(case, second, excess, message, "Find out why they fail: the report lists the reasons.")
        found = of_transactions[at]
        if found is not None and found.differ_notably(case.plan.margin):
            concern = _of_levels(case, second, found.excess, _of_shares(found, factor), _WHY_THEY_FAIL)
            if found.series.decided or concern.severity == "withhold":
                yield concern


def _of_levels(case: Case, second: str, excess: float, message: str, cure: str) -> Concern:
    """Returns the concern that one level of a factor fails more: the second one if `excess` is above zero. It withholds
    a verdict in which this level does not lose."""
    verdict = factor_series(case.grid, second, primary_sharing(case.plan))[1].decision.verdict
    agrees = verdict in ("undecided", "worse" if excess > 0 else "better")
    return Concern([second], message, cure, "warning" if agrees else "withhold")


def _of_shares(found: Shares, factor: Factor) -> str:
    first, second = factor.labels
    shares = [percent(share) if share else "none" for share in (found.arm, found.baseline)]
    return (
        f"{shares[0]} of the transactions with {second} failed, and {shares[1]} with {first}: without the other "
        f"factors {percent(abs(found.excess))} {'more' if found.excess > 0 else 'less'} with {second}."
    )


def _failed_trials(case: Case, factor: int) -> list[tuple[int, int]]:
    """Returns, for each level of a factor, how many trials failed, and of how many."""
    of_levels = [trials_with(case.grid, factor, level) for level in "01"]
    return [(sum(not case.grid.goodput(trial) for trial in trials), len(trials)) for trials in of_levels]


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
