"""Makes the content of verdict.json: the result of the study with sentences and notes in words."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence

from pgtrial.model.records.claims import Claim
from pgtrial.model.records.interruptions import Interruption
from pgtrial.model.records.plan import Plan
from pgtrial.model.records.results import StudyResult
from pgtrial.model.records.trial import Trial
from pgtrial.model.units import plural
from pgtrial.report.alone import alone_sentence
from pgtrial.report.screen import factor_sentence, pair_text
from pgtrial.report.sweep_words import sweep_remarks
from pgtrial.report.words import cost_text, in_regime, sentence, signed, transaction
from pgtrial.statistics.describe import uneven
from pgtrial.verdict.decide import decide, reasons
from pgtrial.verdict.metrics.costs import clearly
from pgtrial.verdict.rules.case import Case


def verdict_of(case: Case) -> StudyResult:
    """Returns the result of the study, completed by sentences and notes in words. `case` holds the facts, the trials
    and the plan from which the result is computed."""
    result, plan = decide(case), case.plan
    return result.model_copy(
        update={
            "sentences": _sentences(result, plan),
            "notes": [
                *_notes(result),
                *earlier_notes(plan),
                *interruption_notes(plan, case.interruptions),
                *_start_notes(plan, case.trials),
                *_voided_notes(case.voided),
            ],
            "moved": list(_moved_with(result)),
        }
    )


def _sentences(result: StudyResult, plan: Plan) -> list[str]:
    if not plan.others:
        return [alone_sentence(level, result, plan) for level in result.levels]
    why = {claim.arm: reasons(result.findings, claim.arm, plan.baseline) for claim in result.primary}
    if plan.factors:
        return [factor_sentence(claim, plan, withheld=why[claim.arm]) for claim in result.primary]
    return [sentence(claim, plan, result, withheld=why[claim.arm]) for claim in result.primary]


def _notes(result: StudyResult) -> Iterator[str]:
    if result.screen is not None:
        yield from (f"A hint, and no verdict: {pair_text(pair)}." for pair in result.screen.pairs)
        return
    if result.identical_arms and result.primary:
        yield "The study declares no difference between its arms: this is an A/A study, a check of the method."
    for claim in result.primary:
        for part in claim.read:
            yield from _claim_notes(part)
        at_points = result.claims(claim.arm)
        tally = Counter(entry.verdict for entry in at_points)
        if len(set(tally) & {"better", "worse", "equivalent"}) > 1:
            counts = ", ".join(f"{word} at {number}" for word, number in tally.most_common())
            yield (
                f"The load points differ, {claim.arm} against {claim.baseline}: {counts} of {len(at_points)}; "
                "read them one by one, the mean alone would mislead."
            )
    yield from (f"{remark[0].upper()}{remark[1:]}." for remark in sweep_remarks(result))
    for arm, blocks in result.left.items():
        yield (
            f"{arm} left after {plural(blocks, 'block')}, for all its claims were decided: its verdict, interval and "
            "figures rest on these blocks, and the other claims share the errors of the looks as if it had stayed."
        )


def _start_notes(plan: Plan, trials: Sequence[Trial]) -> Iterator[str]:
    """Yields one sentence for each arm whose server did not always start at the first attempt."""
    for arm in plan.arms:
        late = [trial for trial in trials if trial.arm == arm and trial.start_failures]
        failed = sum(trial.never_started for trial in late)
        if late:
            yield (
                f"The server of {arm} did not start at the first attempt in {plural(len(late), 'trial')}; the second "
                f"attempt failed as well in {failed} of them. The server's words: {late[-1].start_failures[-1]}."
            )


def earlier_notes(plan: Plan) -> list[str]:
    """Returns one sentence if there were already studies of the same question when this study began."""
    if not plan.earlier:
        return []
    tries = ", ".join(
        f"{study.directory} ({study.blocks} of {plural(study.planned, 'block')})" for study in plan.earlier
    )
    return [
        f"This is try {len(plan.earlier) + 1} of this question in its results directory; earlier: {tries}. Every try "
        "has its own 5%: a verdict chosen from several errs more often."
    ]


def interruption_notes(plan: Plan, interruptions: Sequence[Interruption]) -> list[str]:
    """Returns sentences about the trials of each arm that were interrupted. If they are unevenly distributed over
    the arms, a sentence says so, since somebody may have interrupted trials that looked bad."""
    by_arm = Counter(trial.arm for interruption in interruptions for trial in interruption.trials)
    if not by_arm:
        return []
    counts = ", ".join(f"{arm} {by_arm[arm]}" for arm in plan.arms)
    notes = [
        f"{plural(len(interruptions), 'interruption')} of the study ended trials under way, which were run again: "
        f"{counts}."
    ]
    for arm, count, p in uneven(by_arm, len(plan.arms)):
        notes.append(
            f"Of {plural(by_arm.total(), 'interrupted trial')} {count} are of {arm} (p = {p:.2g}): the person who "
            "ended them may have chosen by what they saw; read the table of interrupted trials."
        )
    return notes


def _claim_notes(claim: Claim) -> Iterator[str]:
    pair = f"{claim.arm} against {claim.baseline}{in_regime(claim)}"
    if claim.unstable and claim.mean and claim.difference:
        numbers = ", ".join(str(block + 1) for block in claim.odd_blocks)
        odd = f" ({claim.unit}s {numbers})" if numbers else ""
        totals = f"; in total, {signed(claim.totals)} transactions" if claim.totals is not None else ""
        yield (
            f"The arms differ in stability, {pair}: rare odd {claim.unit}s{odd} pull the mean to "
            f"{signed(claim.mean.value)} while the typical {claim.unit} has "
            f"{signed(claim.difference.value)}{totals}."
        )
    if claim.changing:
        yield (
            f"The effect changes during the study, {pair}: the verdict of {claim.blocks} {claim.unit}s is not "
            f"carried by all {claim.looks[-1].blocks}; look at the {claim.unit}s one by one."
        )
    provisional = sum(not ratio.counted or ratio.log_ratio is None for ratio in claim.ratios)
    late = len(claim.ratios) - provisional - claim.blocks
    if claim.looks and late > 0:
        yield (
            f"{plural(late, claim.unit)} after the last planned look, {pair}: shown as provisional, not part of "
            f"the interval of {claim.blocks} {claim.unit}s."
        )


def _moved_with(result: StudyResult) -> Iterator[str]:
    """Yields one sentence for each arm with the verdict `better` or `worse`, about the costs of a transaction (such as
    CPU time or WAL) that differ clearly from the baseline. Costs whose change fits the verdict come first: costs that
    fell for a faster arm, or rose for a slower one."""
    what = transaction(result.load_points)
    single = all(cost.load_point is not None for cost in result.costs)
    clear = [cost for cost in result.costs if (cost.load_point is None or single) and clearly(cost, result.margin)]
    costs = [(cost, cost.difference.value, text) for cost in clear if cost.difference and (text := cost_text(cost))]
    costs.sort(key=lambda moved: -abs(math.log1p(max(moved[1], -0.9999))))
    for claim in result.primary:
        moved = [(value < 0, f"{cost.what} {text}") for cost, value, text in costs if cost.arm == claim.arm]
        if claim.verdict not in ("better", "worse") or not moved:
            continue
        faster = claim.verdict == "better"
        fits = ", ".join(text for is_less, text in moved if is_less == faster)
        against = ", ".join(text for is_less, text in moved if is_less != faster)
        rose, fell = ("rose", "fell") if faster else ("fell", "rose")
        parts = [f"{fits}, which fits the verdict" if fits else f"no measured cost {fell}"]
        parts += [f"{against} {rose} all the same"] if against else []
        yield f"Costs per {what}, {claim.arm} against {claim.baseline}: {'; '.join(parts)}."


def _voided_notes(voided: Sequence[int]) -> list[str]:
    """Returns a note about blocks that an earlier version of pgtrial had excluded from the study; the present version
    counts them. The list is empty if there are no such blocks."""
    if not voided:
        return []
    return [
        f"An earlier version of pgtrial found the machine disturbed, set {plural(len(voided), 'block')} aside and ran "
        f"the same order again: {', '.join(str(block + 1) for block in voided)}. The trials are in voided/."
    ]
