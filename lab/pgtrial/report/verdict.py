"""The contents of verdict.json: the result of the statistics with its findings, sentences and notes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from pgtrial.evidence.audit import GRAVITY, TITLES
from pgtrial.model.records.disturbances import Interruption
from pgtrial.model.records.facts import Audit, Facts, Finding
from pgtrial.model.records.plan import Plan
from pgtrial.model.records.results import Claim, StudyResult
from pgtrial.model.records.trial import Trial
from pgtrial.model.units import plural
from pgtrial.report.words import cost_text, in_regime, interval_text, sentence, signed, transaction
from pgtrial.statistics.analysis import analyse_study, withholds
from pgtrial.statistics.carry_over import Slices
from pgtrial.statistics.changes import Seconds
from pgtrial.statistics.costs import clearly
from pgtrial.statistics.levels import uneven
from pgtrial.statistics.ratios import Grid
from pgtrial.statistics.withheld import CLIENT_RULES, QualityCell, SpoiltCell, quality_cells, spoilt_cells


def verdict_of(
    plan: Plan,
    trials: Sequence[Trial],
    audit: Audit | None = None,
    seconds: Seconds | None = None,
    *,
    facts: Mapping[str, Facts] | None = None,
    slices: Slices | None = None,
    interruptions: Sequence[Interruption] = (),
    voided: Sequence[int] = (),
) -> StudyResult:
    """The result of `analyse_study`, with findings, sentences and notes."""
    result = analyse_study(plan, trials, audit, seconds, facts=facts, slices=slices)
    findings = [*(audit.findings if audit else []), *_findings(Grid(plan, trials)), *_carry_over_findings(result)]
    findings.sort(key=lambda finding: GRAVITY.index(finding.severity))
    reasons = {
        claim.arm: [f"{each.message} {each.cure}" for each in findings if withholds(each, claim.arm, plan.baseline)]
        for claim in result.primary
    }
    return result.model_copy(
        update={
            "sentences": [sentence(claim, plan, result, withheld=reasons[claim.arm]) for claim in result.primary],
            "notes": [
                *_notes(result),
                *earlier_notes(plan),
                *interruption_notes(plan, interruptions),
                *_start_notes(plan, trials),
                *_voided_notes(voided),
            ],
            "interruptions": list(interruptions),
            "withheld": list(dict.fromkeys(reason for of_arm in reasons.values() for reason in of_arm)),
            "findings": findings,
            "moved": list(_moved_with(result)),
        }
    )


_TITLES = {
    **TITLES,
    "busy_client": "the client was a limit",
    "schedule_lag": "transactions started late",
    "rate_not_kept": "the rate was not kept",
    "carry_over": "slices disturb those after them",
    "unequal_quality": "the answers are not equally good",
    "quality_not_reached": "the answers are not good enough",
}
_MESSAGES = {
    "busy_client": "The client itself was a limit of {arms} ({where}), in the engine's words: {example}.",
    "schedule_lag": "Transactions of {arms} were started later than their schedule ({where}), in the engine's words: "
    "{example}.",
    "rate_not_kept": "The rate was not kept by {arms} ({where}), for example {example}: beyond an arm's capacity its "
    "response time tells how long the trial was.",
}
_CURES = {
    "busy_client": "Give the load more threads ([load] jobs), use fewer clients, or run pgtrial on another machine "
    "than the server; [verdict] allow_busy_client = true gives the verdict all the same.",
    "schedule_lag": "Give the load more clients or threads ([load] clients, jobs), lower the rate, or run pgtrial on "
    "another machine than the server; [verdict] allow_busy_client = true gives the verdict all the same.",
    "rate_not_kept": "Lower [load] rate to what every arm can serve, or leave it out to compare throughput.",
}
_CLIENT_ALLOWED = "The study allows it ([verdict] allow_busy_client): the client may hide a part of the difference."


def title(finding: Finding) -> str:
    """What was found, in a few words; of a rule that is no more its name."""
    return _TITLES.get(finding.rule, finding.rule.replace("_", " "))


def _findings(grid: Grid) -> Iterator[Finding]:
    """One finding for each rule that trials break, and for each arm whose quality forbids to compare it."""
    for _, spoilt in groupby(spoilt_cells(grid), key=lambda cell: cell.rule):
        yield _spoilt_finding(list(spoilt), grid.plan)
    by_arm: dict[tuple[str, str], list[QualityCell]] = {}
    for cell in quality_cells(grid):
        by_arm.setdefault((cell.rule, cell.arm), []).append(cell)
    for cells in by_arm.values():
        yield _quality_finding(cells, grid.plan)


def _spoilt_finding(cells: list[SpoiltCell], plan: Plan) -> Finding:
    """It withholds the comparisons of the arms, unless the study allows it; `cells` are all of one rule.

    Where the baseline is spoilt the finding is about it alone, since then every comparison is.
    """
    first, arms = cells[0], list(dict.fromkeys(cell.arm for cell in cells))
    allowed = first.rule in CLIENT_RULES and plan.allow_busy_client
    more = len({cell.point for cell in cells}) - 1
    place = f"{first.spoilt} of {plural(first.trials, 'trial')} of {first.arm} at {plan.load_points[first.point].label}"
    place += f", and others at {plural(more, 'more load point')}" if more else ""
    return Finding(
        rule=first.rule,
        severity="warning" if allowed else "withhold",
        arms=[plan.baseline] if plan.baseline in arms else arms,
        message=_MESSAGES[first.rule].format(arms=" and ".join(arms), where=place, example=first.example),
        cure=_CLIENT_ALLOWED if allowed else _CURES[first.rule],
    )


def _quality_finding(cells: list[QualityCell], plan: Plan) -> Finding:
    """It withholds the comparisons of an arm, and names the first of its load points; `cells` are all of one rule."""
    first, quality = cells[0], cells[0].quality
    arm, name, least = first.arm, quality.name, "least" if quality.better == "more" else "most"
    place = plan.load_points[first.point].label
    place += f", and at {plural(len(cells) - 1, 'more load point')}" if len(cells) > 1 else ""
    if first.rule == "unequal_quality":
        message = (
            f"The answers are not equally good: {quality.text(first.value)} of {arm} against {first.of_baseline:.4g} "
            f"of {plan.baseline} ({place}), further apart than the tolerance of {quality.tolerance:g}."
        )
        cure = f"Tune the arms until their {name} is equal, or set [load.pack] tolerance; then compare their speed."
    else:
        message = f"{quality.text(first.value)} of {arm} ({place}) is not the {quality.at_least:g} that the study asks "
        message += f"for at {least}."
        cure = f"Tune the arm until it reaches that {name}, or change [load.pack] at_least."
    return Finding(rule=first.rule, severity="withhold", arms=[arm], message=message, cure=cure)


def _carry_over_findings(result: StudyResult) -> Iterator[Finding]:
    """One warning for each comparison that carry-over moves by more than the margin, as far as is established."""
    for shift in result.carry_over_shifts:
        moved = shift.difference
        if moved is None or moved.low is None or moved.high is None or abs(moved.value) <= result.margin:
            continue
        if moved.low > 0 or moved.high < 0:
            place = "the mean" if shift.load_point is None else result.load_points[shift.load_point].label
            yield Finding(
                rule="carry_over",
                severity="warning",
                arms=[shift.arm],
                message=f"What slices leave behind for the next one moves {shift.arm} against {shift.baseline} by "
                f"{signed(moved.value)} ({place}, 95% interval {interval_text(moved)}): the arms do not "
                "lose the same to each other.",
                cure='Run the study without slices ([load] interleave = "off"), or with longer ones.',
            )


def _notes(result: StudyResult) -> Iterator[str]:
    if result.identical_arms:
        yield "The study declares no difference between its arms: this is an A/A study, a check of the method."
    for claim in result.primary:
        for part in claim.read:
            yield from _claim_notes(part)
        own = result.claims(claim.arm)
        tally = Counter(entry.verdict for entry in own)
        if len(set(tally) & {"better", "worse", "equivalent"}) > 1:
            counts = ", ".join(f"{word} at {number}" for word, number in tally.most_common())
            yield (
                f"The load points differ, {claim.arm} against {claim.baseline}: {counts} of {len(own)}; "
                "read them one by one, the mean alone would mislead."
            )
    for arm, blocks in result.left.items():
        yield (
            f"{arm} left after {plural(blocks, 'block')}, for all its claims were decided: its verdict, interval and "
            "figures rest on these blocks, and the other claims share the errors of the looks as if it had stayed."
        )


def _start_notes(plan: Plan, trials: Sequence[Trial]) -> Iterator[str]:
    """One sentence for each arm whose server did not always start at the first attempt."""
    for arm in plan.arms:
        own = [trial for trial in trials if trial.arm == arm and trial.start_failures]
        failed = sum(trial.never_started for trial in own)
        if own:
            yield (
                f"The server of {arm} did not start at the first attempt in {plural(len(own), 'trial')}; the second "
                f"attempt failed as well in {failed} of them. The server's words: {own[-1].start_failures[-1]}."
            )


def earlier_notes(plan: Plan) -> list[str]:
    """One sentence if studies of the same question were there when this one began."""
    if not plan.earlier:
        return []
    told = ", ".join(f"{each.directory} ({each.blocks} of {plural(each.planned, 'block')})" for each in plan.earlier)
    return [
        f"This is try {len(plan.earlier) + 1} of this question in its results directory; earlier: {told}. Every try "
        "has its own 5%: a verdict chosen from several errs more often."
    ]


def interruption_notes(plan: Plan, interruptions: Sequence[Interruption]) -> list[str]:
    """How many trials of each arm a person ended, and whether that is unevenly spread."""
    by_arm = Counter(trial.arm for each in interruptions for trial in each.trials)
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
    """For each decided difference, one sentence on the costs that differ clearly, those that fit it first."""
    what = transaction(result.load_points)
    single = all(cost.load_point is not None for cost in result.costs)
    clear = [each for each in result.costs if (each.load_point is None or single) and clearly(each, result.margin)]
    costs = [(each, each.difference.value, text) for each in clear if each.difference and (text := cost_text(each))]
    costs.sort(key=lambda found: -abs(math.log1p(max(found[1], -0.9999))))
    for claim in result.primary:
        own = [(value < 0, f"{cost.what} {text}") for cost, value, text in costs if cost.arm == claim.arm]
        if claim.verdict not in ("better", "worse") or not own:
            continue
        fits = ", ".join(text for is_less, text in own if is_less == (claim.verdict == "better"))
        against = ", ".join(text for is_less, text in own if is_less != (claim.verdict == "better"))
        parts = [f"with the effect moved {fits}" if fits else "no cost that is known moved with the effect"]
        parts += [f"against it {against}"] if against else []
        yield f"Per {what}, {claim.arm} against {claim.baseline}: {'; '.join(parts)}."


def _voided_notes(voided: Sequence[int]) -> list[str]:
    """A note on the blocks that an earlier version set aside."""
    if not voided:
        return []
    return [
        f"An earlier version of pgtrial found the machine disturbed, set {plural(len(voided), 'block')} aside and ran "
        f"the same order again: {', '.join(str(block + 1) for block in voided)}. The trials are in voided/."
    ]
