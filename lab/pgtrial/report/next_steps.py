"""Says what a user can do next to get a verdict: the command that goes on with the study, or the change of the study
that leads to a verdict."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

from pgtrial.model.records.claims import Claim
from pgtrial.model.records.facts import Finding
from pgtrial.model.records.plan import Plan
from pgtrial.model.records.results import StudyResult
from pgtrial.model.units import format_duration, percent, plural
from pgtrial.report.words import can_decide
from pgtrial.verdict.decide import withholds
from pgtrial.verdict.rules.case import listed
from pgtrial.verdict.rules.use import UNUSED


def steps_to_a_verdict(result: StudyResult, plan: Plan, directory: Path | None) -> Iterator[str]:
    """Yields the steps that lead to a verdict, first for comparisons whose verdict is withheld (because the comparison
    is not fair), then for undecided comparisons.

    Advice that follows from the trials comes first, and the forecast of how many further blocks are needed comes after
    it. More blocks do not help if the load never uses the difference between the arms, or if trials fail.
    """

    def of(arms: Iterable[str]) -> str:
        return against(arms, plan) if len(plan.others) > 1 else ""

    withheld = [claim for claim in result.primary if claim.verdict == "withheld"]
    for finding in (finding for claim in withheld for finding in withholding(result, claim)):
        arms = [claim.arm for claim in withheld if finding in withholding(result, claim)]
        yield f"{about}: {finding.cure}" if (about := of(arms)) else finding.cure
    open_claims = [
        part for claim in result.primary for part in claim.read if part.verdict == "undecided" and not part.not_worse
    ]
    open_queries = [row for row in result.queries if row.query is not None and row.verdict == "undecided"]
    if not open_claims and not open_queries:
        changed = [claim.arm for claim in result.primary if claim.verdict == "undecided" and len(claim.parts) == 1]
        if changed:
            longer = "longer trials, which measure the level after the change too"
            yield f"{about}: {longer}" if (about := of(changed)) else longer
        return
    undecided = {claim.arm for claim in open_claims} | {row.arm for row in open_queries}
    yield from _cures_of_use(result, plan, undecided)
    study = shlex.quote(str(directory)) if directory is not None else "DIRECTORY"
    if result.trials_stored < result.trials_planned and result.blocks_complete < plan.end:
        yield f"pgtrial run {study} goes on: {_how_far(result, plan)}"
    yield from _cures_of_failures(result, {arm for claim in open_claims for arm in (claim.baseline, claim.arm)})
    known = [claim for claim in open_claims if can_decide(claim) and claim.unit == "block"]
    for_queries = [row.more_blocks for row in open_queries if row.more_blocks is not None]
    if plan.is_final:
        if result.blocks_complete >= plan.end:
            kind = "gate" if plan.spending is not None and plan.spending.one_sided else "study"
            yield f"a new {kind} with a longer budget: this one has reached the end of its plan and cannot be continued"
    elif for_queries:
        yield f"pgtrial run {study} --more {_for_queries(known, for_queries, result)}"
    elif known:
        most = max(known, key=lambda claim: claim.more_blocks or 0)
        blocks = plural(most.more_blocks or 0, "more block")
        length = f" in about {format_duration(60 * max(1, round(most.more_s / 60)))}" if most.more_s else ""
        what = f"decides {about}" if (about := of([most.arm])) else "decides"
        chance = f" and {what} with a probability of {percent(most.more_chance, 0)}" if most.more_chance else ""
        yield f"pgtrial run {study} --more {most.more_blocks} measures {blocks}{length}{chance}"
    longer = "more runs of each query in a trial" if open_queries else "longer trials"
    about = of(arm for arm in plan.others if arm in undecided)
    yield f"{longer}, less noise on the machine, or a wider margin: more blocks alone would not decide {about}".rstrip()


def _cures_of_use(result: StudyResult, plan: Plan, undecided: set[str]) -> Iterator[str]:
    """Yields advice for undecided arms if the load did not use the setting or object in which such an arm differs from
    the baseline. More blocks would not help these arms.

    In a plan that cannot be extended, such as that of a gate, the advice does not say so: the result of the gate names
    how long a gate must be to exclude a loss, which is possible although the load does not use the difference.

    The cures of such findings say "these arms", or in older studies "it", so the advice has its own words with the
    names of the arms.
    """
    unused = [finding for finding in result.findings if finding.rule == UNUSED and finding.severity == "warning"]
    arms = [arm for finding in unused if undecided.intersection(finding.arms) for arm in finding.arms]
    if arms:
        longer = "could exclude a loss, but say nothing about this difference" if plan.is_final else "would not help"
        yield (
            f"choose a load that uses what differs between {listed(dict.fromkeys(arms))}; more trials of this load "
            f"{longer}"
        )


def _cures_of_failures(result: StudyResult, arms: Collection[str]) -> Iterator[str]:
    """Yields advice for undecided comparisons in which trials failed. A failed trial counts as the worst result, so
    that the failures, and not the noise, make the interval wide."""
    for of_arm in result.failures:
        if of_arm.failed_trials and of_arm.arm in arms:
            each = "a failed trial counts as the worst result, and that makes the interval wide"
            trials = f"{of_arm.failed_trials} of {plural(of_arm.trials, 'trial')} of {of_arm.arm}"
            yield f"mend what made {trials} fail, then run the study again: {each}"


def _how_far(result: StudyResult, plan: Plan) -> str:
    """Returns how many blocks are complete, and how many more blocks the first verdict needs."""
    blocks = result.blocks_complete
    complete = f"{blocks} of {plural(plan.end, 'block')} are complete"
    first = min(plan.looks, default=0)
    if not blocks < first <= plan.end or plan.deployments > 1:
        return complete
    more = plural(first - blocks, "more block")
    time = f", about {format_duration(round((first - blocks) * result.block_s))}" if result.block_s else ""
    return f"{complete}, and a verdict takes {first} ({more}{time})"


def _for_queries(known: Sequence[Claim], for_queries: Sequence[int], result: StudyResult) -> str:
    """Returns a text such as `12 measures 12 more blocks in about 5min and can decide 20 of 22 undecided queries`,
    which continues the line `pgtrial run DIRECTORY --more`.

    The number of blocks in the text is the smallest number with which one more query gets a verdict, but at least the
    number that the overall verdicts still need.
    """
    blocks = max(min(for_queries), *(claim.more_blocks or 0 for claim in known), 0)
    time = f" in about {format_duration(60 * max(1, round(blocks * result.block_s / 60)))}" if result.block_s else ""
    decided = sum(more <= blocks for more in for_queries)
    undecided = sum(row.query is not None and row.verdict == "undecided" for row in result.queries)
    which = f"{decided} of {undecided} undecided queries" if decided < undecided else "all undecided queries"
    return f"{blocks} measures {plural(blocks, 'more block')}{time} and can decide {which}"


def withholding(result: StudyResult, claim: Claim) -> list[Finding]:
    """Returns the findings that withhold the verdict of a comparison."""
    return [finding for finding in result.findings if withholds(finding, claim.arm, claim.baseline)]


def against(arms: Iterable[str], plan: Plan) -> str:
    """Returns the comparisons of arms with the baseline in words, such as `16 and 17 against 15`."""
    return f"{listed(dict.fromkeys(arms))} against {plan.baseline}"
