"""Tests of the kernel counters of a server's host, both of this machine and of a host that is reached through a
shell.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from pgtrial.evidence.observe import linux
from pgtrial.evidence.observe.host import HostSampler, read_host
from pgtrial.evidence.observe.linux import LocalLinux
from pgtrial.evidence.observe.shell import Shell
from pgtrial.evidence.observe.system import CPU_MODES
from pgtrial.evidence.observe.views import deltas
from pgtrial.machines.machine import LOCAL, Done, HostLost
from tests.conftest import require
from tests.machines.shell import ShellMachine

RECORDED = Path(__file__).parent / "recorded"


class Saying:
    """A host that answers every command with the same text, or is gone."""

    def __init__(self, text: str | None):
        self._text = text

    def looked(self, command: object, user: str | None = None) -> Done:
        del command, user
        if self._text is None:
            raise HostLost("somebody@elsewhere is gone")
        return Done(0, self._text, "")


def served_by(process: int) -> Any:
    """Returns a stand-in for a session, of which the sampler needs only the number of its server process."""
    return SimpleNamespace(info=SimpleNamespace(backend_pid=process))


def wait_for(condition: Callable[[], bool], patience_s: float = 120.0) -> None:
    deadline = time.monotonic() + patience_s
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.server
@pytest.mark.parametrize("machine", [LOCAL, ShellMachine()], ids=["here", "behind a shell"])
def test_a_servers_work_is_counted_as_its_own(start_cluster, machine):
    require(Path("/proc/stat").exists(), "Linux")
    cluster = start_cluster()
    before = read_host(machine, cluster.data_directory)
    with cluster.target.connect_as_user() as connection:
        session = connection.info.backend_pid
        connection.execute("SELECT sum(sqrt(n)) FROM generate_series(1, 2000000) AS n")
    wait_for(lambda: not psutil.pid_exists(session))
    # the time of the session is now that of a process which is no more
    host = deltas(before, read_host(machine, cluster.data_directory))["host"]
    assert host["server_cpu_s"] > 0.05
    assert host["cpu_busy_s"] >= host["server_cpu_s"] / 2
    assert host["cpu_s"] > 0
    assert 0 <= host["cpu_steal_s"] <= host["cpu_s"]


@pytest.mark.server
def test_a_server_that_is_not_ours_is_found_by_the_process_that_serves_the_lab(start_cluster):
    require(Path("/proc/stat").exists(), "Linux")
    cluster, machine = start_cluster(), ShellMachine()
    with cluster.target.connect_as_user() as session:
        before = read_host(machine, None, session)
        session.execute("SELECT sum(sqrt(n)) FROM generate_series(1, 2000000) AS n")
        host = deltas(before, read_host(machine, None, session))["host"]
        assert host["server_cpu_s"] > 0.05
        # another directory that cannot be read is no hindrance
        assert read_host(machine, Path("/nonexistent"), session)["host"]["server_cpu_s"] > 0.05
    looking = Shell(machine, None, os.getpid())
    assert "processes" not in looking.look().counters


@pytest.mark.parametrize("machine", [None, LOCAL, ShellMachine()], ids=["unknown", "here", "behind a shell"])
def test_without_a_server_of_ours_its_share_is_not_there(machine):
    require(Path("/proc/stat").exists(), "Linux")
    host = read_host(machine, None)["host"]
    assert "server_cpu_s" not in host
    assert host["elapsed_s"] > 0
    # whichever way leads there, it is the machine that the lab itself runs on
    assert host["lab_cpu_s"] > 0


@pytest.mark.server
def test_one_round_trip_tells_of_another_host_what_all_files_tell_of_this_one(clusters):
    require(Path("/proc/stat").exists(), "Linux")
    cluster, shell = clusters(18), ShellMachine()
    with cluster.target.connect_as_user() as connection:
        near, far = (HostSampler(machine, cluster.data_directory, connection) for machine in (LOCAL, shell))
        assert isinstance(near.system, LocalLinux)
        assert isinstance(far.system, Shell)
        near.look()
        far.look()
        cards: list[tuple[int, str]] = []
        # tests beside this one make and remove network interfaces, whose bytes come and go with them
        while cards != (cards := socket.if_nameindex()):
            trips = shell.round_trips
            one, other, again = near.look(), far.look(), near.look()
            assert shell.round_trips - trips <= 1
        assert other.on_labs_machine
        taken = far.cpu_taken_s()
        assert taken > near.cpu_taken_s() / 2 > 0
    assert {source: set(values) for source, values in one.counters.items()} == {
        source: set(values) for source, values in other.counters.items()
    }
    for source, values in other.counters.items():
        for name, value in values.items():
            # device, network and processes go on meanwhile; a process may have ended between two readings
            slack = 0.1 * abs(value) + (0.5 if name.endswith("_s") else 0)
            assert one.counters[source][name] - slack <= value <= again.counters[source][name] + slack, (source, name)
    assert set(other.gauges["memory"]) == {"available_bytes", "cached_bytes", "dirty_bytes"}


def test_a_kernel_that_lists_no_children_has_all_its_processes_looked_through():
    stats = [
        "1 (init) S 0 1 1 0 -1 0 0 0 0 0 100 100 0 0 20 0",
        "812 (postgres) S 1 812 812 0 -1 0 0 0 0 0 200 100 50 50 20 0",
        "815 (postgres: (x) y) S 812 815 815 0 -1 0 0 0 0 0 10 20 7 7 20 0",
        "901 (other) S 815 901 901 0 -1 0 0 0 0 0 900 900 0 0 20 0",
        "",
    ]
    assert linux.group_cpu(812, stats, 100.0) == pytest.approx(4.3)
    assert linux.group_cpu(900, stats, 100.0) is None


def test_freebsd_tells_cpu_network_and_the_server():
    text = "".join(
        line for line in (RECORDED / "freebsd-look.txt").read_text().splitlines(True) if not line.startswith("#")
    )
    seen = Shell(Saying(text), Path("/var/db/pgtrial")).look()
    assert seen.counters == {
        "cpu": {
            "user_s": 100.0,
            "nice_s": 1.0,
            "system_s": 50.0,
            "irq_s": 2.0,
            "idle_s": 10000.0,
            "context_switches": 987654.0,
        },
        "processes": {"server_cpu_s": 65.5 + 2.25 + (24 + 2) * 3600 + 1.25},
        "network": {"bytes": 11000.0},
    }
    host = read_host(Saying(text), Path("/var/db/pgtrial"), network=True)["host"]
    assert (host["cpu_s"], host["cpu_busy_s"], host["network_bytes"]) == (10153.0, 153.0, 11000.0)
    assert not {"cpu_steal_s", "lab_cpu_s", "memory_stall_s"} & set(host)


@pytest.mark.parametrize("text", ["system Plan9\n", "", None])
def test_a_host_that_tells_nothing_leaves_no_numbers(text):
    assert read_host(Saying(text), Path("/srv")) == {}


def test_a_system_that_is_not_known_is_named():
    found = Shell(Saying("system Plan9\n"), None).look()
    assert found.counters == {}
    assert found.unsupported == "Plan9"


def test_the_cost_of_looks_is_the_time_of_shell_grep_and_session():
    text = "system Linux\nspent 250000000\n/proc/7/schedstat:500000000 1 2\n/proc/self/schedstat:500000000 9 9\n"
    looking = HostSampler(Saying(text), Path("/srv"), served_by(7))
    looking.look()
    looking.look()
    assert looking.cpu_taken_s() == pytest.approx(0.5 + 2 * 0.75)


def test_a_kernel_without_getconf_counts_in_hundredths():
    text = "system Linux\nticks \ndevice none\n/proc/stat:cpu  100 0 0 200 0 0 0 0 0 0\n/proc/stat:ctxt 7\n"
    assert Shell(Saying(text), None).look().counters["cpu"] == {
        **{f"{mode}_s": 0.0 for mode in CPU_MODES},
        "user_s": 1.0,
        "idle_s": 2.0,
        "context_switches": 7.0,
    }
