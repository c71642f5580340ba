"""Collects the facts of a study's arms with each arm's first trial, and again when the study continues later. Then
checks from the facts whether the comparison is fair (the audit)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import psycopg

from pgtrial.conduct.preparation.same_answers import findings_on_answers
from pgtrial.conduct.preparation.same_rows import ArmRows, as_facts, as_warning, findings_on_rows, rows_of_arms
from pgtrial.conduct.progress import Listener, Preparing
from pgtrial.evidence.collect.collect import collect
from pgtrial.loads.target import Target
from pgtrial.machines.machine import HostTrouble
from pgtrial.model.records.answers import ArmAnswers
from pgtrial.model.records.facts import Audit, Facts
from pgtrial.model.study.design import Design
from pgtrial.model.study.own_data import name_of_data
from pgtrial.model.study.servers import Made, Server
from pgtrial.model.tokens import without_tokens
from pgtrial.servers.arm import Arm
from pgtrial.servers.builds.checkouts import facts_of_checkout
from pgtrial.servers.builds.of_study import facts_of_build
from pgtrial.store.directory import StudyDirectory
from pgtrial.store.machine_key import not_shown
from pgtrial.verdict.rules import audit
from pgtrial.verdict.rules.case import changes

_Key = tuple[str, int | None]
"""The name of an arm, and the number of its deployment if the arm has several given servers (deployments), else
None."""


def facts_of_server(arm: Arm, target: Target, *, measure: bool) -> Facts:
    """Collects and returns the facts of an arm while its server runs. Raises the same errors as `collect`."""
    return collect(arm.name, target, arm.data_directory, machine=arm.machine, account=arm.account, measure=measure)


class ArmFacts:
    """Collects the facts of arms. Knows the facts that the study directory already has, and the arms whose facts this
    run of the study has collected."""

    def __init__(self, study: StudyDirectory, design: Design, listener: Listener) -> None:
        """Reads the stored facts. `design` is the design of the study as the user gave it, with its passwords."""
        self._study = study
        self._design = design
        self._listener = listener
        stored = (facts for of_arm in study.deployment_facts().values() for facts in of_arm)
        self._known: dict[_Key, Facts] = {(facts.arm, facts.deployment): facts for facts in stored}
        self._collected: set[_Key] = set()
        self._is_audited = False
        self._reported: set[str] = set()
        """The sentences that were reported to the user in this run."""
        self._rows: ArmRows = {}
        self._answers: Mapping[str, ArmAnswers] = {}

    @property
    def are_known(self) -> bool:
        """True if the facts of all arms are stored."""
        return {arm for arm, _ in self._known} >= set(self._study.plan.arms)

    def take_answers(self, answers: Mapping[str, ArmAnswers]) -> None:
        """Keeps the answers of the arms' scripts (the rows that they return), which were compared with each other, and
        tells the user at once if they are not the same.

        `collect` adds the answers to the facts of each arm.
        """
        self._answers = answers
        self._report(Audit(findings=findings_on_answers(self._study.plan, answers)))

    def compare_rows(self, arms: Mapping[str, Arm]) -> None:
        """Reads the rows of the user's data on all arms, and tells the user at once if they are not the same.

        `collect` adds counts and digests of the rows to the facts of each arm. Raises StudyError and ArmError.
        """
        plan = self._study.plan
        if self.are_known:
            return
        self._rows = rows_of_arms(self._design, arms, plan.seed, self._listener)
        self._report(Audit(findings=findings_on_rows(plan, self._rows)))

    def collect(self, block: int, arm: Arm, target: Target, deployment: int | None, program: str | None = None) -> None:
        """Collects and stores the facts of an arm while its server runs. Does so once for each arm, or each deployment
        of an arm, in each run of the study.

        `program` is the name and version that the arm's client program reports about itself. If facts of the arm are
        stored already, they are kept, and the differences are added to them as changes.
        """
        key = arm.name, deployment if self._study.plan.deployments > 1 else None
        known = self._known.get(key)
        if known is not None and self._study.plan.factors:
            return  # an arm of a screening study has another set-up in each block, so that its facts always differ
        if key in self._collected or (facts := self._facts_of(arm, target, measure=known is None)) is None:
            return
        if self._design.servers[arm.name].command is not None:
            facts.facts["client"] |= _facts_of_program(self._design.servers[arm.name], program)
        if own := self._facts_of_load(arm.name):
            facts.facts["load"] = own
        if answers := self._answers.get(arm.name):
            facts.facts["answers"] = answers.as_facts()
        if rows := self._rows.get((arm.name, key[1] or 0)):
            facts.facts["data"] = as_facts(rows)
        self._collected.add(key)
        self._is_audited = False
        if known is None:
            facts = facts.model_copy(update={"deployment": key[1]})
        elif changed := changes(known, facts, block):
            facts = known.model_copy(update={"changed": [*known.changed, *changed]})
        else:
            return
        self._study.write_facts(facts)
        self._known[key] = facts

    def _facts_of_load(self, arm: str) -> dict[str, str]:
        """Returns, by name, the features of this arm's load that other arms may not have: its own script, its own data,
        and the columns from which its values are drawn."""
        own, keys = {}, self._design.spec.arms[arm]
        if (script := self._study.plan.load_points[0].of_arms.get(arm)) is not None:
            own["script"] = f"{script} (SHA-256 {self._study.plan.scripts[script]})"
        if keys.data is not None and keys.data_files is not None:
            own["data"] = f"{name_of_data(keys.data)} (SHA-256 {keys.data_files.sha256})"
        if any(other.values for other in self._design.spec.arms.values()):
            columns = self._design.spec.values_of(arm)
            own["values"] = ", ".join(f"{name} = {column}" for name, column in columns.items())
        return own

    def judge(self) -> None:
        """Checks from the facts whether the comparison of the arms is fair (the audit), and stores the findings, as
        soon as the facts of all arms are known. Does so again after facts were collected."""
        plan = self._study.plan
        if not self._is_audited and self.are_known:
            found = audit(plan, self._study.facts(), self._design, self._study.deployment_facts())
            self._study.write_audit(found)
            self._is_audited = True
            self._report(found)

    def _report(self, found: Audit) -> None:
        """Reports to the user at once which findings of the audit will withhold the verdict, so that the user can
        correct their causes before the study ends."""
        for finding in found.findings:
            sentence = as_warning(finding)
            if finding.severity == "withhold" and sentence not in self._reported:
                self._reported.add(sentence)
                self._listener(Preparing(sentence, stays=True))

    def _facts_of(self, arm: Arm, target: Target, *, measure: bool) -> Facts | None:
        """Returns the facts of an arm. If its server or its host does not answer, returns None and tells the user.

        Missing facts can be collected with a later trial, and must not make the trial fail that has just ended.
        """
        try:
            facts = facts_of_server(arm, target, measure=measure)
            if arm.tables_of_others:
                facts.facts["server"]["tables_of_others"] = list(arm.tables_of_others)
            facts.facts["server"].update(facts_of_build(arm.setup))
            facts.facts["server"].update(facts_of_keys(self._design.servers[arm.name]))
            return facts
        except HostTrouble as error:
            if arm.data_directory is not None:
                raise
            gone = f"its host is gone: {error}"
        except psycopg.Error as error:
            gone = f"its server did not answer: {' '.join(str(error).split())}"
        self._listener(Preparing(f"{arm.name}: its facts will be collected after a later trial, since {gone}"))
        return None


def facts_of_keys(server: Server) -> dict[str, Any]:
    """Returns the facts about an arm that only the study file knows: the SQL that runs before each trial, the options
    of initdb, and what happens to the data before each trial.

    A text that may hold a password or a token is replaced by a digest.
    """
    initdb = {"initdb": list(map(_shown, server.initdb))} if isinstance(server, Made) else {}
    return {"setup_sql": list(map(_shown, server.setup_sql)), **initdb, "reset": server.reset}


def _shown(text: str) -> str:
    return text if without_tokens(text) == text else not_shown("setup", text)


def _facts_of_program(server: Server, program: str | None) -> dict[str, Any]:
    """Returns the facts about an arm's client program: its command, the directory or commit in which it runs, its
    files, and the name and version that it reports about itself."""
    return {
        "command": server.command,
        "directory": server.command_directory,
        "files": server.command_files,
        "program": program,
        **facts_of_checkout(server.command_directory),
    }
