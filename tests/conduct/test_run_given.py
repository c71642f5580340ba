"""A study on given servers with a role that may do no more than it needs."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from pgtrial.conduct.progress import Preparing, TrialEnds
from pgtrial.conduct.run_study import run_study
from pgtrial.loads.process import engine_path, finished
from pgtrial.model.errors import ArmError, StudyError
from pgtrial.servers import lock_waits
from pgtrial.store.directory import StudyDirectory
from tests.conduct.small import FAST, each_once, measuring, once, small_study
from tests.conftest import require_engine
from tests.verdict.studies import findings_over

pytestmark = pytest.mark.server

CALM = {"rate": 100, "duration": "4s"}
"""A rate for loads, which at full speed would take the processors from tests that run at the same time, and a length
that is longer than a busy machine stands still.
"""


def test_a_role_without_rights_has_its_trials_and_is_told_what_they_did_without(start_cluster, tmp_path):
    require_engine()
    cluster = start_cluster(settings=FAST)
    with cluster.target.connect_as_user() as connection:
        connection.execute("CREATE ROLE bob LOGIN")
        connection.execute("CREATE DATABASE bench OWNER bob")
        connection.execute("ALTER ROLE bob SET statement_timeout = '45min'")
    dsn = f"host={cluster.socket_directory} port={cluster.port} dbname=bench user=bob"
    arms = {"first": {"dsn": dsn}, "again": {"dsn": dsn}}
    study = small_study(tmp_path / "results", blocks=1, arms=arms, server={"settings": {}}, load=CALM)
    run_study(study, lambda event: None)
    study = StudyDirectory.open(study.path)
    for trial in study.trials():
        assert (trial.status, trial.reason) == ("completed", None)
        assert [re.sub(r" \(.*", "", thing) for thing in trial.not_permitted] == [
            "warm the tables by pg_prewarm",
            "issue a checkpoint before the measured part",
        ]
        assert trial.relations_before["pgbench_accounts"]["live_tuples"] > 0
    told = [
        found for found in findings_over(study.plan, study.facts(), study.trials()) if found.rule == "not_permitted"
    ]
    assert [(finding.severity, finding.arms) for finding in told] == [("info", ["first", "again"])] * 2
    facts = study.facts()["first"].facts
    assert facts["server"]["provider"] is None
    assert facts["settings"]["statement_timeout"] == "45min"
    assert facts["server"]["version"] == cluster.server.version


def test_views_that_a_server_hides_from_the_role_fail_no_trial(start_cluster, tmp_path):
    require_engine()
    cluster = start_cluster(settings=FAST)
    with cluster.target.connect_as_user() as connection:
        connection.execute("CREATE ROLE bob LOGIN")
        connection.execute("CREATE DATABASE bench OWNER bob")
    with replace(cluster.target, dbname="bench").connect_as_user() as connection:
        for view in ("activity", "all_tables", "user_tables"):
            connection.execute(f"REVOKE ALL ON pg_stat_{view} FROM public".encode())
        connection.execute("REVOKE ALL ON pg_roles, pg_available_extensions FROM public")
    dsn = f"host={cluster.socket_directory} port={cluster.port} dbname=bench user=bob"
    arms = {"first": {"dsn": dsn}, "again": {"dsn": dsn}}
    study = small_study(tmp_path / "results", blocks=1, arms=arms, server={"settings": {}}, load=CALM)
    run_study(study, lambda event: None)
    assert [(trial.status, trial.reason) for trial in study.trials()] == [("completed", None)] * 2


def test_a_study_on_tables_of_somebody_else_says_so_in_its_facts_and_its_verdict(start_cluster, tmp_path):
    require_engine()
    cluster = start_cluster(settings=FAST)
    command = [engine_path(), "pgbench", "-i", "-q"]
    assert finished(command, cluster.target.environment()).returncode == 0
    dsn = f"host={cluster.socket_directory} port={cluster.port} dbname=postgres user=postgres"
    arms = {name: {"dsn": dsn, "settings": {"work_mem": size}} for name, size in [("a", "5MB"), ("b", "6MB")]}
    study = small_study(tmp_path / "results", blocks=1, arms=arms, server={"settings": {}}, load=CALM)
    run_study(study, lambda event: None)
    for arm in ("a", "b"):
        assert study.facts()[arm].facts["server"]["tables_of_others"] == ["pgbench's tables of scale 1"]
    [found] = [each for each in study.audit().findings if each.rule == "tables_of_others"]
    assert (found.severity, found.arms) == ("info", ["a", "b"])


def test_a_server_with_settings_of_the_study_that_goes_in_mid_trial_fails_it_once_and_gets_them_back(
    start_cluster, tmp_path
):
    require_engine()
    cluster = start_cluster(settings=FAST)
    dsn = f"host={cluster.socket_directory} port={cluster.port} dbname=postgres user={cluster.target.user}"
    arms = {name: {"dsn": dsn, "settings": {"work_mem": size}} for name, size in [("a", "5MB"), ("b", "6MB")]}
    load = {**CALM, "duration": "6s"}  # it goes after the first second
    study = small_study(tmp_path / "results", blocks=1, arms=arms, server={"settings": {}}, load=load)
    automatic = cluster.data_directory / "postgresql.auto.conf"
    with pytest.raises(ArmError, match=r"settings could not be restored .* pgtrial cleanup") as stopped:
        run_study(study, once(measuring, lambda: cluster.stop(immediate=True)))
    assert [trial.status for trial in study.trials()] == ["failed"]
    assert any("work_mem" in note and "could not be restored" in note for note in stopped.value.__notes__)
    assert "work_mem" in automatic.read_text()
    cluster.start(tmp_path / "log")
    run_study(study, lambda event: None)
    assert each_once(study)
    assert [trial.status for trial in study.trials()] == ["failed", "completed"]
    assert "work_mem" not in automatic.read_text()


def test_a_study_whose_setting_cannot_take_effect_stops_before_it_changes_anything(start_cluster, tmp_path):
    cluster = start_cluster(settings=FAST)
    automatic = cluster.data_directory / "postgresql.auto.conf"
    with cluster.target.connect_as_user() as connection:
        connection.execute("ALTER SYSTEM SET work_mem = '3MB'")
        connection.execute("SELECT pg_reload_conf()")
        connection.execute("CREATE ROLE bench SUPERUSER LOGIN")
        connection.execute("ALTER ROLE bench SET work_mem = '5MB'")
    before = automatic.read_bytes()
    dsn = f"host={cluster.socket_directory} port={cluster.port} dbname=postgres user=bench"
    arms = {name: {"dsn": dsn, "settings": {"work_mem": size}} for name, size in [("a", "8MB"), ("b", "16MB")]}
    load = {"share_server": False}
    study = small_study(tmp_path / "results", blocks=1, arms=arms, server={"settings": {}}, load=load)
    with pytest.raises(
        StudyError, match=r"arms.a: a value of work_mem by ALTER SYSTEM cannot take effect.*ALTER ROLE bench RESET"
    ):
        run_study(study, lambda event: None)
    assert study.trials() == []
    assert automatic.read_bytes() == before
    with cluster.target.connect_as_user() as connection:
        assert connection.execute("SELECT to_regclass('pgbench_accounts')").fetchone() == (None,)


def test_a_trial_before_which_the_role_gets_a_value_of_its_own_has_failed_with_a_sentence(start_cluster, tmp_path):
    require_engine()
    cluster = start_cluster(settings=FAST)
    automatic = cluster.data_directory / "postgresql.auto.conf"
    before = automatic.read_bytes()

    def alter_role():
        with cluster.target.connect_as_user() as connection:
            connection.execute("ALTER ROLE postgres SET work_mem = '7MB'")

    dsn = f"host={cluster.socket_directory} port={cluster.port} dbname=postgres user=postgres"
    arms = {name: {"dsn": dsn, "settings": {"work_mem": size}} for name, size in [("a", "8MB"), ("b", "16MB")]}
    study = small_study(tmp_path / "results", blocks=1, arms=arms, server={"settings": {}}, load=CALM)
    run_study(study, once(measuring, alter_role))
    first, second = study.trials()
    assert first.status == "completed"
    assert (second.status, second.reason) == (
        "failed",
        "a value of work_mem by ALTER SYSTEM cannot take effect, since ALTER ROLE postgres sets it with precedence in "
        "sessions of the load; ALTER ROLE postgres RESET work_mem, or remove the setting from the study",
    )
    assert automatic.read_bytes() == before


def test_the_trials_of_a_block_run_on_the_deployments_that_the_plan_drew(start_cluster, tmp_path):
    require_engine()
    cluster = start_cluster(settings=FAST)
    names = ["a0", "a1", "b0", "b1"]
    with cluster.target.connect_as_user() as connection:
        for name in names:
            connection.execute(f"CREATE DATABASE {name}".encode())
        connection.execute("ALTER DATABASE b1 SET work_mem = '8MB'")
    server = f"host={cluster.socket_directory} port={cluster.port} user={cluster.target.user}"
    arms = {arm: {"dsn": [f"{server} dbname={arm}{k}" for k in (0, 1)]} for arm in "ab"}
    study = small_study(tmp_path / "results", blocks=2, arms=arms, server={"settings": {}}, load=CALM)
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
    # tests in other processes may have changed the machine, which all of them are on, between two looks at it
    told_apart = [finding for finding in audit.findings if finding.rule == "unlike_deployments"]
    [unlike] = [finding for finding in told_apart if " differ in settings." in finding.message]
    assert unlike.arms == ["b"]
    assert "settings.work_mem: 4MB in deployment 1 and 8MB in deployment 2" in unlike.message


@pytest.mark.parametrize("ends", [True, False])
def test_tables_that_a_bystander_holds_are_not_awaited_in_silence(start_cluster, tmp_path, monkeypatch, ends):
    """His transaction has read the history, which is emptied before each trial; here it ends or goes on."""
    require_engine()
    monkeypatch.setattr(lock_waits, "LIMIT_S", 2)
    cluster = start_cluster(settings=FAST)
    with cluster.target.connect_as_user() as connection:
        connection.execute("CREATE ROLE bystander LOGIN IN ROLE pg_read_all_data")
    dsn = f"host={cluster.socket_directory} port={cluster.port} dbname=postgres user=postgres"
    arms = {name: {"dsn": dsn, "settings": {"work_mem": size}} for name, size in [("a", "5MB"), ("b", "6MB")]}
    study = small_study(tmp_path / "results", blocks=1, arms=arms, server={"settings": {}}, load=CALM)
    with replace(cluster.target, user="bystander").connect_as_user(autocommit=False) as bystander:
        told = []

        def listener(event):
            if isinstance(event, TrialEnds):
                bystander.execute("SELECT 1 FROM pgbench_history LIMIT 1")
            if isinstance(event, Preparing) and "tries again" in event.text:
                told.append(event.text)
                if ends:
                    bystander.rollback()

        who = f"process {bystander.info.backend_pid} of bystander"
        held = f"postgres: pgtrial waited 2s for a lock on public.pgbench_history, which is locked by {who}"
        if ends:
            run_study(study, listener)
            assert [trial.reason for trial in StudyDirectory.open(study.path).trials()] == [None, None]
        else:
            with pytest.raises(ArmError, match=held):
                run_study(study, listener)
        assert told
        assert re.search(held, told[0])
