"""Commands on another host: carried out once whatever becomes of the connection, and a sentence for each refusal."""

import subprocess
import threading

import pytest

from pgtrial.machines.machine import HostError, HostLost, HostTrouble
from pgtrial.machines.ssh.machine import RemoteMachine, job
from tests.machines.ssh.hosts import wait_until

pytestmark = pytest.mark.machine


@pytest.fixture
def machine(hosts):
    machine = RemoteMachine(hosts[0].login)
    yield machine
    machine.close()


@pytest.fixture
def with_jobs(machine, tmp_path):
    jobs = tmp_path / "jobs"
    machine.begin_jobs(jobs)
    yield machine
    machine.end_jobs(jobs)
    assert not jobs.exists()


def drops_when(happened, host):
    def wait_and_drop():
        wait_until(happened)
        host.drop_connections()

    thread = threading.Thread(target=wait_and_drop)
    thread.start()
    return thread


def test_a_host_says_who_it_is_and_what_it_runs(machine, hosts):
    machine.check()
    assert machine.root
    assert machine.label == hosts[0].login
    assert machine.system == "Linux"
    assert machine.seen == (hosts[0].lab_address, hosts[0].address)
    done = machine.run(["sh", "-c", "cat; echo two >&2; exit 3"], text_in="it's one\n")
    assert (done.status, done.stdout, done.stderr) == (3, "it's one\n", "two\n")


def test_a_command_goes_on_when_the_connection_drops_and_is_carried_out_once(with_jobs, hosts, tmp_path):
    begun, go = tmp_path / "begun", tmp_path / "go"
    script = f"echo x >> {begun}; while [ ! -e {go} ]; do sleep 0.05; done; echo done"

    def drop():
        wait_until(begun.exists)
        hosts[0].drop_connections()
        go.touch()

    thread = threading.Thread(target=drop)
    thread.start()
    done = with_jobs.run(["sh", "-c", script])
    thread.join()
    assert (done.status, done.stdout) == (0, "done\n")
    for _ in range(2):  # what has ended is forgotten by the next, but for what a shell may still come to
        with_jobs.run(["true"])
    (left,) = [home for home in with_jobs.jobs.iterdir() if str(begun) in (home / "script").read_text()]
    late = job(f"echo x >> {begun}", left)
    assert subprocess.run(["/bin/sh", "-s"], input=late, capture_output=True, text=True, check=True).stdout == "done\n"
    assert begun.read_text() == "x\n"


def test_a_look_is_repeated_when_the_connection_drops(machine, hosts, tmp_path):
    looks = tmp_path / "looks"
    thread = drops_when(looks.exists, hosts[0])
    first = f"[ -e {looks} ] && echo again && exit; touch {looks}; while [ -e {looks} ]; do sleep 0.05; done"
    assert machine.looked(["sh", "-c", first]).stdout == "again\n"
    thread.join()
    looks.unlink()


def test_a_host_that_was_there_is_waited_for(machine, hosts):
    machine.check()
    hosts[0].drop_connections()
    assert machine.looked(["echo", "here"]).stdout == "here\n"


def test_a_host_that_was_given_up_is_tried_again_when_its_loss_is_forgotten(hosts):
    machine = RemoteMachine(hosts[1].login, patience_s=0.5)
    machine.check()
    hosts[1].crash()
    try:
        with pytest.raises(HostLost, match="cannot be reached by ssh"):
            machine.looked(["echo", "here"])
    finally:
        hosts[1].boot()
    with pytest.raises(HostLost, match="cannot be reached by ssh"):
        machine.looked(["echo", "here"])
    machine.connection.forget_loss()
    assert machine.looked(["echo", "here"]).stdout == "here\n"
    machine.close()


def test_what_still_runs_is_ended_with_the_jobs(machine, hosts, tmp_path):
    jobs, next_command = tmp_path / "jobs", tmp_path / "next"
    for _ in range(2):  # asked again, as after a drop of the connection
        machine.begin_jobs(jobs)
    # so long that the command has begun, also on a busy machine
    with pytest.raises(HostError, match=r"did not end within 6 s"):
        machine.run(["sh", "-c", f"sleep 3600; touch {next_command}; sleep 3601"], timeout_s=6)
    wait_until(lambda: "sleep 3600" in hosts[0].commands())
    machine.end_jobs(jobs)
    wait_until(lambda: not any("sleep 360" in command for command in hosts[0].commands()))
    assert not next_command.exists()
    assert not jobs.exists()


class TestRefusals:
    def refusal(self, login):
        machine = RemoteMachine(login)
        with pytest.raises(HostTrouble) as refused:
            machine.check()
        machine.close()
        return str(refused.value)

    def test_an_unknown_host_key(self, hosts, known_hosts):
        known_hosts.write_text("")
        said = self.refusal(hosts[0].login)
        assert "is not in known_hosts" in said
        assert f"`ssh {hosts[0].login}` once" in said
        assert "ssh-keyscan" in said

    def test_a_key_that_changed(self, hosts, known_hosts):
        _, b = known_hosts.read_text().splitlines()
        known_hosts.write_text(f"{hosts[0].address} {b.partition(' ')[2]}\n")
        said = self.refusal(hosts[0].login)
        assert "is not the one in known_hosts" in said
        assert f"ssh-keygen -R {hosts[0].address}" in said

    def test_configuration_that_would_trust_every_key(self, hosts, known_hosts, ssh_home):
        known_hosts.unlink()
        configuration = ssh_home / ".ssh/config"
        configuration.write_text("Host *\n  UserKnownHostsFile none\n  StrictHostKeyChecking no\n")
        try:
            assert "is not in known_hosts" in self.refusal(hosts[0].login)
        finally:
            configuration.unlink()

    def test_a_name_of_the_configuration_leads_to_its_host_with_its_key(self, hosts, ssh_home):
        configuration, key = ssh_home / ".ssh/config", ssh_home / ".ssh/id_ed25519"
        elsewhere = key.rename(ssh_home / "key-of-bench")
        configuration.write_text(
            f"Host bench\n  HostName {hosts[1].address}\n  User root\n  IdentityFile {elsewhere}\n"
        )
        try:
            machine = RemoteMachine("bench")
            assert machine.seen[1] == hosts[1].address
            machine.close()
        finally:
            configuration.unlink()
            elsewhere.rename(key)

    def test_no_key_that_is_accepted(self, hosts, ssh_home):
        key = ssh_home / ".ssh/id_ed25519"
        hidden = key.rename(key.with_name("hidden"))
        try:
            said = self.refusal(hosts[0].login)
        finally:
            hidden.rename(key)
        assert "accepts none of your keys" in said
        assert "ssh-copy-id" in said

    def test_a_port_that_nobody_listens_on(self, hosts, ssh_home):
        configuration = ssh_home / ".ssh/config"
        configuration.write_text(f"Host shut\n  HostName {hosts[0].address}\n  Port 2222\n")
        try:
            said = self.refusal("shut")
        finally:
            configuration.unlink()
        assert "refuses connections on port 2222" in said
        assert "firewall" in said

    def test_a_name_that_has_no_address(self, ssh_home):
        assert "no address is known for nowhere.invalid" in self.refusal("root@nowhere.invalid")

    def test_a_login_without_a_posix_shell(self, hosts):
        assert "does not answer as a POSIX shell" in self.refusal(f"nobody@{hosts[0].address}")

    def test_a_host_with_windows_which_is_told_how_it_can_be_an_arm(self, windows, hosts):
        said = self.refusal(windows)
        assert (
            "if the host has Windows, start its server yourself and name the server by dsn, with ssh beside the dsn"
            in said
        )
        assert "'uname' is not recognized" in said
