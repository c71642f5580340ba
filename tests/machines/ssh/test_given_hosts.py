"""Given servers whose hosts are looked at through ssh: a Linux host, and one that answers as Windows does."""

from __future__ import annotations

from pathlib import Path

import pytest

from pgtrial.conduct.progress import Second
from pgtrial.conduct.run_study import run_study
from pgtrial.machines.posix import BOOT_ID
from pgtrial.model.errors import StudyError
from pgtrial.model.study.design import Design
from pgtrial.report.data import read_data
from pgtrial.report.tables.where import where_tables
from pgtrial.servers.arm import Needs
from pgtrial.servers.arms import make_arms
from pgtrial.servers.workspace import Workspace
from pgtrial.store.directory import StudyDirectory
from pgtrial.store.study_file import build_study
from tests.conduct.small import FAST, small_study
from tests.conftest import require_engine

pytestmark = [pytest.mark.server, pytest.mark.machine]


@pytest.fixture
def dsn(start_cluster, free_port):
    cluster = start_cluster(
        settings={**FAST, "listen_addresses": "127.0.0.1", "port": str(free_port)},
        hba="local all all trust\nhost all all 127.0.0.1/32 trust\n",
    )
    return f"host=127.0.0.1 port={free_port} user={cluster.target.user} dbname=postgres"


@pytest.fixture
def labs_own(hosts):
    """Yields the first host with the boot ID of the lab's own machine, so that pgtrial takes both for one machine."""
    boot_id = hosts[0].folder / "boot_id"
    before = boot_id.read_text()
    boot_id.write_text(Path(BOOT_ID).read_text())
    yield hosts[0]
    boot_id.write_text(before)


def test_hosts_are_observed_and_reported_and_nothing_is_made_there(tmp_path, labs_own, windows, dsn):
    require_engine()
    linux = labs_own.login
    arms = {"linux": {"dsn": dsn, "ssh": linux}, "windows": {"dsn": dsn, "ssh": windows}}
    # the hosts' sources are there if the sampler has come to its first look before the load is over
    study = small_study(tmp_path / "s", blocks=1, arms=arms, server={"settings": {}}, load={"duration": "2s"})
    at_work: list[str] = []

    def look(event):
        if isinstance(event, Second):
            at_work.extend(labs_own.note_run_directories())

    run_study(study, look)
    assert at_work == []
    assert labs_own.left_in_the_end() == []
    study = StudyDirectory.open(study.path)
    for trial in study.trials():
        assert (trial.status, trial.reason) == ("completed", None)
        assert not any("observed" in note for note in trial.notes)
        host = trial.server_deltas["host"]
        assert host["cpu_busy_s"] > 0
        # Windows counts no processes that have ended
        assert ("server_cpu_s" in host) == (trial.arm == "linux")
        seen = {source for (source,) in study.observed(trial).select("source").unique().iter_rows()}
        assert "memory" in seen
    facts = {arm: found.facts for arm, found in study.facts().items()}
    assert {arm: found["os"]["system"] for arm, found in facts.items()} == {"linux": "Linux", "windows": "Windows"}
    assert facts["linux"]["storage"]["filesystem"]
    assert facts["windows"]["cpu"]["governor"] == "High performance"
    for arm, connection in (("linux", "this machine"), ("windows", "over the network")):
        assert facts[arm]["server"]["process_seen"] is True
        assert facts[arm]["client"]["connection"] == connection
        assert "flushes_per_s" not in facts[arm]["probes"]
    findings = {finding.rule for finding in study.audit().findings}
    assert "another_host" not in findings
    assert "client_on_server_host" in findings
    pieces = {row[0]: row[1:3] for row in where_tables(read_data(study))[0].rows}
    assert pieces["the server of linux"][0] == f"127.0.0.1 (dsn, looked at by ssh as {linux}), the lab's machine"
    assert pieces["the server of windows"] == [
        "127.0.0.1 (dsn, looked at by ssh as windows)",
        "Microsoft Windows Server 2022 Datacenter, 10.0.20348",
    ]
    assert set(labs_own.asked_windows()) == {"uname", "powershell"}


def refusal(dsn, state, **more):
    spec = build_study({"load": {"clients": 1}, "arms": {"a": {"dsn": dsn, **more}, "b": {"dsn": dsn}}}, "test")
    with Workspace(state) as workspace, pytest.raises(StudyError) as refused:
        make_arms(Design(spec), workspace)["a"].check(Needs.of(Design(spec)))
    return str(refused.value)


def test_a_host_that_cannot_be_looked_at_is_refused_before_the_first_trial(dsn, hosts, windows, fresh_state):
    shut = refusal(dsn, fresh_state, ssh="root@nowhere.invalid")
    assert shut == (
        "arms.a: root@nowhere.invalid cannot be reached by ssh: no address is known for nowhere.invalid; correct the "
        "name, or ~/.ssh/config"
    )
    assert "answers neither as a POSIX shell nor with PowerShell" in refusal(
        dsn, fresh_state, ssh=f"nobody@{hosts[0].address}"
    )
    assert "Windows, where pgtrial does not use sudo" in refusal(dsn, fresh_state, ssh=windows, sudo=True)
