"""What facts and trials say about fairness: every rule of the audit, listed here, and the findings of all of them.

The rules over facts look at what the arms are, once, before most trials are there. Those over trials look at what
happened, and are evaluated anew from the stored files whenever a study is analysed: they are pure, and what was not
recorded is no finding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from pgtrial.evidence.audit import (
    cache,
    clocks,
    differences,
    durability,
    fleet,
    flush,
    hosts,
    hygiene,
    network,
    noise,
    tables,
)
from pgtrial.evidence.audit.cases import Case
from pgtrial.model.records.study import Audit, Facts, Finding, Plan, Trial
from pgtrial.model.study.spec import StudySpec

RULES: tuple[Callable[[Case], Iterable[Finding]], ...] = (
    clocks.clock_of_the_servers_host,
    hygiene.debug_settings,
    differences.unlike_deployments,
    network.unequal_network_path,
    network.client_on_the_servers_host,
    differences.undeclared_differences,
    differences.following_differences,
    differences.swapped_places,
    differences.data_checksums,
    differences.locale,
    durability.unequal_durability,
    durability.not_durable,
    hosts.emulated_machine,
    flush.suspicious_flush,
    flush.unequal_flush,
    hosts.unequal_hosts,
    hygiene.transparent_huge_pages,
    hygiene.debug_build,
    hygiene.pending_restart,
    hygiene.frequency_governor,
    hygiene.fixed_layout,
    hosts.another_host,
)
"""Over the facts of the arms."""

TRIAL_RULES: tuple[Callable[[Case], Iterable[Finding]], ...] = (
    tables.unequal_tables,
    tables.dead_tuples,
    cache.data_larger_than_cache,
    clocks.wrong_clocks_of_the_fleet,
    clocks.unsure_clocks_of_the_fleet,
    fleet.slow_machine,
    fleet.far_machine,
    fleet.lost_machine,
    fleet.uneven_start,
    fleet.fleet_on_the_servers_host,
    network.unequal_round_trips,
    network.not_permitted,
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
    case = Case(plan, facts, spec, deployments or {})
    return Audit(findings=_by_severity(finding for rule in RULES for finding in rule(case)))


def audit_trials(plan: Plan, facts: Mapping[str, Facts], trials: Sequence[Trial]) -> list[Finding]:
    """The findings of all rules over the trials, the gravest first."""
    case = Case(plan, facts, trials=sorted(trials, key=lambda trial: trial.index))
    return _by_severity(finding for rule in TRIAL_RULES for finding in rule(case))


def whole_audit(stored: Audit | None, plan: Plan, facts: Mapping[str, Facts], trials: Sequence[Trial]) -> Audit | None:
    """The stored audit of the facts with what the trials add; None where there is neither."""
    found = audit_trials(plan, facts, trials)
    if stored is None and not found:
        return None
    return Audit(findings=[*(stored.findings if stored else []), *found])


def _by_severity(findings: Iterable[Finding]) -> list[Finding]:
    return sorted(findings, key=lambda finding: (_SEVERITIES.index(finding.severity), finding.rule))
