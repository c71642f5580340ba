"""A study on given servers with a role that may do no more than it needs."""

from __future__ import annotations

import re

from pgtrial.facts.trial_audit import audit_trials
from pgtrial.store.directory import StudyDirectory
from pgtrial.trial.run_study import run_study
from tests.conftest import require_engine
from tests.trial.small import small_study


def test_a_role_without_rights_has_its_trials_and_is_told_what_they_did_without(start_cluster, tmp_path):
    require_engine()
    cluster = start_cluster()
    with cluster.target.connect() as connection:
        connection.execute("CREATE ROLE bob LOGIN")
        connection.execute("CREATE DATABASE bench OWNER bob")
    dsn = f"host={cluster.socket_directory} port={cluster.port} dbname=bench user=bob"
    arms = {"first": {"dsn": dsn}, "again": {"dsn": dsn}}
    study = small_study(tmp_path / "results", blocks=1, arms=arms, server={"settings": {}})
    run_study(study, lambda event: None)
    study = StudyDirectory.open(study.path)
    for trial in study.trials():
        assert (trial.status, trial.reason) == ("completed", None)
        assert [re.sub(r" \(.*", "", thing) for thing in trial.not_permitted] == [
            "warm the tables by pg_prewarm",
            "issue a checkpoint before the measured part",
        ]
        assert trial.relations_before["pgbench_accounts"]["live_tuples"] > 0
    told = [found for found in audit_trials(study.plan, study.facts(), study.trials()) if found.rule == "not_permitted"]
    assert [(finding.severity, finding.arms) for finding in told] == [("info", ["first", "again"])] * 2
    facts = study.facts()["first"].facts
    assert facts["server"]["provider"] is None
    assert facts["server"]["version"] == cluster.server.version


def test_the_trials_of_a_block_run_on_the_deployments_that_the_plan_drew(start_cluster, tmp_path):
    require_engine()
    cluster = start_cluster()
    names = ["a0", "a1", "b0", "b1"]
    with cluster.target.connect() as connection:
        for name in names:
            connection.execute(f"CREATE DATABASE {name}".encode())
        connection.execute("ALTER DATABASE b1 SET work_mem = '8MB'")
    server = f"host={cluster.socket_directory} port={cluster.port} user={cluster.target.user}"
    arms = {arm: {"dsn": [f"{server} dbname={arm}{k}" for k in (0, 1)]} for arm in "ab"}
    study = small_study(tmp_path / "results", blocks=2, arms=arms, server={"settings": {}})
    run_study(study, lambda event: None)
    study = StudyDirectory.open(study.path)
    assert sorted(f"{trial.arm}{trial.place}" for trial in study.trials()) == names
    for trial in study.trials():
        assert (trial.status, trial.place) == ("completed", study.plan.trials[trial.index].place)
        served_by = (study.trial_path(trial) / "server.log").read_text()
        assert f"/{trial.arm}{trial.place} " in served_by
    told = study.deployment_facts()
    assert {arm: [facts.deployment for facts in known] for arm, known in told.items()} == {"a": [0, 1], "b": [0, 1]}
    audit = study.audit()
    assert audit is not None
    [unlike] = [finding for finding in audit.findings if finding.rule == "unlike_deployments"]
    assert unlike.arms == ["b"]
    assert "settings.work_mem: 4MB in deployment 1 and 8MB in deployment 2" in unlike.message
