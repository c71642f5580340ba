"""Computes the result of a study from its plan, facts and trials. The same files always give the same result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pgtrial.model.records.claims import Claim
from pgtrial.model.records.facts import Finding
from pgtrial.model.records.plan import Plan
from pgtrial.model.records.results import PlannedLook, StudyResult
from pgtrial.verdict import levels
from pgtrial.verdict.carry_over import carry_over
from pgtrial.verdict.changes import Changes, may_change, regimes_of
from pgtrial.verdict.claims import make_claim
from pgtrial.verdict.family import Subject, primary_sharing, sharing, subjects
from pgtrial.verdict.grid import Grid
from pgtrial.verdict.instructions import compare_instructions
from pgtrial.verdict.metrics import FAMILIES
from pgtrial.verdict.pace import block_time
from pgtrial.verdict.plans import plan_differences
from pgtrial.verdict.rules import by_gravity, found_in_trials
from pgtrial.verdict.rules.case import Case
from pgtrial.verdict.rules.use import UNUSED, beside_the_claims
from pgtrial.verdict.screening import best_first, labels, screen_of
from pgtrial.verdict.where_it_ran import where_it_ran

_AS_PLANNED = ("name", "pgtrial", "baseline", "arms", "load_points", "margin", "scope", "seed", "left", "deployments")
"""The fields that a result copies from its plan."""


def decide(case: Case) -> StudyResult:
    """Returns the result of the stored trials, without sentences in words. Trials may be missing: only complete blocks
    count."""
    plan, grid = case.plan, case.grid
    overall, at_points = subjects(plan)
    block_s = block_time(plan, grid.trials)
    regimes = regimes_of(grid.trials, case.seconds or {}) if may_change(plan) and not plan.factors else None
    changes = Changes(grid, regimes, case.seconds)
    objections = _objections(case)

    def claims(of: Sequence[Subject]) -> list[Claim]:
        return [make_claim(grid, changes, subject, block_s, withheld=objections.forbid(subject)) for subject in of]

    primary = best_first(claims(overall)) if plan.factors else claims(overall)
    families = {} if plan.factors else {key: family(grid, primary) for key, family in FAMILIES.items()}
    failures = [levels.failures(grid, arm) for arm in plan.arms]
    return StudyResult(
        **{key: getattr(plan, key) for key in _AS_PLANNED},
        blocks_complete=len(grid.counted),
        blocks_planned=plan.max_blocks,
        trials_stored=len(grid.trials),
        trials_planned=len(plan.wanted),
        block_s=block_s,
        identical_arms=not any(plan.declared.values()),
        withheld=objections.reasons(),
        findings=beside_the_claims(objections.findings, case, primary),
        primary=primary,
        by_load_point=claims(at_points),
        levels=[levels.level(grid, changes.cell(arm, point)) for point in grid.points for arm in plan.arms]
        if not plan.factors
        else [],
        failures=failures,
        failures_lead=levels.leading_failures(grid, failures),
        failed_trials=levels.failed_trials(grid),
        steadiness=changes.steadiness(),
        regimes=changes.cells(),
        looks=_looks(grid),
        interruptions=list(case.interruptions),
        carry_over=carry_over(grid, case.speeds),
        carry_over_shifts=case.shifts,
        plans=plan_differences(plan, grid.trials) if not plan.factors else [],
        instructions=compare_instructions(plan, case.instructions),
        where=where_it_ran(plan, grid.trials, case.facts),
        screen=screen_of(grid, primary) if plan.factors else None,
        **families,
    )


def withholds(finding: Finding, arm: str, baseline: str) -> bool:
    """True if a finding of the audit forbids a verdict on an arm. Such a finding has the severity `withhold`. It names
    the arm, or no arm other than the baseline, in which case no arm can be compared with the baseline."""
    return finding.severity == "withhold" and (arm in finding.arms or not set(finding.arms) - {baseline})


_OF_ONE_SETUP = frozenset(
    (UNUSED, "other_defaults", "planned_each_time", "plans_vary", "data_larger_than_cache", "unequal_tables")
)
"""The rules of the audit that take all trials of an arm for trials of one set-up. They are left out for a screening
study, whose arms have other set-ups in each block. All other findings apply to all of its factors, unless they name a
factor by its second level."""


@dataclass(frozen=True)
class _Objections:
    """The findings of all rules of the audit, with the arms and load points on which they forbid a verdict."""

    plan: Plan
    findings: list[Finding]
    """All findings, with the gravest first."""
    everywhere: list[Finding]
    """The findings that are not limited to single load points. They apply to all comparisons of the arms that they
    name."""
    cells: set[tuple[str, int]]
    """The arms and load points (by their index) at which a rule of the audit forbids a verdict."""

    def forbid(self, about: Subject) -> bool:
        """True if a finding forbids a verdict on the arm of this subject, at the subject's load point or, if the
        subject is the mean over all load points, at any load point."""
        baseline = self.plan.baseline
        return any(withholds(finding, about.arm, baseline) for finding in self.everywhere) or any(
            arm in (about.arm, baseline) and about.point in (None, point) for arm, point in self.cells
        )

    def reasons(self) -> list[str]:
        """Returns the reasons why there is no verdict, arm by arm. A sentence that several arms share occurs once."""
        compared = labels(self.plan) if self.plan.factors else self.plan.others
        of_arms = (reasons(self.findings, arm, self.plan.baseline) for arm in compared)
        return list(dict.fromkeys(reason for of_arm in of_arms for reason in of_arm))


def reasons(findings: Sequence[Finding], arm: str, baseline: str) -> list[str]:
    """Returns the reasons why there is no verdict on an arm: what was found, and what the user can do about it."""
    return [f"{finding.message} {finding.cure}" for finding in findings if withholds(finding, arm, baseline)]


def _objections(case: Case) -> _Objections:
    stored = case.audit.findings if case.audit is not None else []
    concerns = found_in_trials(case)
    if case.plan.factors:
        found = [*stored, *(finding for finding, _ in concerns)]
        factors = set(labels(case.plan))
        findings = [
            finding.model_copy(update={"arms": [arm for arm in finding.arms if arm in factors]})
            for finding in found
            if finding.rule not in _OF_ONE_SETUP
        ]
        return _Objections(case.plan, by_gravity(findings), everywhere=findings, cells=set())
    grave = [concern for _, concern in concerns if concern.severity == "withhold"]
    return _Objections(
        plan=case.plan,
        findings=by_gravity([*stored, *(finding for finding, _ in concerns)]),
        everywhere=[*stored, *(finding for finding, concern in concerns if not concern.cells)],
        cells={cell for concern in grave for cell in concern.cells},
    )


def _looks(grid: Grid) -> list[PlannedLook]:
    units, primary, at_points = grid.units, primary_sharing(grid.plan), sharing(grid.plan)
    reached = len(units.complete(grid.counted))
    return [
        PlannedLook(
            blocks=look.blocks,
            alpha=look.alpha,
            reached=look.blocks <= reached,
            primary_possible=units.can_decide(look, primary),
            secondary_possible=units.can_decide(look, at_points),
        )
        for look in units.looks()
    ]
