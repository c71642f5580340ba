"""Servers that take turns: outside its slices the background processes of a server are frozen."""

from __future__ import annotations

import functools
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from pgtrial.machines.journal import HostJournal, pending
from pgtrial.machines.machine import LOCAL
from pgtrial.servers.freezing import Freezer, Slices
from pgtrial.servers.postmaster import server_processes
from pgtrial.servers.workspace import Workspace, clean, leftovers
from tests.background import background
from tests.conftest import require, require_root, require_server

pytestmark = pytest.mark.server


LONG_S = 600.0
"""No test lasts for as long as this."""

SLICES = Slices(LONG_S, 2, 0)
FIRST, SECOND = SLICES.order(0)

_NOBODY = 54321
"""A user who is neither root nor the one that servers run as."""


@pytest.fixture(autouse=True)
def _linux() -> None:
    require(os.path.exists("/proc/self/task"), "Linux")


@pytest.fixture
def pair(start_cluster):
    """The data directories of two servers, whose background processes can be told by their titles."""
    found = [start_cluster().data_directory for _ in range(2)]
    for data in found:
        checkpointer(data)
    return found


@functools.cache
def checkpointer(data: Path) -> psutil.Process:
    """The checkpointer of a server; to find it takes a look at every process, which is longer than some slices."""
    return background(data, "checkpointer")


def is_frozen(data: Path) -> bool:
    """Whether the checkpointer of the server stands still."""
    return checkpointer(data).status() == psutil.STATUS_STOPPED


def _journalled(workspace):
    """The frozen servers; other tests may have left the file of their volumes to the end of the workspace."""
    return [each for each in pending(workspace.root, LOCAL) if "frozen" in each]


def wait_frozen(*expected: tuple[Path, bool]) -> None:
    while [is_frozen(data) for data, _ in expected] != [wanted for _, wanted in expected]:
        time.sleep(0.01)


def test_a_server_is_frozen_in_the_slice_of_another_and_goes_on_at_the_end(pair, workspace):
    with Freezer(pair, SLICES, time.monotonic(), 2 * LONG_S, workspace.changes) as freezer:
        wait_frozen((pair[FIRST], False), (pair[SECOND], True))
        assert len(_journalled(workspace)) == 2
    assert freezer.notes == []
    assert not any(map(is_frozen, pair))
    assert _journalled(workspace) == []


def test_servers_are_frozen_in_turns_and_not_after_the_last_slice(pair, workspace):
    with Freezer(pair, Slices(0.3, 2, 0), time.monotonic(), LONG_S, workspace.changes):
        for _ in range(2):
            wait_frozen((pair[0], True), (pair[1], False))
            wait_frozen((pair[0], False), (pair[1], True))
    with Freezer(pair, Slices(0.3, 2, 0), time.monotonic(), 0.3, workspace.changes):
        wait_frozen((pair[0], False), (pair[1], False))


def test_before_the_start_nothing_is_frozen(pair, workspace):
    with Freezer(pair, SLICES, time.monotonic() + LONG_S, 2 * LONG_S, workspace.changes):
        assert not any(map(is_frozen, pair))


def test_an_error_in_the_load_leaves_nothing_frozen(pair, workspace):
    def load() -> None:
        with Freezer(pair, SLICES, time.monotonic(), 2 * LONG_S, workspace.changes):
            wait_frozen((pair[SECOND], True))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        load()
    assert not any(map(is_frozen, pair))


def test_if_one_server_cannot_be_frozen_none_is_and_a_note_says_why(pair, workspace):
    for others in ([None], [pair[0] / "base"]):
        with Freezer([*others, pair[1]], SLICES, time.monotonic(), 2 * LONG_S, workspace.changes) as freezer:
            (note,) = freezer.notes
        assert note.startswith("servers are not frozen outside their slices: ")
    assert _journalled(workspace) == []


def test_the_servers_of_another_user_are_not_frozen(pair, fresh_state):
    require_root()
    fresh_state.chmod(0o777)
    notes = fresh_state / "notes"
    child = os.fork()
    if not child:
        try:
            os.setgroups([])
            os.setgid(_NOBODY)
            os.setuid(_NOBODY)
            with Freezer(pair, SLICES, time.monotonic(), 2 * LONG_S, HostJournal(fresh_state, LOCAL)) as freezer:
                notes.write_text("\n".join(freezer.notes))
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert notes.read_text().startswith("servers are not frozen outside their slices: ")
    assert pending(fresh_state, LOCAL) == []
    assert not any(map(is_frozen, pair))


_LAB = """
import sys, time
from pathlib import Path
from pgtrial.servers.freezing import Slices
from pgtrial.servers.cluster import Cluster, create_cluster
from pgtrial.servers.room import copy_directory
from pgtrial.servers.freezing import Freezer
from pgtrial.servers.installations import resolve
from pgtrial.servers.workspace import Workspace
from tests.background import background
workspace = Workspace(Path(sys.argv[1]))
server = workspace.reachable(resolve("18"))
servers = [workspace.directory(name) for name in "ab"]
create_cluster(workspace, server, servers[0])
copy_directory(workspace, servers[0], servers[1], flush=False)
for data in servers:
    Cluster(workspace, server, data, workspace.socket_directory()).start(workspace.root / "log")
    background(data, "checkpointer")
with Freezer(servers, Slices(600.0, 2, 0), time.monotonic(), 1200.0, workspace.changes):
    print(*servers, flush=True)
    time.sleep(600)
"""


@pytest.mark.parametrize("mends", ["the next lab", "pgtrial cleanup"])
def test_the_frozen_servers_of_a_killed_lab_are_gone(fresh_state, mends):
    require_server(18)
    with subprocess.Popen([sys.executable, "-c", _LAB, str(fresh_state)], stdout=subprocess.PIPE, text=True) as lab:
        assert lab.stdout is not None
        pair = [Path(word) for word in lab.stdout.readline().split()]
        wait_frozen((pair[FIRST], False), (pair[SECOND], True))
        lab.send_signal(signal.SIGKILL)
    assert is_frozen(pair[SECOND])
    assert sum("frozen PostgreSQL server" in leftover.what for leftover in leftovers(fresh_state)) == 2
    if mends == "the next lab":
        with Workspace(fresh_state) as workspace:
            assert any("ended abruptly" in notice for notice in workspace.notices)
    else:
        assert any("ended abruptly" in notice for notice in clean(fresh_state))
    assert server_processes(fresh_state) == []
    assert leftovers(fresh_state) == []
