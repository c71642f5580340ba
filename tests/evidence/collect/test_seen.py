"""Tests of the check that the host which a study names for a given server is really the host of that server."""

from __future__ import annotations

import pytest

from pgtrial.evidence.collect.server import seen_on_its_host
from pgtrial.evidence.collect.subject import Subject
from pgtrial.machines.machine import LOCAL
from pgtrial.model.study.design import Design
from pgtrial.store.study_file import build_study
from pgtrial.verdict.rules import audit
from tests.machines.shell import ShellMachine
from tests.verdict.rules.cases import facts, named, plan_of

from .test_windows import PlayedWindows


@pytest.mark.parametrize(
    ("seen", "told"), [(True, set()), (None, set()), (False, {("another_host", "warning")})], ids=str
)
def test_a_host_without_the_servers_process_is_told(seen, told):
    spec = build_study({"arms": {"A": {}, "B": {"dsn": "host=b", "ssh": "me@c"}}}, "t")
    found = audit(
        plan_of(["server.dsn", "server.host"]), facts(A={}, B={"server": {"process_seen": seen}}), Design(spec)
    ).findings
    assert named(found) == told
    assert all("me@c, which the study names as the host of B" in finding.message for finding in found)


@pytest.mark.server
def test_the_process_is_looked_for_where_the_server_is_not_the_labs(clusters):
    cluster = clusters(18)
    with cluster.target.connect_as_user() as connection:
        assert seen_on_its_host(Subject(connection, None, ShellMachine())) == {"process_seen": True}
        assert seen_on_its_host(Subject(connection, None, PlayedWindows("explorer"))) == {"process_seen": False}
        for machine, ours in ((ShellMachine(), True), (LOCAL, False), (None, False)):
            assert seen_on_its_host(Subject(connection, None, machine, ours=ours)) == {}
