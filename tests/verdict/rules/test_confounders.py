"""Tests that each difference that was made between two real servers is named above the verdict."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from pgtrial.evidence.collect.collect import collect
from pgtrial.evidence.observe.views import read_relations
from pgtrial.loads.data.pgbench_tables import PgbenchTables
from pgtrial.model.study.design import Design
from pgtrial.model.study.spec import StudySpec
from pgtrial.servers.cluster import Cluster, create_cluster
from pgtrial.verdict.rules import audit
from tests.conftest import require_engine, require_server
from tests.verdict.studies import noisy, run, verdict_of

from .cases import plan_of, trials_of

pytestmark = [pytest.mark.server, pytest.mark.machine]


SPEC = StudySpec.model_validate({"arms": {"A": {}, "B": {}}})


def _above_the_verdict(a, b, trials=None):
    """Returns the message of each rule that found something above the severity `info` in a study of these two
    servers.
    """
    plan = plan_of()
    facts = {name: collect(name, each.target, each.data_directory) for name, each in (("A", a), ("B", b))}
    trials = run(plan, noisy({})) if trials is None else trials
    result = verdict_of(plan, trials, audit(plan, facts, Design(SPEC)), facts=facts)
    # what this machine is like, the same for both
    about_both = {"thp", "not_durable", "governor", "debug_build"}
    return {
        finding.rule: finding.message
        for finding in result.findings
        if finding.severity != "info" and finding.rule not in about_both
    }


def test_two_servers_alike_have_nothing_above_their_verdict(start_cluster):
    assert _above_the_verdict(start_cluster(), start_cluster()) == {}


def test_compressed_wal_in_one_arm_is_named(start_cluster):
    found = _above_the_verdict(start_cluster(), start_cluster(settings={"wal_compression": "on"}))
    assert set(found) == {"undeclared_difference"}
    assert "settings.wal_compression" in found["undeclared_difference"]


def test_a_debugging_setting_in_one_arm_is_named(start_cluster):
    found = _above_the_verdict(start_cluster(), start_cluster(settings={"log_statement": "all"}))
    assert set(found) == {"debug_setting"}
    assert "log_statement is all in B only" in found["debug_setting"]


def test_data_checksums_off_in_one_arm_are_named(start_cluster, workspace):
    server = workspace.reachable(require_server(18))
    data = workspace.directory("no-checksums")
    create_cluster(workspace, server, data, ["--no-data-checksums"])
    usual = start_cluster()
    bare = Cluster(workspace, server, data, workspace.socket_directory(), usual.settings)
    try:
        with bare.running(Path(f"{data}.log"), immediate=True):
            found = _above_the_verdict(usual, bare)
    finally:
        shutil.rmtree(data, ignore_errors=True)
        Path(f"{data}.log").unlink(missing_ok=True)
    assert set(found) == {"data_checksums"}
    assert "on in A and off in B" in found["data_checksums"]


@pytest.fixture
def bloated(start_cluster):
    """Makes two servers with the same rows; those of the second were all updated twice, and never vacuumed."""
    require_engine()
    pair = [start_cluster(settings={"autovacuum": "off"}) for _ in "AB"]
    for cluster in pair:
        PgbenchTables(1, 100, False).make(cluster.target, lambda line: None)
    with pair[1].target.connect_as_user() as connection:
        for _ in range(2):
            connection.execute("UPDATE pgbench_accounts SET abalance = abalance + 1")
        # else the server counts the dead rows when the session has ended, which is after the client has closed it
        connection.execute("SELECT pg_stat_force_next_flush()")
    return pair


def test_a_bloated_template_in_one_arm_is_named(bloated):
    relations = {}
    for name, cluster in zip("AB", bloated, strict=True):
        with cluster.target.connect_as_user() as connection:
            relations[name] = read_relations(connection, PgbenchTables(1).relations(connection))
    trials = trials_of(plan_of(), lambda trial: {"relations_before": relations[trial.arm]})
    found = _above_the_verdict(*bloated, trials)
    assert set(found) == {"unequal_tables", "dead_tuples"}
    assert "those of B are bloated" in found["unequal_tables"]
    assert "Trials of B begin with dead rows" in found["dead_tuples"]
