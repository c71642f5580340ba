"""The audit of a study's fairness: every rule, with a file for each topic, and the findings of all rules.

Rules over facts look at what the arms are, once, before most trials have run. Rules over trials, which may read the
facts too, look at what happened; they are evaluated again from the stored files whenever a study is analysed. Both are
pure functions, and a value that was not recorded is no finding.
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
"""The severities of findings, the gravest first."""


def audit(
    plan: Plan,
    facts: Mapping[str, Facts],
    design: Design,
    deployments: Mapping[str, Sequence[Facts]] | None = None,
) -> Audit:
    """Returns all findings over facts, those that withhold the verdict first.

    Arms are compared by one deployment of each, whose facts are in `facts`; `deployments` has the facts of all of them.
    """
    case = Case(plan, facts, design, deployments or {})
    return Audit(findings=by_gravity(finding for finding, _ in _found(case, over_trials=False)))


def found_in_trials(case: Case) -> list[tuple[Finding, Concern]]:
    """Returns the findings of all rules over the trials."""
    return _found(case, over_trials=True)


def by_gravity(findings: Iterable[Finding]) -> list[Finding]:
    """Returns the findings with the gravest first; findings of one severity keep their order."""
    return sorted(findings, key=lambda finding: GRAVITY.index(finding.severity))


def title(finding: Finding) -> str:
    """Returns a finding in a few words: the title of its rule, or the rule's name if the rule no longer exists."""
    return _TITLES.get(finding.rule, finding.rule.replace("_", " "))


def _found(case: Case, *, over_trials: bool) -> list[tuple[Finding, Concern]]:
    """Returns the findings of the rules over trials, or of those over facts, in the order of the rules' names."""
    asked = sorted((rule for rule in RULES if rule.over_trials == over_trials), key=lambda rule: rule.name)
    return [finding for rule in asked for finding in rule.findings(case)]
