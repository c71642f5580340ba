"""Behind ssh the servers' account cannot have root delete, write, kill or read what is not the account's."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pgtrial.machines.machine import HostError
from pgtrial.servers import undo
from pgtrial.servers.host_run_directory import HostRunDirectory
from pgtrial.servers.leftovers import clean, leftovers
from tests.machines.ssh.test_ssh_arms import LAB
from tests.servers.intruder import ATTACKS, as_account, exchange, victim, writable

pytestmark = pytest.mark.machine


_ACCOUNT = "postgres"


@pytest.fixture
def lab(tmp_path, hosts, postgres, fresh_state):
    """Yields a process of the lab that has started a server on a host. It stops the server when its standard input is
    closed.
    """
    file = tmp_path / "study.toml"
    arm = f'ssh = "{hosts[0].login}"\ndata = "{hosts[0].data}"\npostgres = "{postgres}"\n'
    file.write_text(f"[load]\nscale = 1\nclients = 1\n[arms.a]\n{arm}[arms.b]\n{arm}port = 54322\n")
    with subprocess.Popen(
        [sys.executable, "-c", LAB, file, tmp_path / "log"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PGTRIAL_STATE": str(fresh_state)},
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "serving\n"
        yield process
        process.kill()
    clean(fresh_state)


@pytest.mark.server
@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.parametrize("killed", [True, False])
def test_root_touches_nothing_for_the_servers_account(fresh_state, hosts, lab, attack, killed):
    log = Path(lab.args[-1])
    assert hosts[0].note_run_directories()
    with victim(fresh_state / "victim") as target:
        before = target.state()
        if killed:
            lab.send_signal(signal.SIGKILL)
            lab.wait()
        seen = [*hosts[0].data.rglob("*")]  # more than the account sees
        assert as_account(_ACCOUNT, lambda: exchange(seen, attack, target)), (
            "the account has nothing that it could exchange"
        )
        if not killed:
            lab.stdin.close()
            lab.wait()
        clean(fresh_state)
        assert target.state() == before
        assert b"root's secret" not in log.read_bytes()
        assert leftovers(fresh_state) == []
        assert hosts[0].left_in_the_end() == []


@pytest.mark.server
def test_the_account_owns_data_sockets_and_logs_alone(hosts, lab):
    seen = [*hosts[0].data.rglob("*")]

    def look():
        names = sorted(path.name for path in writable(seen))
        assert names == ["001-s0", "002-template-s0", "004-log", "3"], names

    as_account(_ACCOUNT, look)


def test_a_folder_that_the_account_could_exchange_is_refused(tmp_path, hosts):
    folder = hosts[0].folder / "theirs"
    for owner, mode in ((_ACCOUNT, 0o755), ("root", 0o777)):
        folder.mkdir(mode=0o755, exist_ok=True)
        folder.chmod(mode)
        os.chown(folder, *(0, 0) if owner == "root" else (_number(owner), -1))
        with pytest.raises(HostError, match="which could exchange what root keeps below it"):
            HostRunDirectory.make(tmp_path, hosts[0].login, str(folder / "data"), sudo=False)
    assert list(folder.iterdir()) == []
    assert undo.of_run(tmp_path).pending() == []
    folder.rmdir()


@pytest.mark.parametrize("account", [_ACCOUNT, "games"])
def test_a_run_directory_that_is_another_accounts_now_is_left_alone_and_told(tmp_path, hosts, account):
    directory = HostRunDirectory.make(tmp_path, hosts[0].login, str(hosts[0].data), sudo=False)
    (directory.root / "changes").mkdir()
    directory.machine.close()
    hosts[0].note_run_directories()
    for path in (directory.root, directory.root / "changes"):
        os.chown(path, _number(account), -1)
    _, [told] = undo.of_run(tmp_path).undo()
    assert directory.root.exists()
    if account == _ACCOUNT:  # as run directories once were: what to do is said, and does it
        assert f"it belongs to {account}, as run directories of earlier versions of pgtrial do" in told
        command = re.search(r"run on that host: (chown .*)\); correct the cause", told)
        assert command is not None
        subprocess.run(["sh", "-c", command[1]], check=True)
    else:
        assert "belongs to another account" in told
        for path in (directory.root, directory.root / "changes"):
            os.chown(path, 0, 0)
    assert undo.of_run(tmp_path).undo()[1] == []
    assert hosts[0].left_in_the_end() == []


def _number(account):
    return int(subprocess.check_output(["id", "-u", account], text=True))
