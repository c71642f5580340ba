"""The canary measures this machine, and leaves nothing behind."""

from contextlib import suppress

import psutil
import pytest

from pgtrial.evidence.observe import canary
from pgtrial.evidence.observe.canary import CanaryProbes
from pgtrial.servers.postmaster import stop_servers_below
from tests.conftest import require_engine

pytestmark = pytest.mark.server


@pytest.fixture
def places(workspace):
    require_engine()
    directory = workspace.directory("canary")
    directory.mkdir()
    return directory, workspace.own_socket_directory()


def null_servers(directory):
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.name() == "pgtrial-engine" and process.cwd() == str(directory.resolve()):
                found.append(process)
    return found


def test_every_probe_measures_and_what_passed_between_two_canaries_is_known_of_the_second(places, monkeypatch):
    # a tenth of the work, and time enough for it on a machine that has much else to do
    monkeypatch.setattr(canary, "_TRANSACTIONS", 4000)
    monkeypatch.setattr(canary, "_PATIENCE_S", 300.0)
    probes = CanaryProbes(*places)
    first, second = probes(), probes()
    for reading in (first, second):
        assert reading.cpu_per_s is not None
        assert reading.cpu_per_s > 0
        assert reading.flushes_per_s is not None
        assert reading.flushes_per_s > 0
        assert reading.select1_per_s is not None
        assert reading.select1_per_s > 0
    assert first.steal_share is None
    assert first.pressure == {}
    assert second.steal_share is None or 0 <= second.steal_share <= 1
    assert all(0 <= share <= 1 for share in second.pressure.values())
    assert second.taken != first.taken
    assert not null_servers(places[0])
    assert [path.name for path in places[0].iterdir()] == ["select1.sql"]


def test_what_cannot_be_measured_is_unknown_and_nothing_else_suffers(places, monkeypatch):
    directory, sockets = places
    monkeypatch.setenv("PGTRIAL_ENGINE", "/bin/false")
    reading = CanaryProbes(directory / "absent", sockets)()
    assert reading.cpu_per_s is not None
    assert reading.flushes_per_s is None
    assert reading.select1_per_s is None


def test_a_null_server_left_by_a_lab_that_was_killed_is_ended_with_its_run(places):
    directory, _ = places
    with CanaryProbes(*places)._null_server():
        assert len(null_servers(directory)) == 1
        assert stop_servers_below(directory) == 1
        assert null_servers(directory) == []
