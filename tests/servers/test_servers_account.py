"""The servers' account cannot have root delete, write, kill or read what is not the account's."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from pgtrial.servers.leftovers import clean, leftovers
from pgtrial.servers.workspace import Workspace
from tests.conftest import require_root, require_server
from tests.servers.intruder import ATTACKS, as_account, exchange, victim, writable

_LAB = """
import sys
from pathlib import Path
from pgtrial.machines.volumes import MountPoint
from pgtrial.servers.cluster import Cluster, create_cluster
from pgtrial.servers.installations import resolve
from pgtrial.servers.templates import TemplateKey, TemplateOrder
from pgtrial.servers.workspace import Workspace
with Workspace(Path(sys.argv[1])) as workspace:
    server = workspace.reachable(resolve("18"))
    def build(data):
        create_cluster(workspace, server, data)
    order = TemplateOrder(TemplateKey("kind", "18", 1), "scale 1", {}, build)
    workspace.templates.ensure(order, workspace.directory("staging"), print, [])
    data = workspace.directory("data")
    create_cluster(workspace, server, data)
    workspace.changes.make(MountPoint(path=workspace.root / "volume-storage"))
    cluster = Cluster(workspace, server, data, workspace.socket_directory())
    cluster.start(workspace.root / "log")
    print(workspace.account, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def lab(fresh_state):
    """Yields a running lab that has a server, a template and a change to the machine, with the account that runs its
    servers.
    """
    require_root()
    require_server(18)
    with subprocess.Popen(
        [sys.executable, "-c", _LAB, str(fresh_state / "state")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        yield process, process.stdout.readline().strip()
        process.kill()
    clean(fresh_state / "state")


@pytest.mark.parametrize("killed", [True, False])
@pytest.mark.parametrize("attack", ATTACKS)
def test_root_touches_nothing_for_the_servers_account(fresh_state, lab, attack, killed):
    process, account = lab
    state = fresh_state / "state"
    with victim(fresh_state / "victim") as target:
        before = target.state()
        if killed:
            process.send_signal(signal.SIGKILL)
            process.wait()
        seen = [*state.rglob("*")]  # more than the account sees
        assert as_account(account, lambda: exchange(seen, attack, target)), (
            "the account has nothing that it could exchange"
        )
        if not killed:
            process.stdin.close()
            process.wait()
        clean(state)
        with Workspace(state):
            pass
        assert target.state() == before
        assert list((state / "runs").iterdir()) == []
        assert leftovers(state) == []


def test_the_account_owns_data_and_sockets_alone(fresh_state, lab):
    _, account = lab
    state = fresh_state / "state"

    seen = [*state.rglob("*")]

    def look():
        names = sorted("/".join(path.relative_to(state).parts[2:]) for path in writable(seen))
        assert names == ["002-data", "data", "s/3"], names

    as_account(account, look)
