"""Arms on two other hosts, the load from a third: whatever becomes of connections and labs, nothing is left there."""

import os
import signal
import subprocess
import sys
from dataclasses import replace

import pytest

from pgtrial.conduct.progress import Second
from pgtrial.conduct.run_study import run_study
from pgtrial.loads.data.kinds import NO_TABLES
from pgtrial.machines.machine import HostError, HostTrouble
from pgtrial.model.errors import ArmError, StudyError
from pgtrial.model.study.design import Design
from pgtrial.servers import undo
from pgtrial.servers.arm import Needs
from pgtrial.servers.arms import make_arms
from pgtrial.servers.host_run_directory import HostRunDirectory
from pgtrial.servers.leftovers import clean, leftovers
from pgtrial.servers.workspace import Workspace
from pgtrial.store.study_file import build_study
from tests.conduct.small import FAST, each_once, once, small_study
from tests.conftest import require_engine
from tests.machines.ssh.hosts import Host, ip

pytestmark = pytest.mark.machine


PORT = 54321

LAB = """
import sys
from pathlib import Path
from pgtrial.loads.data.kinds import NO_TABLES
from pgtrial.model.study.design import Design
from pgtrial.servers.arms import make_arms
from pgtrial.servers.workspace import Workspace
from pgtrial.store.study_file import read_study

study, log = sys.argv[1:]
with Workspace() as workspace:
    arm = make_arms(Design(read_study(study)), workspace)["a"]
    with arm.serve(NO_TABLES, Path(log), {}):
        print("serving", flush=True)
        sys.stdin.read()
"""


def arms(hosts: list[Host], bin_directory: str, **more: object) -> dict[str, dict[str, object]]:
    return {
        name: {"ssh": host.login, "data": str(host.data), "postgres": bin_directory, **more}
        for name, host in zip("ab", hosts, strict=True)
    }


@pytest.mark.server
def test_a_study_survives_a_dropped_connection_and_leaves_nothing(tmp_path, hosts, postgres):
    require_engine()
    study = small_study(tmp_path / "s", blocks=1, arms=arms(hosts, postgres))

    def drop():
        assert any(PORT in host.ports() for host in hosts)
        for host in hosts:
            assert host.note_run_directories()
            host.drop_connections()

    run_study(study, once(lambda event: isinstance(event, Second) and event.phase == "measure", drop))
    assert each_once(study)
    for trial in study.trials():
        assert (trial.status, trial.reason) == ("completed", None)
        assert trial.measured is not None
        assert trial.measured.transactions > 0
        log = (study.trial_path(trial) / "server.log").read_text()
        assert f'listening on IPv4 address "{hosts["ab".index(trial.arm)].address}", port {PORT}' in log
    facts = study.facts()
    assert [facts[name].facts["os"]["system"] for name in "ab"] == ["Linux", "Linux"]
    assert [host.left_in_the_end() for host in hosts] == [[], []]


@pytest.fixture
def one_study(hosts, postgres):
    """Returns a function that returns the spec of a study with arms on both hosts; keywords go into both set-ups."""

    def make(**more: object):
        return build_study(
            {
                "load": {"workload": "select-only", "scale": 1, "clients": 2, "warmup": "0s", "duration": "1s"},
                "server": {"settings": FAST},
                "arms": arms(hosts, postgres, **more),
            },
            "test",
        )

    return make


def refusal(spec, state):
    with Workspace(state) as workspace, pytest.raises((StudyError, ArmError, HostTrouble)) as refused:
        make_arms(Design(spec), workspace)["a"].check(Needs.of(Design(spec)))
    return str(refused.value)


def small_text(path):
    """Returns the content of a small file; empty for a large file, or one that has disappeared since it was listed."""
    try:
        return path.read_bytes() if path.is_file() and path.stat().st_size < 1_000_000 else b""
    except FileNotFoundError:
        return b""


@pytest.mark.server
def test_what_a_killed_lab_left_is_told_and_cleaned(tmp_path, hosts, postgres, fresh_state):
    file = tmp_path / "study.toml"
    tables = "".join(
        f'[arms.{name}]\nssh = "{own["ssh"]}"\ndata = "{own["data"]}"\npostgres = "{postgres}"\n'
        for name, own in arms(hosts, postgres).items()
    )
    file.write_text(f'[load]\nscale = 1\nclients = 1\n[server]\nstorage = {{ fs = "tmpfs", size = "300MB" }}\n{tables}')
    lab = subprocess.Popen(
        [sys.executable, "-c", LAB, file, tmp_path / "log"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PGTRIAL_STATE": str(fresh_state)},
    )
    with lab:
        assert lab.stdout is not None
        assert lab.stdout.readline() == "serving\n"
        lab.send_signal(signal.SIGKILL)
    assert PORT in hosts[0].ports()
    assert hosts[0].note_run_directories()
    assert hosts[0].mounts()
    assert any(hosts[0].login in leftover.what for leftover in leftovers(fresh_state))
    assert hosts[0].mounts()
    assert any(
        notice.endswith(f"on {hosts[0].login}, left by a pgtrial that ended abruptly.") for notice in clean(fresh_state)
    )
    assert hosts[0].left_in_the_end() == []
    assert leftovers(fresh_state) == []


@pytest.mark.server
def test_a_folder_is_made_and_removed_and_no_password_and_no_open_door_is_in_it(
    hosts, one_study, fresh_state, tmp_path
):
    folder = hosts[0].folder / "made"
    with Workspace(fresh_state) as workspace:
        arm = make_arms(Design(one_study(data=str(folder))), workspace)["a"]
        with arm.serve(NO_TABLES, tmp_path / "log", {}) as target:
            assert target.password
            texts = [small_text(path) for path in folder.rglob("*")]
            assert any(b"scram-sha-256" in text for text in texts)
            assert not any(target.password.encode() in text for text in texts)
            (directory,) = folder.iterdir()
            assert (directory.stat().st_mode & 0o777, directory.owner()) == (0o711, "root")
            assert {path.stat().st_mode & 0o077 for path in directory.iterdir() if path.is_dir()} == {0}
            assert arm.data_directory is not None
            lines = (arm.data_directory / "pg_hba.conf").read_text().splitlines()
            assert [line for line in lines if line.startswith("host")] == [
                f"host all all {hosts[0].lab_address}/32 scram-sha-256"
            ]
            with pytest.raises(Exception, match="password authentication failed"):
                replace(target, password="guessed").connect_as_user()
    assert not folder.exists()
    assert hosts[0].left_in_the_end() == []


def test_a_run_directory_on_a_host_that_refuses_the_lab_is_remembered_until_it_is_removed(hosts, known_hosts, tmp_path):
    host = hosts[0]
    directory = HostRunDirectory.make(tmp_path, host.login, str(host.data), sudo=True)
    directory.machine.close()
    assert host.note_run_directories() >= {directory.root.name}
    keys = known_hosts.read_text()
    known_hosts.write_text("")
    notices, failures = undo.of_run(tmp_path).undo()
    assert notices == []
    assert (
        f"{directory.root} on {host.login}, left by a pgtrial that ended abruptly, could not be removed" in failures[0]
    )
    assert "is not in known_hosts" in failures[0]
    assert directory.root.exists()
    known_hosts.write_text(keys)
    assert len(undo.of_run(tmp_path).pending()) == 1
    assert undo.of_run(tmp_path).undo() == (
        [f"Removed {directory.root} on {host.login}, left by a pgtrial that ended abruptly."],
        [],
    )
    assert undo.of_run(tmp_path).pending() == []
    assert host.left_in_the_end() == []


class TestBadInput:
    @pytest.mark.server
    def test_a_wrong_binary_path(self, one_study, fresh_state, hosts):
        said = refusal(one_study(postgres="/usr/nowhere/bin"), fresh_state)
        assert "arms.a: postgres = '/usr/nowhere/bin' on root@10." in said
        assert (
            "postgres and initdb and pg_ctl and psql not found there by the user postgres; name the directory that has"
            in said
        )
        assert hosts[0].left_in_the_end() == []

    @pytest.mark.server
    def test_a_version_that_the_host_does_not_have(self, one_study, fresh_state):
        assert "there is no PostgreSQL 99" in refusal(one_study(postgres="99"), fresh_state)

    @pytest.mark.server
    def test_no_rights_on_the_folder(self, one_study, fresh_state):
        assert "pgtrial cannot make files there" in refusal(one_study(data="/proc/pgtrial"), fresh_state)

    def test_no_rights_without_root(self, hosts, tmp_path):
        login = hosts[1].login
        for data, said in (
            ("/etc", "you may not write there"),
            ("/etc/pgtrial", "you may not make it"),
            (str(hosts[1].folder / "sshd_config"), "is not a directory"),
        ):
            with pytest.raises(HostError, match=said):
                HostRunDirectory.make(tmp_path, login, data, sudo=False)
        with pytest.raises(HostError, match=f"sudo on {login} does not|sudo is not installed"):
            HostRunDirectory.make(tmp_path, login, str(hosts[1].data), sudo=True)
        assert undo.of_run(tmp_path).pending() == []

    @pytest.mark.server
    def test_what_needs_root_is_refused_without_it(self, hosts, one_study, fresh_state):
        spec = one_study(thp="never")
        with Workspace(fresh_state) as workspace, pytest.raises(StudyError, match="write sudo = true"):
            make_arms(Design(spec), workspace)["b"].check(Needs.of(Design(spec)))

    @pytest.mark.server
    def test_a_folder_that_the_servers_account_cannot_reach(self, one_study, fresh_state, hosts):
        closed = hosts[0].folder / "closed"
        closed.mkdir(mode=0o700)
        said = refusal(one_study(data=str(closed)), fresh_state)
        assert "who cannot reach" in said
        assert list(closed.iterdir()) == []

    @pytest.mark.server
    def test_a_folder_two_levels_below_what_is_there(self, one_study, fresh_state):
        assert "make it (mkdir -p)" in refusal(one_study(data="/nowhere/at/all"), fresh_state)

    @pytest.mark.server
    def test_a_port_that_a_firewall_closes(self, one_study, fresh_state, hosts):
        rule = ["to", hosts[0].address, "ipproto", "tcp", "dport", str(PORT), "prohibit"]
        ip("rule", "add", *rule)
        try:
            said = refusal(one_study(), fresh_state)
        finally:
            ip("rule", "del", *rule)
        assert f"PostgreSQL runs on {hosts[0].login}, but {hosts[0].address}:{PORT} cannot be reached from here" in said
        assert f"open port {PORT} for {hosts[0].lab_address}" in said
        assert hosts[0].left_in_the_end() == []

    @pytest.mark.server
    def test_a_setting_that_postgresql_refuses(self, one_study, fresh_state, hosts):
        said = refusal(one_study(settings={"work_mem": "lots"}), fresh_state)
        assert 'invalid value for parameter "work_mem"' in said
        assert hosts[0].left_in_the_end() == []

    @pytest.mark.server
    def test_cpus_that_the_host_does_not_have(self, one_study, fresh_state):
        assert "cpus = '4000'" in refusal(one_study(cpus="4000"), fresh_state)
