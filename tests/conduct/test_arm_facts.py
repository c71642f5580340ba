"""The facts of a study's arms: of an arm whose host is gone, and of one that has changed when the study goes on."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace

import psycopg
import pytest

from pgtrial.conduct import arm_facts
from pgtrial.conduct.arm_facts import ArmFacts, facts_of_keys
from pgtrial.conduct.progress import Preparing
from pgtrial.machines.machine import HostLost
from pgtrial.model.records.facts import Facts
from pgtrial.model.study.spec import StudySpec
from tests.conduct.small import small_study

TARGET = SimpleNamespace()
BASE, OTHER = (
    SimpleNamespace(
        name=name, data_directory=Path("/data"), machine=None, account=None, tables_of_others=[], setup=None
    )
    for name in ("base", "no jit")
)
FACTS = {
    "storage": {"source": "/dev/loop1", "wal_source": "/dev/loop2"},
    "server": {"version": "18.5"},
    "settings": {},
    "defaults": {"work_mem": "4MB"},
}


@pytest.fixture
def study(tmp_path):
    return small_study(tmp_path / "s")


@pytest.fixture
def found(monkeypatch):
    """Replaces `collect` and returns an object that controls it: `facts` is what it returns, `error` what it raises,
    and `measured` records for each call whether it should run probes.
    """
    state = SimpleNamespace(facts=FACTS, error=None, measured=[])

    def collect(arm, *_, measure, **__):
        if state.error is not None:
            raise state.error
        state.measured.append(measure)
        return Facts(arm=arm, collected="2026-11-20T14:12:00Z", facts=state.facts)

    monkeypatch.setattr(arm_facts, "collect", collect)
    return state


def _run(study, block):
    """Collects the facts of three trials from this block on and returns the findings about arms that changed during the
    study.
    """
    facts = ArmFacts(study, study.design, lambda event: None)
    for arm in (BASE, OTHER, BASE):
        facts.collect(block, arm, TARGET, None)
        facts.judge()
    return [finding for finding in study.audit().findings if finding.rule == "changed_in_between"]


def test_a_host_that_is_only_looked_at_is_waited_for_and_the_trial_is_kept(study, found):
    found.error = HostLost("me@db1 is gone")
    heard = []
    arm = SimpleNamespace(name="base", data_directory=None, machine=None, account=None)
    ArmFacts(study, study.design, heard.append).collect(0, arm, TARGET, None)
    told = "base: its facts will be collected after a later trial, since its host is gone: me@db1 is gone"
    assert heard == [Preparing(told)]
    assert study.facts() == {}


def test_a_server_that_is_gone_when_its_trial_has_ended_loses_no_trial(study, found):
    found.error = psycopg.OperationalError("connection failed:\nFATAL:  too many connections for role")
    heard = []
    facts = ArmFacts(study, study.design, heard.append)
    facts.collect(0, BASE, TARGET, None)
    assert "its server did not answer: connection failed: FATAL: too many connections for role" in heard[0].text
    found.error = None
    facts.collect(1, BASE, TARGET, None)
    assert list(study.facts()) == ["base"]


def test_without_the_host_of_a_server_of_our_own_nothing_goes_on(study, found):
    found.error = HostLost("me@db1 is gone")
    with pytest.raises(HostLost):
        ArmFacts(study, study.design, lambda event: None).collect(0, BASE, TARGET, None)


def test_each_run_of_a_study_looks_at_each_arm_once_and_measures_in_the_first_alone(study, found):
    assert _run(study, 0) == []
    assert found.measured == [True, True]
    assert _run(study, 4) == []
    assert found.measured == [True, True, False, False]
    assert [facts.changed for facts in study.facts().values()] == [[], []]


def test_what_has_changed_when_a_study_goes_on_is_kept_and_found(study, found):
    _run(study, 0)
    found.facts = {
        "storage": {"source": "/dev/loop7", "wal_source": "/dev/loop8"},
        "server": {"version": "18.6"},
        "settings": {"work_mem": "8MB"},
        "defaults": {},
    }
    told = "When the study went on before block 5, "
    of_both = " of base and no jit had changed from "
    assert [finding.message for finding in _run(study, 4)] == [
        f"{told}server.version{of_both}18.5 to 18.6.",
        f"{told}settings.work_mem{of_both}4MB to 8MB.",
    ]
    found.facts = {**found.facts, "server": {"version": None}, "settings": {"work_mem": "4MB"}}
    assert [finding.message for finding in _run(study, 6)][2:] == [
        f"When the study went on before block 7, settings.work_mem{of_both}8MB to 4MB."
    ]
    base = study.facts()["base"]
    of_server = FACTS["server"] | facts_of_keys(study.design.servers["base"])
    assert base.facts == {**FACTS, "server": of_server}, "those of the first trial"
    assert [(change.block, change.key, change.before, change.now) for change in base.changed] == [
        (4, "server.version", "18.5", "18.6"),
        (4, "settings.work_mem", "4MB", "8MB"),
        (6, "settings.work_mem", "8MB", "4MB"),
    ]


def test_a_change_that_one_arm_alone_met_names_that_arm(study, found):
    _run(study, 0)
    facts = ArmFacts(study, study.design, lambda event: None)
    facts.collect(4, BASE, TARGET, None)
    found.facts = {**FACTS, "server": {"version": "18.6"}}
    facts.collect(4, OTHER, TARGET, None)
    facts.judge()
    (finding,) = (each for each in study.audit().findings if each.rule == "changed_in_between")
    assert (finding.arms, finding.severity) == (["no jit"], "warning")


def test_what_withholds_the_verdict_is_told_once_as_soon_as_the_facts_of_all_arms_are_known(study, found):
    told = []
    facts = ArmFacts(study, study.design, lambda event: told.append(event.text) if event.stays else None)
    for arm, fsync in ((BASE, "on"), (OTHER, "off")):
        found.facts = {**FACTS, "settings": {"fsync": fsync}, "defaults": {}}
        assert told == []
        facts.collect(0, arm, TARGET, None)
        facts.judge()
    [sentence] = told
    assert sentence.startswith("there will be no verdict: ")
    assert "fsync" in sentence
    facts.judge()
    assert len(told) == 1


def test_a_set_up_that_may_hold_a_password_is_stored_as_a_digest(study):
    sql = ["SELECT 1", "CREATE SUBSCRIPTION s CONNECTION 'host=h password=s3cret' PUBLICATION p"]
    spec = StudySpec.model_validate({"arms": {"a": {"setup_sql": sql, "initdb": ["-k"]}, "b": {"dsn": "host=db"}}})
    facts = facts_of_keys(spec.resolved("a"))
    assert facts["setup_sql"][0] == "SELECT 1"
    assert re.fullmatch(r"set, not shown \(digest \w{8}\)", facts["setup_sql"][1])
    assert (facts["initdb"], facts["reset"]) == (["-k"], "copy")
    assert facts_of_keys(spec.resolved("b")) == {"setup_sql": [], "reset": "vacuum"}
