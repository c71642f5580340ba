"""Facts of another host: this machine behind a shell tells the same as this machine, and in few round trips."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from pgtrial.evidence.collect import collect, flush, network, subject
from pgtrial.evidence.collect.files import MachineFiles
from pgtrial.evidence.collect.flush import parse_dd
from pgtrial.evidence.collect.network import streamed_mb_s
from pgtrial.evidence.collect.subject import Subject
from pgtrial.loads.target import Target
from pgtrial.machines.machine import LOCAL, Done, HostLost
from tests.conftest import require
from tests.machines.shell import ShellMachine
from tests.verdict.rules.cases import rate_fits_time

from .recordings import recorded

pytestmark = pytest.mark.machine


RATES = {"flushes_per_s", "flush_us", "flush_tool"}
MOST_ROUND_TRIPS = 12


@pytest.mark.server
def test_this_machine_behind_a_shell_has_the_same_facts_in_few_round_trips(clusters):
    require(sys.platform == "linux", "Linux")
    one, machine = clusters(18), ShellMachine()
    near = collect.collect("A", one.target, one.data_directory)
    far = collect.collect("A", one.target, one.data_directory, machine=machine)
    assert far.facts == near.facts
    assert machine.round_trips <= MOST_ROUND_TRIPS


@pytest.mark.server
def test_the_directory_of_a_server_that_is_not_ours_is_asked_for_and_not_written_to(clusters):
    require(sys.platform == "linux", "Linux")
    one = clusters(18)
    facts = collect.collect("A", one.target, machine=ShellMachine(), measure=True).facts
    assert facts["storage"]["filesystem"]
    assert "flushes_per_s" not in facts["probes"]


def test_what_another_host_has_and_has_not_is_seen_as_here(tmp_path):
    require(Path("/bin/sh").exists(), "a POSIX shell")
    (tmp_path / "a b").mkdir()
    (tmp_path / "a b/one").write_text("1\n")
    (tmp_path / "a b/two").write_text("  \n")
    (tmp_path / "link").symlink_to("a b")
    near = MachineFiles(LOCAL)
    far = MachineFiles(ShellMachine(), [f"{tmp_path}/*", f"{tmp_path}/*/one"], [("echo", "x y"), ("false",)])
    for name in ("a b/one", "a b/two", "link/one", "none", "a b", "a b/one/none"):
        path = tmp_path / name
        assert (name, far.read(path), far.exists(path)) == (name, near.read(path), near.exists(path))
        assert (name, far.resolve(path)) == (name, near.resolve(path))
    for pattern in ("*", "a b/*", "*/o*", "none*", "[a]*"):
        assert far.glob(f"{tmp_path}/{pattern}") == near.glob(f"{tmp_path}/{pattern}")
    for command in (
        ("echo", "x y"),
        ("echo", "z"),
        ("false",),
        ("pgtrial-no-such-tool",),
        ("sh", "-c", "echo $LC_ALL"),
    ):
        assert (command, far.output(*command)) == (command, near.output(*command))
    assert far.uname == near.uname


def test_what_was_announced_costs_no_further_round_trip(tmp_path):
    require(Path("/bin/sh").exists(), "a POSIX shell")
    (tmp_path / "one").write_text("1")
    machine = ShellMachine()
    files = MachineFiles(machine, [f"{tmp_path}/*"], [("echo", "x")])
    assert files.uname.system
    trips = machine.round_trips
    assert (files.read(tmp_path / "one"), files.read(tmp_path / "two"), files.output("echo", "x")) == ("1", None, "x")
    assert files.exists(tmp_path / "one")
    assert not files.exists(tmp_path / "two")
    assert machine.round_trips == trips


def test_a_host_that_is_gone_is_an_error_and_no_unknown_value():
    class Gone(ShellMachine):
        def sh(self, script: str, *, timeout_s: float | None = None) -> Done:
            raise HostLost("somebody@somewhere is gone")

    with pytest.raises(HostLost, match="is gone"):
        collect.facts_of(Subject(None, None, Gone()))


def test_another_host_measures_flushes_by_dd(tmp_path):
    found = flush.flush_rate(ShellMachine(), tmp_path)
    assert set(found) == RATES
    assert found["flush_tool"] == "dd, dsync"
    assert rate_fits_time(found)
    assert list(tmp_path.iterdir()) == []
    assert flush.flush_rate(ShellMachine(), tmp_path / "absent") == dict.fromkeys(RATES)


def test_the_last_line_of_dd_is_read():
    assert parse_dd(recorded("gnu_dd.txt"), 20) == {"flushes_per_s": 336, "flush_us": 2975.0, "flush_tool": "dd, dsync"}
    assert parse_dd("dd: invalid output flag: 'dsync'", 20) is None


@pytest.mark.server
def test_of_a_server_elsewhere_clock_and_bandwidth_are_measured(start_cluster, free_port, monkeypatch):
    start_cluster(
        settings={"listen_addresses": "127.0.0.1", "port": str(free_port)},
        hba="local all all trust\nhost all all 127.0.0.1/32 trust\n",
    )
    monkeypatch.setattr(subject, "backend_process", lambda number, files: None)
    target = Target("127.0.0.1", free_port, "postgres", "postgres", extra={"sslmode": "disable"})
    probes = collect.collect("A", target, measure=True).facts["probes"]
    assert probes["bandwidth_mb_s"] > 0
    # it is the same clock
    assert abs(probes["clock_offset_us"]) <= probes["clock_offset_error_us"] + 1
    assert "clock_offset_us" not in collect.collect("A", target).facts["probes"]


@pytest.mark.server
def test_a_clock_that_is_ahead_has_a_positive_offset(clusters):
    with clusters(18).target.connect_as_user() as connection, connection.transaction(force_rollback=True):
        connection.execute("CREATE SCHEMA ahead")
        connection.execute(
            "CREATE FUNCTION ahead.clock_timestamp() RETURNS timestamptz LANGUAGE sql"
            " AS $$ SELECT pg_catalog.clock_timestamp() + interval '1 hour' $$"
        )
        connection.execute("SET LOCAL search_path = ahead, pg_catalog")
        offset, error = network.clock_offset(connection)
        assert offset == pytest.approx(3600e6, abs=error + 1)
        assert streamed_mb_s(connection) > 0


@pytest.mark.server
def test_only_a_server_elsewhere_has_a_clock_and_a_way_to_measure(clusters):
    one = clusters(18)
    with one.target.connect_as_user() as connection:
        for machine in (LOCAL, ShellMachine()):
            assert network.clock(Subject(connection, one.data_directory, machine, measure=True)) == {}
