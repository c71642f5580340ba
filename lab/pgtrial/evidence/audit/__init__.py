"""Whether the comparison is fair: every rule of the audit, a topic in each file, and the findings of all of them.

Rules over facts look at what the arms are, once, before most trials are there. Rules over trials, which may read the
facts too, look at what happened; they are evaluated again from the stored files whenever a study is analysed. Both are
pure functions, and a value that was not recorded is no finding.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pgtrial.evidence.audit import answers, clocks, differences, durability, fleet, hosts, hygiene, network, tables
from pgtrial.evidence.audit.case import Case, Rule
from pgtrial.model.records.facts import Audit, Facts, Finding
from pgtrial.model.records.plan import Plan
from pgtrial.model.records.trial import Trial
from pgtrial.model.study.spec import StudySpec

_TOPICS = (answers, clocks, differences, durability, fleet, hosts, hygiene, network, tables)

RULES = [rule for topic in _TOPICS for rule in vars(topic).values() if isinstance(rule, Rule)]
"""Every rule of these files."""

TITLES = {rule.name: rule.title for rule in RULES}
"""What each rule finds, in a few words."""

GRAVITY = ("withhold", "warning", "info")
"""The gravest first."""


def audit(
    plan: Plan,
    facts: Mapping[str, Facts],
    spec: StudySpec,
    deployments: Mapping[str, Sequence[Facts]] | None = None,
) -> Audit:
    """All findings, those that withhold the verdict first.

    Arms are compared by one deployment of each, whose facts are in `facts`; `deployments` has those of all.
    """
    return Audit(findings=_findings(Case(plan, facts, spec, deployments or {}), over_trials=False))


def audit_trials(plan: Plan, facts: Mapping[str, Facts], trials: Sequence[Trial]) -> list[Finding]:
    """The findings of all rules over the trials, the gravest first."""
    case = Case(plan, facts, trials=sorted(trials, key=lambda trial: trial.index))
    return _findings(case, over_trials=True)


def whole_audit(stored: Audit | None, plan: Plan, facts: Mapping[str, Facts], trials: Sequence[Trial]) -> Audit | None:
    """The stored audit of the facts with the findings over the trials; None where there is neither."""
    found = audit_trials(plan, facts, trials)
    if stored is None and not found:
        return None
    return Audit(findings=[*(stored.findings if stored else []), *found])


def _findings(case: Case, *, over_trials: bool) -> list[Finding]:
    findings = [finding for rule in RULES if rule.over_trials == over_trials for finding in rule(case)]
    return sorted(findings, key=lambda finding: (GRAVITY.index(finding.severity), finding.rule))
