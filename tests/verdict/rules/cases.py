"""Studies, facts and trials as the audit's rules see them, made by hand."""

from __future__ import annotations

from pgtrial.model.records.facts import Facts, Finding
from tests.verdict.studies import POINT, make_plan, noisy, run

__all__ = ["POINT", "facts", "named", "plan_of", "rate_fits_time", "trials_of"]


def plan_of(declared=(), **options):
    """Arms A and B; `declared` is what the study says of B."""
    plan = make_plan(("A", "B"), **options)
    return plan.model_copy(update={"declared": {"A": [], "B": list(declared)}})


def trials_of(plan, change):
    """Returns a completed trial for each planned one, updated with the fields that `change(trial)` returns."""
    return [trial.model_copy(update=change(trial)) for trial in run(plan, noisy({}))]


def facts(**groups):
    """Returns the facts of both arms: `facts(A={...}, B={...})`."""
    return {arm: Facts(arm=arm, collected="2026-11-20T14:12:00Z", facts=content) for arm, content in groups.items()}


def named(findings: list[Finding]) -> set[tuple[str, str]]:
    """Returns rule and severity of each finding."""
    return {(finding.rule, finding.severity) for finding in findings}


def rate_fits_time(rates) -> bool:
    """True if a measured rate of flushes fits the time of one flush, given that both numbers are rounded."""
    slowest, fastest = (1e6 / (rates["flush_us"] + off) for off in (0.051, -0.051))
    return slowest - 0.501 <= rates["flushes_per_s"] <= fastest + 0.501
