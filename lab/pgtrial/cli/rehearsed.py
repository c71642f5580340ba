"""Prints whether PostgreSQL plans the statements of the load in the same way on all arms, after a rehearsal, in which
the load runs once on each arm."""

from __future__ import annotations

from pgtrial.cli.output import line, warn
from pgtrial.cli.terminal import Terminal, for_terminal
from pgtrial.conduct.preparation.rehearsed_plans import ComparedPlans, RehearsedPlans
from pgtrial.model.records.plan import Plan
from pgtrial.model.units import plural
from pgtrial.report.tables.plans import side_by_side
from pgtrial.verdict.plans import own_statements
from pgtrial.verdict.rules.case import listed


def show_plans(plan: Plan, plans: RehearsedPlans) -> None:
    """Prints which plans differ between the arms, and warns if the load does not use the setting in which the arms
    differ."""
    compared = plans.compare(plan)
    known = [one for one in compared if one.plans]
    alike = [one for one in known if not one.differing]
    if known and len(alike) == len(compared):
        line(f"plans: same plan on all arms, {_how_many(alike[0])}")
    else:
        for one in alike:
            line(f"plans: same plan on {plan.baseline} and {one.arm}, {_how_many(one)}")
    for one in known:
        if one.differing:
            _show_differing(plan.baseline, one)
    if plan.load_points[0].of_arms:
        for together in own_statements(plans.by_arm):
            shown = [statement.plan or ["EXPLAIN shows no plan"] for statement in together.values()]
            line("plans of the statements that not all arms send:")
            Terminal().print(for_terminal(side_by_side("", list(together), shown)))
    for one in compared:
        if not one.plans and not plans.unlisted and not plan.load_points[0].of_arms:
            line(f"plans: the plans of {plan.baseline} and {one.arm} are not known before the first block")
    if plans.unlisted:
        names = listed(sorted(plans.unlisted))
        line(f"plans: the statements of {names} become known in the first block; the report then compares their plans")
    for one in compared:
        if one.unused is not None and (sentence := one.never_used(plan.baseline)) is not None:
            (warn if one.unused.everything else line)(sentence)


def _how_many(one: ComparedPlans) -> str:
    if len(one.plans) == one.statements:
        return plural(one.statements, "statement")
    return f"{len(one.plans)} of {plural(one.statements, 'statement')}; EXPLAIN shows none of the others"


def _show_differing(baseline: str, one: ComparedPlans) -> None:
    for text, pair in one.differing.items():
        line(f"plans: {one.arm} has another plan than {baseline} for {text}")
        if pair.kinds_differ:
            line(f"plans: {baseline} takes a {pair.base.chosen} plan, {one.arm} a {pair.other.chosen} plan")
        Terminal().print(for_terminal(side_by_side("", (baseline, one.arm), pair.plans)))
    if same := len(one.plans) - len(one.differing):
        line(f"plans: same plan on {baseline} and {one.arm} for {plural(same, 'other statement')}")
