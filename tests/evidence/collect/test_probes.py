"""The durability probe, round trips, and where a server is."""

from __future__ import annotations

import os
import socket
import tempfile
from pathlib import Path

import pytest

from pgtrial.evidence.collect import flush, network, subject
from pgtrial.evidence.collect.collect import collect, collect_machine
from pgtrial.evidence.collect.flush import parse_pg_test_fsync, rates_of
from pgtrial.loads.target import Target
from pgtrial.machines.machine import LOCAL
from tests.conftest import require, require_server
from tests.machines.shell import ShellMachine
from tests.verdict.rules.cases import rate_fits_time

from .recordings import recorded

RATES = {"flushes_per_s", "flush_us", "flush_tool"}


def test_dd_measures_and_leaves_nothing(tmp_path):
    found = flush.flush_rate(LOCAL, tmp_path, tmp_path / "nobody starts it")
    assert set(found) == RATES
    assert rate_fits_time(found)
    assert found["flush_tool"] == "dd, dsync"
    assert list(tmp_path.iterdir()) == []


def test_where_dd_cannot_flush_the_servers_own_tool_measures_and_leaves_nothing(disk_path, tmp_path, monkeypatch):
    dd = tmp_path / "dd"
    dd.write_text("#!/bin/sh\necho 'dd: unknown oflag dsync' >&2\nexit 1\n")  # as of a BSD
    dd.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    found = flush.flush_rate(ShellMachine(), disk_path, require_server(18).bin / "pg_test_fsync")
    assert rate_fits_time(found)
    assert found["flush_tool"] == "pg_test_fsync, fdatasync"
    assert list(disk_path.iterdir()) == []
    broken = tmp_path / "pg_test_fsync"
    broken.write_text("#!/bin/sh\nexit 1\n")
    broken.chmod(0o755)
    assert flush.flush_rate(ShellMachine(), disk_path, broken) == dict.fromkeys(RATES)


def test_the_line_of_pg_test_fsync_is_read():
    told = [rates for line in recorded("pg_test_fsync.txt").splitlines() if (rates := parse_pg_test_fsync(line))]
    assert told == [{"flushes_per_s": 336, "flush_us": 2972.6, "flush_tool": "pg_test_fsync, fdatasync"}]


def test_a_device_that_stalls_has_a_rate_and_one_without_a_flush_has_none():
    assert rates_of(2.5, "a tool") == {"flushes_per_s": 0.4, "flush_us": 2.5e6, "flush_tool": "a tool"}
    assert parse_pg_test_fsync("        fdatasync               0.250 ops/sec  4000000 usecs/op") == {
        **{"flushes_per_s": 0.25, "flush_us": 4e6, "flush_tool": "pg_test_fsync, fdatasync"}
    }
    assert parse_pg_test_fsync("        fdatasync               0.000 ops/sec  0 usecs/op") is None


def test_a_volume_that_nobody_may_write_to_is_unknown(tmp_path):
    assert flush.flush_rate(LOCAL, tmp_path / "absent") == dict.fromkeys(RATES)


@pytest.mark.server
def test_probes_are_made_only_when_asked_for(clusters):
    one = clusters(18)
    assert collect("A", one.target, one.data_directory).facts["probes"] == {}
    probes = collect("A", one.target, one.data_directory, measure=True).facts["probes"]
    assert probes["flushes_per_s"] > 0
    assert probes["flush_tool"] == "dd, dsync"
    assert 0 < probes["round_trip_min_us"] <= probes["round_trip_median_us"]
    assert not list(one.data_directory.glob("pgtrial-*"))


@pytest.mark.server
def test_nothing_is_written_to_the_volume_of_somebody_elses_server(clusters):
    probes = collect("A", clusters(18).target, measure=True).facts["probes"]
    assert "flushes_per_s" not in probes
    assert "round_trip_median_us" in probes


def test_wal_on_a_device_of_its_own_is_measured_apart(disk_path):
    shared = Path("/dev/shm")
    require(shared.is_dir() and os.access(shared, os.W_OK), "/dev/shm")
    require(shared.stat().st_dev != disk_path.stat().st_dev, "two file systems")
    with tempfile.TemporaryDirectory(prefix="pgt-", dir=shared) as wal:
        (disk_path / "pg_wal").symlink_to(wal)
        probes = collect_machine(disk_path, measure=True).facts["probes"]
    assert probes["wal_flushes_per_s"] > 0


@pytest.mark.server
def test_a_server_on_a_private_socket_is_here_and_its_way_is_told(clusters):
    facts = collect("A", clusters(18).target).facts
    assert facts["network"] == {"path": "unix socket", "interface": None, "mtu": None, "tls": "none"}
    assert facts["client"]["connection"] == "this machine"
    assert facts["limits"]


@pytest.mark.server
def test_a_server_behind_the_loopback_address_is_here_by_its_process(start_cluster, free_port):
    cluster = start_cluster(
        settings={"listen_addresses": "127.0.0.1", "port": str(free_port)},
        hba="local all all trust\nhost all all 127.0.0.1/32 trust\n",
    )
    facts = collect("A", Target("127.0.0.1", free_port, "postgres", "postgres", extra={"sslmode": "disable"})).facts
    assert facts["network"]["path"] == "loopback"
    assert facts["network"]["mtu"] > 1000
    assert facts["storage"]["filesystem"]
    assert cluster.data_directory.exists()


@pytest.mark.server
def test_a_server_behind_a_tunnel_is_elsewhere_and_its_host_unknown(start_cluster, free_port, monkeypatch):
    start_cluster(
        settings={"listen_addresses": "127.0.0.1", "port": str(free_port)},
        hba="local all all trust\nhost all all 127.0.0.1/32 trust\n",
    )
    monkeypatch.setattr(subject, "backend_process", lambda number, files: None)
    facts = collect("A", Target("127.0.0.1", free_port, "postgres", "postgres", extra={"sslmode": "disable"})).facts
    assert facts["network"]["path"] == "loopback, leading elsewhere"
    assert facts["client"]["connection"] == "over the network"
    assert (facts["cpu"], facts["memory"], facts["storage"], facts["limits"]) == ({}, {}, {}, {})
    assert facts["server"]["version"]


@pytest.mark.parametrize("here", [True, False])
def test_an_address_that_is_not_this_machines_is_reached_by_the_network_even_if_the_host_is(here):
    assert network._path("192.0.2.1", here=here) == "network"
    assert network._path(None, here=here) == "unix socket"


def test_the_machine_knows_its_own_addresses():
    own = subject.own_addresses()
    assert "127.0.0.1" in own
    assert all(socket.getaddrinfo(address, None) for address in own)
