"""The audit, which checks whether the comparison of a study is fair: all its rules, in a module for each topic, and the
findings of these rules.

Some rules read only facts, which describe the arms; they are evaluated once, before most trials have run. Rules over
trials read what happened in the trials, and may read the facts too; they are evaluated again from the stored files
whenever a study is analysed. All rules are pure functions. If a value was not recorded, a rule finds nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pgtrial.model.records.facts import Audit, Facts, Finding
from pgtrial.model.records.plan import Plan
from pgtrial.model.study.design import Design
from pgtrial.verdict.rules import (
    answers,
    clocks,
    differences,
    durability,
    failures,
    fleet,
    hosts,
    hygiene,
    load,
    metrics,
    network,
    order,
    planning,
    programs,
    quality,
    rollbacks,
    rows,
    scripts,
    slices,
    suites,
    tables,
    use,
)
from pgtrial.verdict.rules.case import Case, Concern, Rule

_TOPICS = (
    answers,
    clocks,
    differences,
    durability,
    failures,
    fleet,
    hosts,
    hygiene,
    load,
    metrics,
    network,
    order,
    planning,
    programs,
    quality,
    rollbacks,
    rows,
    scripts,
    slices,
    suites,
    tables,
    use,
)

RULES = [rule for topic in _TOPICS for rule in vars(topic).values() if isinstance(rule, Rule)]
"""All rules of the audit."""

_TITLES = {rule.name: rule.title for rule in RULES}

GRAVITY = ("withhold", "warning", "info")
"""The severities of findings, beginning with the gravest. `withhold` forbids a verdict, `warning` asks the reader for
caution, and `info` has no consequence."""


def audit(
    plan: Plan,
    facts: Mapping[str, Facts],
    design: Design,
    deployments: Mapping[str, Sequence[Facts]] | None = None,
) -> Audit:
    """Returns the findings of all rules that read only facts (settings and other properties), beginning with those that
    withhold the verdict.

    If an arm runs on several deployments (servers of the same product), `facts` has the facts of one of them, by which
    the arms are compared. `deployments` has the facts of all deployments.
    """
    case = Case(plan, facts, design, deployments or {})
    return Audit(findings=by_gravity(finding for finding, _ in _found(case, over_trials=False)))


def found_in_trials(case: Case) -> list[tuple[Finding, Concern]]:
    """Returns the findings of all rules that read the stored trials, each with the concern (the problem) from which it
    was made."""
    return _found(case, over_trials=True)


def by_gravity(findings: Iterable[Finding]) -> list[Finding]:
    """Returns the findings sorted by severity, the gravest first. Findings of the same severity keep their order."""
    return sorted(findings, key=lambda finding: GRAVITY.index(finding.severity))


def title(finding: Finding) -> str:
    """Returns a finding in a few words: the title of its rule. If the rule no longer exists, returns its name."""
    return _TITLES.get(finding.rule, finding.rule.replace("_", " "))


def _found(case: Case, *, over_trials: bool) -> list[tuple[Finding, Concern]]:
    """Returns the findings of the rules that read the stored trials (if `over_trials` is true) or of the rules that
    read only facts (settings and other properties), in the order of the rules' names."""
    asked = sorted((rule for rule in RULES if rule.over_trials == over_trials), key=lambda rule: rule.name)
    return [finding for rule in asked for finding in rule.findings(case)]
