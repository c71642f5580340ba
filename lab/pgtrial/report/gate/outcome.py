"""Decides whether a change passes a gate in continuous integration, by the verdict on HEAD (with the change) in
comparison with BASE (without it). The verdict itself is never changed."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from pgtrial.model.errors import ERROR_STATUS
from pgtrial.model.records.claims import Claim, Estimate
from pgtrial.model.records.machine import FEWEST_BLOCKS
from pgtrial.model.records.plan import Plan
from pgtrial.model.records.results import Failures, StudyResult
from pgtrial.model.units import as_written, format_duration, percent, plural
from pgtrial.report.gate.parts import faster_text, slower_text
from pgtrial.report.words import (
    bounds_beside,
    established,
    headline,
    interval_name,
    open_end,
    outlook,
    signed,
    where,
)
from pgtrial.statistics.precision import EXCLUDE, POWER, blocks_for
from pgtrial.statistics.shamos import spread
from pgtrial.verdict.decide import reasons

FailOn = Literal["worse", "not-equivalent"]
"""The results for which a gate, a check of the commit HEAD, fails: `worse` (HEAD is slower) or `not-equivalent` (HEAD
is slower or faster)."""

WORDS = {0: "pass", 1: "fail", 2: "no verdict", ERROR_STATUS: "error"}
"""The word for each exit status of a gate."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of a gate, which decides whether a change passes: its exit status and the reason."""

    status: int
    """The exit status, as for `pgtrial verdict`: 0 pass, 1 fail, 2 no verdict, 3 an error."""
    reason: str
    """The reason in one sentence, without the full stop."""
    decided: bool = False
    """True if the outcome follows from a verdict on the arms. A later gate of the same set-ups then repeats it and need
    not measure again."""

    @property
    def word(self) -> str:
        """The exit status as a word: `pass`, `fail`, `no verdict` or `error`."""
        return WORDS[self.status]

    @property
    def sentence(self) -> str:
        """The outcome of the gate as a sentence, such as `pass: no difference larger than 1% between base and head.`"""
        # then the reason is the headline of a comparison that is withheld
        says_it = self.reason.startswith(f"{WORDS[2]} on ")
        return f"{self.reason}." if says_it else f"{self.word}: {self.reason}."


@dataclass(frozen=True)
class Rules:
    """The rules that the user has chosen for a gate: when a change passes and when it fails."""

    fail_on: FailOn = "worse"
    accept_undecided: bool = False
    """True if HEAD passes although the comparison is undecided at the end of the budget. Its interval must be
    bounded."""
    equal: str | None = None
    """The reason why the two arms have the same effect, such as `equal in effect (work_mem = 4MB)`; None if they differ
    in effect."""


def outcome(result: StudyResult, plan: Plan, rules: Rules) -> Outcome:
    """Returns the outcome of a study with the arms BASE and HEAD. A third arm, if there is one, is BASE a second time.

    The gate does not pass if all trials of an arm failed, or if the two arms are identical by their set-ups: BASE and
    HEAD then probably name the same build by mistake.
    """
    claim = next(claim for claim in result.primary if claim.arm == plan.arms[1])
    return (
        _failed(result, *plan.arms[:2])
        or _unfair(result, plan)
        or _fails_more(result, plan)
        or _different(claim, plan, result, rules)
        or _other_answers(result, plan)
        or _same(claim, plan, rules)
        or _part_differs(claim, plan, result, rules)
        or _slower_at_a_point(claim, plan, result)
        or _open(claim, plan, result, rules)
        or Outcome(0, _passed(claim, plan), decided=True)
    )


def _unfair(result: StudyResult, plan: Plan) -> Outcome | None:
    """Returns the outcome for a study that runs BASE twice, as two arms, if these two arms differ, in the mean or in a
    query or statement. A difference of HEAD then has no meaning. Returns None if they do not differ."""
    unequal = [
        part
        for claim in result.primary
        if claim.arm in plan.arms[2:]
        for part in claim.read
        if part.verdict in ("better", "worse") and not part.within_margin
    ]
    found = [headline(part, plan) for part in unequal] or list(_unfair_parts(result, plan))
    if not found:
        return None
    return Outcome(2, f"this runner finds a difference between {plan.baseline} and itself: {found[0]}")


def _unfair_parts(result: StudyResult, plan: Plan) -> Iterator[str]:
    """Yields a clause for each second arm of BASE on which queries or statements are slower, or faster, than on the
    first."""
    for arm in plan.arms[2:]:
        if named := slower_text(result, arm) or faster_text(result, arm):
            yield f"on {arm}, {named}"


def _fails_more(result: StudyResult, plan: Plan) -> Outcome | None:
    """Returns the outcome if HEAD fails a larger share of its transactions than BASE, however fast its other
    transactions are; otherwise None."""
    claim = next((claim for claim in result.failure_claims if claim.arm == plan.arms[1]), None)
    if claim is None or claim.verdict != "worse":
        return None
    ours, theirs = (percent(claim.shares[arm]) if claim.shares[arm] else "none" for arm in (claim.arm, claim.baseline))
    words = f"{claim.arm} fails {ours} of its transactions and {claim.baseline} {theirs}"
    return Outcome(1, words, decided=True)


def _other_answers(result: StudyResult, plan: Plan) -> Outcome | None:
    """Returns the outcome if queries of a suite or statements of a replay return other rows on HEAD, which may be fast
    because it does something else; otherwise None."""
    arms = set(plan.arms[:2])
    rules = ("unequal_results", "unequal_rows")
    found = (finding for finding in result.findings if finding.rule in rules and arms & set(finding.arms))
    return next((Outcome(2, finding.message.removesuffix(".")) for finding in found), None)


def _different(claim: Claim, plan: Plan, result: StudyResult, rules: Rules) -> Outcome | None:
    """Returns the outcome if HEAD differs from BASE by more than the margin allows; otherwise None. The reason names
    the queries or statements that are slower."""
    words = {part.verdict for part in claim.read if not part.within_margin and not part.not_worse}
    if "worse" in words:
        texts = (headline(claim, plan), slower_text(result, claim.arm))
        return Outcome(1, "; ".join(filter(None, texts)), decided=True)
    if "better" in words and rules.fail_on == "not-equivalent":
        return Outcome(1, f"{headline(claim, plan)}, and {_ONLY_EQUIVALENT}", decided=True)
    return None


_ONLY_EQUIVALENT = "only what is equivalent may pass"


def _part_differs(claim: Claim, plan: Plan, result: StudyResult, rules: Rules) -> Outcome | None:
    """Returns the outcome if HEAD is certainly slower in a query of a suite, or in a statement of a replay, by more
    than the margin allows, whatever the mean over all of them is; otherwise None. With the option `--fail-on
    not-equivalent`, also if it is certainly faster in one.

    In a gate the claims on queries and statements share one error with the claim on the mean (`[verdict] error =
    "all"`), so that together they fail a HEAD that is as fast as BASE as rarely as the claim on the mean does alone.
    """
    named = slower_text(result, claim.arm)
    if not named and rules.fail_on == "not-equivalent" and (faster := faster_text(result, claim.arm)):
        named = f"{faster}, and {_ONLY_EQUIVALENT}"
    if not named:
        return None
    return Outcome(1, f"{named}; over all of them: {_lower(headline(claim, plan))}", decided=True)


def _slower_at_a_point(claim: Claim, plan: Plan, result: StudyResult) -> Outcome | None:
    """Returns the outcome if HEAD is certainly slower at one of several load points, by more than the margin allows,
    although their mean would let it pass; otherwise None. The gate then neither passes nor fails: a failure is promised
    to be wrong in at most 4.5% of gates, and the claims on single load points do not share that error."""
    slower = [
        (point, part)
        for point in result.claims(claim.arm)
        for part in point.read
        if part.verdict == "worse" and not part.within_margin
    ]
    if len(plan.load_points) == 1 or claim.verdict == "withheld" or not slower:
        return None
    point, part = slower[0]
    more = f" (and slower at {plural(len(slower) - 1, 'more load point')})" if len(slower) > 1 else ""
    mean = f"although the mean over {plural(len(plan.load_points), 'load point')} does not show it"
    return Outcome(2, f"{headline(part, plan)} at {where(point, plan)}{more}, {mean}", decided=True)


def _passed(claim: Claim, plan: Plan) -> str:
    """Returns the reason for which a gate passes. If HEAD is slower by less than the margin, the reason says so."""
    words = _lower(headline(claim, plan))
    if claim.verdict == "undecided":
        known = (difference for part in claim.read if (difference := established(part, plan)) is not None)
        return "; ".join([words, *(_estimated(difference, plan) for difference in known)])
    if any(part.verdict == "worse" for part in claim.read):
        return f"{words}, and a gate lets pass what is slower by less than its margin"
    return words


def _estimated(difference: Estimate, plan: Plan) -> str:
    """Returns the interval of a difference as text. If a bound is missing, the estimate comes first."""
    value = f"estimated difference {signed(difference.value)}"
    if difference.low is None and difference.high is None:
        return value
    interval = f"{bounds_beside(plan.primary_metric, difference)} ({interval_name(plan)})"
    return interval if difference.low is not None and difference.high is not None else f"{value}, {interval}"


def _same(claim: Claim, plan: Plan, rules: Rules) -> Outcome | None:
    """Returns the outcome if the two arms are identical; None if they differ.

    Identical arms do not pass: if BASE and HEAD named the same build by mistake, every change would pass.
    """
    if plan.declared.get(claim.arm) and rules.equal is None:
        return None
    pair = f"{claim.baseline} and {claim.arm}"
    return Outcome(
        2, f"{pair} are {rules.equal or 'identical'}, so that nothing was compared; {_lower(headline(claim, plan))}"
    )


def _failed(result: StudyResult, base: str, head: str) -> Outcome | None:
    """Returns the outcome if all trials of BASE or of HEAD failed; otherwise None."""
    of_arms = {failure.arm: failure for failure in result.failures}
    silent = {arm for arm in (base, head) if of_arms[arm].failed_trials == of_arms[arm].trials}
    if not silent:
        return None
    if silent == {head} and of_arms[head].trials:
        return Outcome(1, f"{head} {_all_failed(of_arms[head], result)}")
    if not any(of_arms[arm].trials for arm in silent):
        return Outcome(2, "no trial was run, so that nothing was compared")
    arm = base if base in silent else head
    return Outcome(2, f"{arm} {_all_failed(of_arms[arm], result)}, so that nothing was compared")


def _all_failed(failures: Failures, result: StudyResult) -> str:
    reason = next((trial.reason for trial in result.failed_trials if trial.arm == failures.arm), "")
    why = f" ({reason})" if reason else ""
    return f"failed in all {plural(failures.trials, 'trial')}{why}" if failures.trials else "has no trial"


def _open(claim: Claim, plan: Plan, result: StudyResult, rules: Rules) -> Outcome | None:
    """Returns the outcome of a comparison without a verdict. Its reason says why the verdict is withheld (the
    comparison was not fair), or why the budget was not enough for a verdict. Returns None if there is a verdict."""
    words = _lower(headline(claim, plan))
    if claim.verdict == "withheld":
        why = "; ".join(reason.removesuffix(".") for reason in reasons(result.findings, claim.arm, plan.baseline))
        return Outcome(2, f"{words}: {why}" if why else words)
    parts = [part for part in claim.read if part.verdict == "undecided" and not part.not_worse]
    if not parts and (claim.verdict != "undecided" or claim.not_worse):
        return None
    bounded = bool(parts) and all(part.difference is not None and part.difference.low is not None for part in parts)
    evidence = "; ".join([words, *_intervals(parts, plan, result)])
    return Outcome(0 if rules.accept_undecided and bounded else 2, evidence)


def _intervals(parts: list[Claim], plan: Plan, result: StudyResult) -> Iterator[str]:
    for part in parts:
        if part.difference is not None:
            bounds = f"{bounds_beside(plan.primary_metric, part.difference)}{open_end(part.difference)}"
            yield f"{bounds} ({interval_name(plan)})"
        yield _longer_gate(part, plan, result) or outlook(part, plan)


def _longer_gate(part: Claim, plan: Plan, result: StudyResult) -> str | None:
    """Returns how long a gate would have to be to exclude a loss of the margin in four of five cases, if HEAD is as
    fast as BASE and the noise of its blocks stays. Returns None if the noise is not known, or if this gate was long
    enough for that, so that HEAD is probably somewhat slower."""
    values = [ratio.log_ratio for ratio in part.ratios if ratio.counted and ratio.log_ratio is not None]
    if not plan.is_final or part.unit != "block" or len(values) < FEWEST_BLOCKS:
        return None
    blocks = blocks_for(plan.margin, part.family, spread(values), promise=EXCLUDE)
    if blocks is None or blocks <= plan.max_blocks:
        return None
    time = format_duration(60 * math.ceil(blocks * result.block_s / 60))
    return (
        f"a gate of about {plural(blocks, 'block')} ({time}) excludes a loss of {as_written(plan.margin)} or more in "
        f"{percent(POWER, 0)} of cases if {part.arm} is as fast as {part.baseline}"
    )


def _lower(words: str) -> str:
    """Returns a headline for use within a sentence, with a small first letter unless it begins with the name of an
    arm."""
    begins = ("No ", "Undecided ", "Two ")
    return words[0].lower() + words[1:] if words.startswith(begins) else words
