"""Every rule of the audit, and the findings of all of them.

Rules over facts look at what the arms are, once, before most trials are there. Rules over trials, which may read the
facts too, look at what happened; they are evaluated again from the stored files whenever a study is analysed. Both are
pure functions, and a value that was not recorded is no finding.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pgtrial.evidence.audit import clocks, differences, durability, fleet, hosts, hygiene, network, noise, tables
from pgtrial.evidence.audit.case import Case, Rule
from pgtrial.model.records.study import Audit, Facts, Finding, Plan, Trial
from pgtrial.model.study.spec import StudySpec

RULES = (
    clocks.clock_of_the_servers_host,
    hygiene.debug_settings,
    differences.unlike_deployments,
    network.unequal_network_path,
    hosts.client_on_the_servers_host,
    differences.undeclared_differences,
    differences.following_differences,
    differences.swapped_places,
    differences.data_checksums,
    differences.locale,
    durability.unequal_durability,
    durability.not_durable,
    hosts.emulated_machine,
    durability.suspicious_flush,
    durability.unequal_flush,
    hosts.unequal_hosts,
    hygiene.transparent_huge_pages,
    hygiene.debug_build,
    hygiene.small_build,
    hygiene.pending_restart,
    hygiene.frequency_governor,
    hygiene.fixed_layout,
    hosts.another_host,
)
"""Over the facts of the arms."""

TRIAL_RULES = (
    tables.unequal_tables,
    tables.dead_tuples,
    tables.data_larger_than_cache,
    clocks.wrong_clocks_of_the_fleet,
    clocks.unsure_clocks_of_the_fleet,
    fleet.slow_machine,
    fleet.far_machine,
    fleet.lost_machine,
    fleet.uneven_start,
    hosts.fleet_on_the_servers_host,
    network.unequal_round_trips,
    hygiene.not_permitted,
    tables.unequal_checkpoints,
    tables.unequal_autovacuum,
    noise.noisy_host,
)
"""Over the stored trials."""

_SEVERITIES = ("withhold", "warning", "info")
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
    return Audit(findings=_findings(RULES, Case(plan, facts, spec, deployments or {})))


def audit_trials(plan: Plan, facts: Mapping[str, Facts], trials: Sequence[Trial]) -> list[Finding]:
    """The findings of all rules over the trials, the gravest first."""
    return _findings(TRIAL_RULES, Case(plan, facts, trials=sorted(trials, key=lambda trial: trial.index)))


def whole_audit(stored: Audit | None, plan: Plan, facts: Mapping[str, Facts], trials: Sequence[Trial]) -> Audit | None:
    """The stored audit of the facts with the findings over the trials; None where there is neither."""
    found = audit_trials(plan, facts, trials)
    if stored is None and not found:
        return None
    return Audit(findings=[*(stored.findings if stored else []), *found])


def _findings(rules: Iterable[Rule], case: Case) -> list[Finding]:
    findings = [finding for rule in rules for finding in rule(case)]
    return sorted(findings, key=lambda finding: (_SEVERITIES.index(finding.severity), finding.rule))
