"""From a plan, its stored trials and the audit to the study's result; the same files always give the same result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from statistics import median

from pgtrial.model.records.results import Claim, PlannedLook, StudyResult
from pgtrial.model.records.study import Audit, Canary, Facts, Finding, Plan, Trial
from pgtrial.model.units import percent, plural
from pgtrial.statistics import levels, words
from pgtrial.statistics.canaries import disturbance_notes, disturbed
from pgtrial.statistics.changes import Changes
from pgtrial.statistics.claims import Subject, make_claim
from pgtrial.statistics.costs import costs, moved_with
from pgtrial.statistics.criteria import criteria
from pgtrial.statistics.ratios import Grid
from pgtrial.statistics.spoilt import spoilt_cells, spoilt_findings
from pgtrial.statistics.steady import Seconds, steadiness
from pgtrial.statistics.where_it_ran import where_it_ran

__all__ = ["StudyResult", "analyse_study"]

_GRAVITY = ("withhold", "warning", "info")


def analyse_study(
    plan: Plan,
    trials: Sequence[Trial],
    audit: Audit | None = None,
    seconds: Seconds | None = None,
    canaries: Sequence[Canary] = (),
    *,
    facts: Mapping[str, Facts] | None = None,
) -> StudyResult:
    """Everything that the measurements say so far.

    `seconds` holds each trial's committed transactions per second of the measured part; without it the steady state is
    not checked and no change of regime is seen. `facts` tell by arm where its server is. Trials may be missing: only
    complete blocks count.
    """
    grid = Grid(plan, trials)
    others = [arm for arm in plan.arms if arm != plan.baseline]
    points = range(len(plan.load_points))
    primary_family = len(others)
    secondary_family = len(points) if len(points) > 1 else primary_family
    spoilt = spoilt_cells(grid)
    audited = audit.findings if audit else []
    findings = sorted([*audited, *spoilt_findings(spoilt, plan)], key=lambda finding: _GRAVITY.index(finding.severity))
    withheld = {arm: _reasons(findings, arm, plan.baseline) for arm in others}
    block_s = _block_seconds(plan, grid)

    changes = Changes(grid, seconds)
    checked = changes.seconds

    def claim(arm: str, point: int | None, family: int) -> Claim:
        if point is None:
            reasons = bool(withheld[arm])
        else:
            # spoilt trials speak against their own load point only, and against the mean that holds it
            here = [cell for cell in spoilt if cell.point == point]
            reasons = bool(_reasons([*audited, *spoilt_findings(here, plan)], arm, plan.baseline))
        return make_claim(grid, changes, Subject(arm, point, family), block_s, withheld=reasons)

    primary = [claim(arm, None, primary_family) for arm in others]
    by_load_point = [claim(arm, point, secondary_family) for arm in others for point in points]
    cost = costs(grid, primary, secondary_family)
    failures = [levels.failures(grid, arm) for arm in plan.arms]
    leading = levels.leading_failures(grid, failures, primary_family)
    regimes = changes.told()
    unchanged = (
        {t.index: checked[t.index] for t in grid.trials if t.index in checked and not changes.changes(t)}
        if checked is not None
        else None
    )
    steady = [steadiness(grid, arm, unchanged) for arm in plan.arms] if unchanged is not None else []
    identical = not any(plan.declared.values())
    return StudyResult(
        name=plan.name,
        pgtrial=plan.pgtrial,
        baseline=plan.baseline,
        arms=plan.arms,
        load_points=plan.load_points,
        margin=plan.margin,
        scope=plan.scope,
        seed=plan.seed,
        blocks_complete=len(grid.counted),
        blocks_planned=plan.max_blocks,
        trials_stored=len(grid.trials),
        trials_planned=len(plan.trials),
        block_s=block_s,
        identical_arms=identical,
        sentences=[
            words.sentence(
                c, plan, counts=failures, leading=leading, steady=steady, regimes=regimes, withheld=withheld[c.arm]
            )
            for c in primary
        ],
        notes=[*_notes(plan, primary, by_load_point, identical=identical), *disturbance_notes(plan, canaries)],
        withheld=list(dict.fromkeys(reason for reasons in withheld.values() for reason in reasons)),
        findings=findings,
        primary=primary,
        by_load_point=by_load_point,
        levels=[levels.level(grid, changes.cell(arm, point)) for point in points for arm in plan.arms],
        failures=failures,
        failures_lead=leading,
        failed_trials=levels.failed_trials(grid),
        steadiness=steady,
        regimes=regimes,
        looks=[
            PlannedLook(
                blocks=look.blocks,
                alpha=look.alpha,
                reached=look.blocks <= len(grid.units.complete(grid.counted)),
                primary_possible=grid.units.can_decide(look, primary_family),
                secondary_possible=grid.units.can_decide(look, secondary_family),
            )
            for look in grid.units.looks()
        ],
        deployments=plan.deployments,
        voids=disturbed(canaries, "void"),
        noisy_blocks=disturbed(canaries, "noisy"),
        costs=cost,
        moved=moved_with(primary, cost, plan.margin),
        criteria=criteria(grid, primary, withheld),
        where=where_it_ran(plan, grid.trials, facts or {}),
    )


def _reasons(findings: list[Finding], arm: str, baseline: str) -> list[str]:
    """Why a comparison is withheld: grave findings that name the arm, or no other arm than the baseline."""
    return [
        f"{finding.message} {finding.cure}"
        for finding in findings
        if finding.severity == "withhold" and (arm in finding.arms or not set(finding.arms) - {baseline})
    ]


def _block_seconds(plan: Plan, grid: Grid) -> float:
    """Wall time of a block: the median trial so far, else the plan's estimate, times the trials of a block."""
    spent = [
        (datetime.fromisoformat(trial.ended) - datetime.fromisoformat(trial.started)).total_seconds()
        for trial in grid.trials
    ]
    return (median(spent) if spent else plan.trial_estimate_s) * len(plan.arms) * len(plan.load_points)


def _notes(plan: Plan, primary: list[Claim], by_load_point: list[Claim], *, identical: bool) -> list[str]:
    notes = []
    if identical:
        notes.append("The study declares no difference between its arms: this is an A/A study, a check of the method.")
    for claim in primary:
        for part in claim.read:
            notes += _claim_notes(part, plan)
        own = [entry for entry in by_load_point if entry.arm == claim.arm]
        tally = Counter(entry.verdict for entry in own)
        if len(set(tally) & {"better", "worse", "equivalent"}) > 1:
            told = ", ".join(f"{word} at {number}" for word, number in tally.most_common())
            notes.append(
                f"The load points differ, {claim.arm} against {claim.baseline}: {told} of {len(own)}; "
                "read them one by one, the mean alone would mislead."
            )
    return notes


def _claim_notes(claim: Claim, plan: Plan) -> list[str]:
    notes = []
    pair = f"{claim.arm} against {claim.baseline}{words.in_regime(claim)}"
    if claim.unstable and claim.mean and claim.difference:
        numbers = ", ".join(str(block + 1) for block in claim.odd_blocks)
        odd = f" ({claim.unit}s {numbers})" if numbers else ""
        totals = f"; in total, {percent(claim.totals, sign=True)} transactions" if claim.totals is not None else ""
        notes.append(
            f"The arms differ in stability, {pair}: rare odd {claim.unit}s{odd} pull the mean to "
            f"{percent(claim.mean.value, sign=True)} while the typical {claim.unit} has "
            f"{percent(claim.difference.value, sign=True)}{totals}."
        )
    if claim.changing:
        notes.append(
            f"The effect changes during the study, {pair}: the verdict of {claim.blocks} {claim.unit}s is not "
            f"carried by all {claim.looks[-1].blocks}; look at the {claim.unit}s one by one."
        )
    provisional = sum(not ratio.counted or ratio.log_ratio is None for ratio in claim.ratios)
    late = len(claim.ratios) - provisional - claim.blocks
    if claim.looks and late > 0:
        notes.append(
            f"{plural(late, claim.unit)} after the last planned look, {pair}: shown as provisional, not part of "
            f"the interval of {claim.blocks} {claim.unit}s."
        )
    return notes
