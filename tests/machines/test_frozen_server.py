"""Background processes of a server are stopped, and go on: by who stopped them, or by the journal after a crash."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psutil
import pytest

from pgtrial.machines.journal import HostJournal, pending, undo_all
from pgtrial.machines.machine import LOCAL, HostError
from pgtrial.machines.server import FrozenServer, Processes
from pgtrial.servers.cluster import Cluster
from pgtrial.servers.postmaster import server_processes
from tests.background import background
from tests.conftest import require
from tests.machines.shell import ShellMachine

pytestmark = [pytest.mark.server, pytest.mark.machine]


BACKGROUND = ("checkpointer", "background writer", "writer", "wal", "autovacuum", "logical", "bgworker: logical")
"""How titles begin, in all versions."""


@pytest.fixture(autouse=True)
def _linux() -> None:
    require(os.path.exists("/proc/self/task"), "Linux")


def titles(cluster: Cluster) -> dict[str, bool]:
    """Title of each process of a server, without the first word, and whether it is stopped."""
    found = {}
    for process in server_processes(cluster.data_directory):
        with suppress(psutil.NoSuchProcess):
            title = " ".join(process.cmdline()).rstrip("\0 ").removeprefix("postgres: ")
            found[title] = process.status() == psutil.STATUS_STOPPED
    return found


def stopped(cluster: Cluster) -> set[str]:
    return {title for title, is_stopped in titles(cluster).items() if is_stopped}


def freeze(cluster: Cluster) -> Processes:
    """Stop the background processes, and wait until they are."""
    processes = FrozenServer(data=cluster.data_directory).processes()
    background(cluster.data_directory, "checkpointer")
    assert processes.freeze()
    # of a server that has just started some begin only now, and are stopped by the next call
    while not all(is_stopped for title, is_stopped in titles(cluster).items() if title.startswith(BACKGROUND)):
        time.sleep(0.01)
        processes.freeze()
    return processes


@contextmanager
def frozen(cluster: Cluster) -> Iterator[Processes]:
    processes = freeze(cluster)
    try:
        yield processes
    finally:
        processes.thaw()


def test_what_works_in_the_background_is_stopped_and_sessions_go_on(cluster):
    background(cluster.data_directory, "autovacuum")
    with cluster.target.connect() as before, frozen(cluster):
        assert {title.split()[0] for title in stopped(cluster)} >= {"checkpointer", "autovacuum"}
        assert all(title.startswith(BACKGROUND) for title in stopped(cluster))
        for session in (before, cluster.target.connect()):
            with session:
                assert session.execute("SELECT 1").fetchone() == (1,)
    assert stopped(cluster) == set()


def test_nothing_is_stopped_while_a_session_is_in_a_transaction(start_cluster):
    cluster = start_cluster()
    processes = FrozenServer(data=cluster.data_directory).processes()
    with cluster.target.connect() as session:
        session.execute("BEGIN")
        assert not processes.freeze()
        assert stopped(cluster) == set()
        session.execute("COMMIT")
        with frozen(cluster):
            assert stopped(cluster) != set()


def test_a_process_that_is_new_is_stopped_the_next_time(start_cluster):
    cluster = start_cluster()
    with frozen(cluster) as processes:
        writer = background(cluster.data_directory, "walwriter")
        writer.send_signal(signal.SIGTERM)
        writer.send_signal(signal.SIGCONT)
        writer.wait()
        while "walwriter" not in stopped(cluster):
            time.sleep(0.01)
            processes.freeze()


def test_a_frozen_server_of_a_lab_that_crashed_goes_on(start_cluster, tmp_path):
    cluster = start_cluster()
    HostJournal(tmp_path, LOCAL).make(FrozenServer(data=cluster.data_directory))
    assert pending(tmp_path, LOCAL) == [f"frozen PostgreSQL server in {cluster.data_directory}"]
    with frozen(cluster):
        assert undo_all(tmp_path, LOCAL) == []
        assert stopped(cluster) == set()


def test_processes_that_have_lost_their_postmaster_go_on_as_well(start_cluster):
    cluster = start_cluster()
    change = FrozenServer(data=cluster.data_directory)
    with frozen(cluster) as processes:
        os.kill(processes.postmaster, signal.SIGKILL)
        assert stopped(cluster) != set()
        change.undo(LOCAL)
        assert stopped(cluster) == set()


@pytest.mark.parametrize("immediate", [False, True])
def test_a_frozen_server_is_stopped_at_once(start_cluster, immediate):
    cluster = start_cluster()
    log = cluster.data_directory.with_suffix(".log")
    freeze(cluster)
    cluster.stop(immediate=immediate)
    assert server_processes(cluster.data_directory) == []
    assert "database system is shut down" in log.read_text()
    assert "issuing SIGKILL" not in log.read_text(), "the postmaster had to wait for its children"


def test_a_frozen_server_whose_postmaster_was_killed_leaves_no_process(start_cluster):
    cluster = start_cluster()
    with frozen(cluster) as processes:
        os.kill(processes.postmaster, signal.SIGKILL)
        cluster.stop()
        assert server_processes(cluster.data_directory) == []


def test_a_server_elsewhere_or_none_is_refused(start_cluster, tmp_path):
    with pytest.raises(HostError, match="in time"):
        FrozenServer(data=start_cluster().data_directory).make(ShellMachine())
    with pytest.raises(HostError, match="no server"):
        FrozenServer(data=tmp_path).make(LOCAL)
