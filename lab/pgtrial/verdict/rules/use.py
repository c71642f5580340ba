"""Rules that check whether the load used the setting or the object in which the arms differ. The evidence comes from
the counters of the trials and from the plans of the statements.

A fact is a setting, object or other property of an arm, such as the value of work_mem. The file use.toml lists, for
each fact, which counters and plans show that a load uses it. There is no finding for a fact without an entry in this
file, or if its evidence was not recorded. Before the first trial only plans are known.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from typing import Any

from pgtrial.model.known_settings import KNOWN
from pgtrial.model.records import Record
from pgtrial.model.records.claims import Claim
from pgtrial.model.records.facts import Finding
from pgtrial.model.records.trial import LoadStatement, Phase, Trial
from pgtrial.model.resources import table
from pgtrial.model.units import grouped, plural
from pgtrial.verdict.plans import load_statements, plan_pairs
from pgtrial.verdict.rules.case import Case, Concern, as_shown, listed, rule


class Evidence(Record):
    """An entry of use.toml. It lists the conditions on counters and plans under which a load has used a fact (a setting
    or object in which arms may differ). The load has used the fact if all conditions hold."""

    absent: str
    """The end of a sentence in a message. It says what was missing if the conditions do not hold, so that the load
    counts as one that has not used the fact."""
    counters: Sequence[str] = ()
    per_transaction: float = 0.0
    per_trial: float = 0.0
    rows_read_sequentially: float = 0.0
    confirms: bool = False
    plan: re.Pattern[str] | None = None
    plans_differ: bool = False
    kinds_differ: bool = False
    statement: re.Pattern[str] | None = None
    tables: str | None = None
    facts_differ: str | None = None


class _Uses(Record):
    """The content of use.toml, which lists how one sees that a load uses a setting or object."""

    evidence: dict[str, Evidence]
    uses: dict[str, list[str]]


USES = _Uses.model_validate(table("use.toml", __package__))


def evidence_of(key: str) -> list[Evidence]:
    """Returns the evidence which shows that a load used a setting or object (a fact). `key` is its name, such as
    `settings.work_mem`. The result is empty if use.toml has no entry for the fact.

    If several entries match, the entry with the fact's own name is used, and otherwise the entry with the longest
    pattern.
    """
    patterns = [pattern for pattern in USES.uses if fnmatchcase(key, pattern)]
    best = max(patterns, key=lambda pattern: (pattern == key, len(pattern)), default=None)
    return [USES.evidence[name] for name in USES.uses[best]] if best is not None else []


UNUSED = "unused_difference"


@rule(UNUSED, "the load never used what differs between the arms", over_trials=True)
def unused_difference(case: Case) -> Iterator[Concern]:
    """Yields one concern (problem) for each arm with declared differences that neither its own load nor the baseline's
    load has used. If the load does not use what differs, the comparison says nothing about it."""
    for arm in case.others:
        use = _in_trials(case, arm)
        unused = unused_words(use, case.plan.declared.get(arm, [])) if use is not None else None
        if use is None or unused is None:
            continue
        cures = _CURES if _has_counters_of_rows(case) else _FORMER_CURES
        yield Concern(
            [case.baseline, arm],
            f"In {plural(use.trials, 'trial')} the load never used {unused.what} between {case.baseline} and {arm}: "
            f"{unused.names}.",
            cures[unused.everything],
            "warning" if unused.everything else "info",
        )


_CURES = {
    True: "Choose a load that uses what differs between these arms; more trials of this load would not help.",
    False: "Nothing to do: the load uses what is not named here, or that is not known.",
}
_FORMER_CURES = {
    True: "Choose a load that uses it; a difference that is found all the same has another cause.",
    False: "Nothing to do: a difference that is found has another cause than this.",
}
"""The advice for trials of older versions of pgtrial, which did not record plans for known parameter values. The stored
verdicts of such trials must be reproduced word for word."""


def _has_counters_of_rows(case: Case) -> bool:
    """True if the trials were run by a version of pgtrial that counts rows and records plans for known parameter
    values. With older trials less is known about what the load used."""
    return any("tables" in deltas for trial in case.trials for deltas in (trial.server_deltas, trial.shared_deltas))


_ALL_THE_SAME = (
    "A difference was found all the same: the load uses it in a way that does not show, or this is one of the 5 in 100 "
    "verdicts that are wrong; pgtrial rerun measures it again."
)


def beside_the_claims(findings: Sequence[Finding], case: Case, claims: Sequence[Claim]) -> list[Finding]:
    """Returns the findings, changed where they contradict the verdicts in `claims`. A finding may say that the load
    never used the difference between two arms although the arms got the verdict better or worse. The finding then gets
    another advice, since the difference must have another cause.

    P8 is the statistical rule of older versions of pgtrial. In studies that were planned with it, such a finding is
    left out instead, unless their trials are so old that they have no plans for known parameter values.
    """
    decided = {part.arm for claim in claims for part in claim.read if part.verdict in ("better", "worse")}

    def is_contradicted(finding: Finding) -> bool:
        unused = finding.rule == UNUSED and finding.severity == "warning"
        return unused and not decided.isdisjoint(finding.arms) and _has_counters_of_rows(case)

    if case.plan.spending is None:
        return [finding for finding in findings if not is_contradicted(finding)]
    return [
        finding.model_copy(update={"cure": _ALL_THE_SAME}) if is_contradicted(finding) else finding
        for finding in findings
    ]


@rule("other_defaults", "other defaults, which the load uses", over_trials=True)
def other_defaults(case: Case) -> Iterator[Concern]:
    """Yields one concern (problem) for each arm, about settings whose defaults differ, which nobody has set, and which
    do not follow from another setting."""
    defaults = [
        (difference.arm, difference)
        for difference in case.differences
        if difference.group == "settings" and difference.name not in KNOWN.parents and case.is_unset(difference)
    ]
    for arm, of_arm in grouped(defaults).items():
        use = _in_trials(case, arm)
        used = [
            f"{one.name} ({as_shown(one.baseline_value)} in {case.baseline}, {as_shown(one.value)} in {arm})"
            for one in of_arm
            if use is not None and use.uses(one.key)
        ]
        if used:
            yield Concern(
                [case.baseline, arm],
                f"By default {case.baseline} and {arm} differ in {listed(used)}. The load uses that: it is part of the "
                "difference measured.",
                "Set it in [server.settings] to compare the servers without it.",
            )


@rule("unequal_jit", "some arms cannot compile just in time", over_trials=True)
def unequal_jit(case: Case) -> Iterator[Concern]:
    """Finds servers that cannot compile plans just in time. This depends on how PostgreSQL was built, and no version or
    setting shows it."""
    using = [arm for arm in case.plan.arms if _compiles_just_in_time(case.completed(arm))]
    unable = [arm for arm in case.where("settings", "jit", "on") if _is_without_llvm(case, arm)]
    if using and unable:
        yield Concern(
            [*using, *unable],
            f"Plans of {listed(using)} are compiled just in time. The server of {listed(unable)} is built without LLVM "
            "and cannot do that: it may be a part of the difference.",
            "Set jit = off in [server.settings], or take all servers from one packager.",
        )


def _compiles_just_in_time(trials: Sequence[Trial]) -> bool:
    return any(line.startswith("JIT:") for one in load_statements(trials).values() for line in one.plan)


def _is_without_llvm(case: Case, arm: str) -> bool:
    """True if the server was configured and built without LLVM. For servers that were not built by `configure` this is
    not known, and the result is false."""
    options = case.value(arm, "server", "build_configure") or ""
    return "--" in options and "llvm" not in options


@dataclass(frozen=True)
class Unused:
    """The differences between the arms that the study declares but that the load does not use, in words."""

    names: str
    """The names of the differences, each with the reasons why it counts as unused."""
    everything: bool
    """True if the load uses none of the differences that the study declares between the arms."""

    @property
    def what(self) -> str:
        """Returns `what differs` if the load uses none of the differences that the study declares between the arms,
        otherwise `a part of what differs`."""
        return "what differs" if self.everything else "a part of what differs"


def unused_words(use: LoadUse, declared: Sequence[str]) -> Unused | None:
    """Returns those differences between the arms, out of the ones that the study declares, that the load certainly does
    not use. Returns None if there are none."""
    unused = {key: reasons for key in declared if (reasons := use.unused(key))}
    if not unused:
        return None
    names = listed(f"{key.partition('.')[2]} ({', '.join(reasons)})" for key, reasons in unused.items())
    return Unused(names, everything=len(unused) == len(declared))


_FEWEST_SESSIONS = 60
"""If pgtrial has looked at the active sessions of the load at least this often, in all trials together, it assumes that
it has seen every statement that matters. A statement that takes 5% of the time is missed in only 5% of cases with so
many samples."""

_OPAQUE = re.compile("Result|Function Scan|Call")
"""Matches the first node of plans that call a function, so that the plan does not show what the function does."""


def _in_trials(case: Case, arm: str) -> LoadUse | None:
    """Returns the evidence from the trials of the baseline and of an arm; None if one of the two arms has no completed
    trial."""
    of_arms = [case.completed(name) for name in (case.baseline, arm)]
    trials = [trial for of_arm in of_arms for trial in of_arm]
    if not all(of_arms):
        return None
    counted = [(trial.server_deltas, trial.measured) for trial in trials] + [
        (trial.shared_deltas, trial.measured) for trial in case.completed() if trial.shared_deltas
    ]
    base, other = map(load_statements, of_arms)
    return LoadUse(
        base,
        other,
        all_seen=_are_all_seen(trials),
        trials=len(trials),
        counted=counted,
        tables=[trial.relations for trial in trials],
        facts=partial(case.both, arm),
    )


def _are_all_seen(trials: Sequence[Trial]) -> bool:
    """True if the plans of all statements that take a notable part of the time are known."""
    if any(trial.statements_left_out or trial.load_point.of_arms for trial in trials):
        return False  # if only one arm sends a statement, its plan cannot show a difference between the servers
    sampled = [trial.sessions_seen for trial in trials if trial.sessions_seen]
    return not sampled or sum(sampled) >= _FEWEST_SESSIONS


@dataclass(frozen=True)
class LoadUse:
    """The evidence that the baseline and another arm give of what the load used: its statements, plans, counters and
    facts."""

    base: Mapping[str, LoadStatement]
    """The statements of the load on the baseline with their plans, by the text of the statement without values."""
    other: Mapping[str, LoadStatement]
    all_seen: bool
    """True if all statements that take a notable part of the time are in `base` and `other`."""
    trials: int = 0
    counted: Sequence[tuple[Mapping[str, Mapping[str, float]], Phase | None]] = ()
    """The counters of the servers in each trial, by statistics view and counter. Each comes with the phase of the trial
    during which it counted."""
    tables: Sequence[Mapping[str, Mapping[str, float]]] = ()
    """The counters of the tables in each trial, by table and counter."""
    facts: Callable[[str, str], tuple[Any, Any]] | None = None
    """Returns the values of a fact (a setting or other property) in the two arms, by its group and name. It is None
    before facts are collected."""

    def unused(self, key: str) -> list[str]:
        """Returns the reasons why the load did not use a setting or object in which the arms differ. `key` is its name.
        The result is empty if the load used it, or if this is not known."""
        evidences = evidence_of(key)
        if self.uses(key) or any(self._shows(one) is None for one in evidences if not one.confirms):
            return []
        return [one.absent for one in evidences if not one.confirms]

    def uses(self, key: str) -> bool:
        """True if the load certainly used a setting or object in which the arms differ. `key` is its name. False also
        if this is not known."""
        return any(self._shows(one) for one in evidence_of(key))

    def _shows(self, evidence: Evidence) -> bool | None:
        """Returns whether all conditions of an entry of use.toml hold, which means that the load used the fact of this
        entry. Returns None if this depends on a condition that is not known."""
        conditions = [
            self._counts(evidence) if evidence.counters else True,
            self._reads_rows(evidence.rows_read_sequentially) if evidence.rows_read_sequentially else True,
            self._plans_match(evidence.plan) if evidence.plan is not None else True,
            self._plans_differ() if evidence.plans_differ else True,
            self._kinds_differ() if evidence.kinds_differ else True,
            self._statements_match(evidence.statement) if evidence.statement is not None else True,
            self._tables_have(evidence.tables) if evidence.tables is not None else True,
            self._facts_differ(evidence.facts_differ) if evidence.facts_differ is not None else True,
        ]
        return False if False in conditions else None if None in conditions else True

    def _reads_rows(self, per_transaction: float) -> bool | None:
        read = Evidence(absent="", counters=["tables.rows_read_sequentially"], per_transaction=per_transaction)
        return self._counts(read)

    def _counts(self, evidence: Evidence) -> bool | None:
        total, transactions, trials = 0.0, 0, 0
        for deltas, measured in self.counted:
            amounts = [
                deltas[view][counter]
                for view, _, counter in (name.partition(".") for name in evidence.counters)
                if counter in deltas.get(view, {})
            ]
            if amounts:
                trials += 1
                total += sum(amounts)
                transactions += measured.transactions if measured is not None else 0
        least = max(evidence.per_transaction * transactions, evidence.per_trial * trials)
        return total > least if trials else None

    @property
    def _statements(self) -> list[LoadStatement]:
        return [*self.base.values(), *self.other.values()]

    def _or_unknown(self, shows: bool, *, plans: bool) -> bool | None:
        """Returns True if `shows` is true, which means that some statement of the load meets a condition. If no
        statement meets it, returns False only if nothing is unknown: all statements of the load were seen and, with
        `plans`, their plans are known.

        Otherwise returns None, because a statement that was not seen, or whose plan is not known, may meet the
        condition.
        """
        explained = not plans or all(map(_is_explained, self._statements))
        are_known = bool(self.base and self.other) and self.all_seen and explained
        return shows or (False if are_known else None)

    def _plans_match(self, pattern: re.Pattern[str]) -> bool | None:
        lines = (line for statement in self._statements for line in statement.plan)
        return self._or_unknown(any(map(pattern.search, lines)), plans=True)

    def _plans_differ(self) -> bool | None:
        pairs = plan_pairs(self.base, self.other).values()
        return self._or_unknown(not all(pair.is_same for pair in pairs), plans=True)

    def _kinds_differ(self) -> bool | None:
        if any(statement.chosen in (None, "unknown") for statement in self._statements):
            return None
        return self._plans_differ()

    def _statements_match(self, pattern: re.Pattern[str]) -> bool | None:
        texts = (statement.text for statement in self._statements)
        return self._or_unknown(any(map(pattern.search, texts)), plans=False)

    def _tables_have(self, counter: str) -> bool | None:
        counts = [of_table[counter] for tables in self.tables for of_table in tables.values() if counter in of_table]
        return any(counts) if counts else None

    def _facts_differ(self, key: str) -> bool | None:
        group, _, name = key.partition(".")
        first, second = self.facts(group, name) if self.facts is not None else (None, None)
        return None if first is None or second is None else bool(first != second)


def _is_explained(statement: LoadStatement) -> bool:
    """True if the known plan of a statement is the plan that the server uses, and shows everything that the statement
    does."""
    is_known = bool(statement.plan) and statement.chosen != "unknown" and not statement.hides_statements
    return is_known and not _OPAQUE.match(statement.plan[0])
