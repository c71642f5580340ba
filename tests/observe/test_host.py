"""What the host's kernel counts while a server works."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import psutil

from pgtrial.observe.counters import deltas
from pgtrial.observe.host import read_host
from tests.conftest import require


def wait_for(condition: Callable[[], bool], patience_s: float = 20.0) -> None:
    deadline = time.monotonic() + patience_s
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)


def test_a_servers_work_is_counted_as_its_own(start_cluster):
    require(Path("/proc/stat").exists(), "Linux")
    cluster = start_cluster()
    before = read_host(cluster.data_directory)
    with cluster.target.connect() as connection:
        session = connection.info.backend_pid
        connection.execute("SELECT sum(sqrt(n)) FROM generate_series(1, 2000000) AS n")
    wait_for(lambda: not psutil.pid_exists(session))
    # the time of the session is now that of a process which is no more
    host = deltas(before, read_host(cluster.data_directory))["host"]
    assert host["server_cpu_s"] > 0.05
    assert host["cpu_busy_s"] >= host["server_cpu_s"] / 2
    assert host["cpu_s"] > 0
    assert 0 <= host["cpu_steal_s"] <= host["cpu_s"]


def test_without_a_server_of_ours_its_share_is_not_there():
    require(Path("/proc/stat").exists(), "Linux")
    host = read_host(None)["host"]
    assert "server_cpu_s" not in host
    assert host["elapsed_s"] > 0
