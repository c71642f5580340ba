"""From a plan, its stored trials and the audit to the study's result; the same files give the same result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

from pgtrial.model.records.facts import Audit, Facts, Finding
from pgtrial.model.records.plan import Plan
from pgtrial.model.records.results import Claim, PlannedLook, StudyResult
from pgtrial.model.records.trial import Trial
from pgtrial.model.units import grouped
from pgtrial.statistics import levels
from pgtrial.statistics.carry_over import Slices, carry_over, cell_speeds, shifts
from pgtrial.statistics.changes import Changes, Seconds, regimes_of
from pgtrial.statistics.claims import Subject, make_claim, subjects
from pgtrial.statistics.costs import costs
from pgtrial.statistics.criteria import criteria
from pgtrial.statistics.precision import under_way_s
from pgtrial.statistics.ratios import Grid
from pgtrial.statistics.statements import statement_claims
from pgtrial.statistics.where_it_ran import where_it_ran
from pgtrial.statistics.withheld import quality_cells, spoilt_cells

_AS_PLANNED = ("name", "pgtrial", "baseline", "arms", "load_points", "margin", "scope", "seed", "left", "deployments")
"""Keys of a result that are those of its plan."""


def analyse_study(
    plan: Plan,
    trials: Sequence[Trial],
    audit: Audit | None = None,
    seconds: Seconds | None = None,
    *,
    facts: Mapping[str, Facts] | None = None,
    slices: Slices | None = None,
) -> StudyResult:
    """The result of the trials so far, without its sentences (see `report/verdict.py`).

    `seconds` holds each trial's committed transactions per second of the measured part; without it the steady state is
    not checked and no change of regime is seen. `facts` holds, by arm, where its server is. Without the `slices` of
    interleaved trials nothing is known of carry-over. Trials may be missing: only complete blocks count.
    """
    grid = Grid(plan, trials)
    overall, at_points = subjects(plan)
    primary_family, secondary_family = overall[0].family, at_points[0].family
    cells = [*spoilt_cells(grid), *quality_cells(grid)]
    block_s = _block_seconds(plan, grid)
    changes = Changes(grid, regimes_of(grid.trials, seconds or {}), seconds)
    speeds = cell_speeds(grid, slices or {})

    def withheld(arm: str, point: int | None = None) -> bool:
        by_audit = audit is not None and any(withholds(finding, arm, plan.baseline) for finding in audit.findings)
        return by_audit or any(cell.withholds(plan, arm, point) for cell in cells)

    def claims(of: Sequence[Subject]) -> list[Claim]:
        return [make_claim(grid, changes, each, block_s, withheld=withheld(each.arm, each.point)) for each in of]

    primary = claims(overall)
    without_verdict = {arm for arm in plan.others if withheld(arm)}
    failures = [levels.failures(grid, arm) for arm in plan.arms]
    return StudyResult(
        **{key: getattr(plan, key) for key in _AS_PLANNED},
        blocks_complete=len(grid.counted),
        blocks_planned=plan.max_blocks,
        trials_stored=len(grid.trials),
        trials_planned=len(plan.wanted),
        block_s=block_s,
        identical_arms=not any(plan.declared.values()),
        primary=primary,
        by_load_point=claims(at_points),
        levels=[levels.level(grid, changes.cell(arm, point)) for point in grid.points for arm in plan.arms],
        failures=failures,
        failures_lead=levels.leading_failures(grid, failures, primary_family),
        failed_trials=levels.failed_trials(grid),
        steadiness=changes.steadiness(),
        regimes=changes.cells(),
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
        costs=costs(grid, primary, secondary_family),
        carry_over=carry_over(grid, speeds, secondary_family),
        carry_over_shifts=shifts(grid, speeds, primary_family, secondary_family),
        criteria=criteria(grid, primary, without_verdict),
        statements=statement_claims(grid, without_verdict),
        where=where_it_ran(plan, grid.trials, facts or {}),
    )


def withholds(finding: Finding, arm: str, baseline: str) -> bool:
    """Whether a finding forbids a verdict on an arm: a grave one that names it, or no other arm than the baseline."""
    return finding.severity == "withhold" and (arm in finding.arms or not set(finding.arms) - {baseline})


def _block_seconds(plan: Plan, grid: Grid) -> float:
    """Wall time of a block: the median trial so far, else the plan's estimate, times the trials of a block.

    Trials that alternate take their time together.
    """
    arms, points = len(plan.arms), len(plan.load_points)
    if not grid.trials:
        return plan.trial_estimate_s * arms * points
    if plan.interleaving is None:
        return median(under_way_s([trial]) for trial in grid.trials) * arms * points
    together = grouped(((trial.block, grid.point_of(trial)), trial) for trial in grid.trials)
    return median(map(under_way_s, together.values())) * points
