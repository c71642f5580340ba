"""Tests of the checks of a fleet's machines before they make a load, and of studies that lose a machine."""

from __future__ import annotations

import re
import socket
import time
from pathlib import Path

import psutil
import pytest

from pgtrial.loads.fleet.fleet import Fleet
from pgtrial.loads.fleet.members import round_trips_us
from pgtrial.loads.load_makers import LoadOrder
from pgtrial.loads.target import Target
from pgtrial.model.errors import ArmError, StudyError, TrialError
from pgtrial.model.study.fleet import FleetSection
from tests.conftest import require, require_engine
from tests.loads.fleet.here import Here

pytestmark = pytest.mark.server


@pytest.fixture
def gathered():
    require_engine()
    opened = []

    def gather(machines: Here, **keys) -> Fleet:
        opened.append(machines)
        fleet = Fleet(FleetSection(**keys), machines, range(len(machines.hosts)))
        fleet.gather()
        return fleet

    yield gather
    for machines in opened:
        machines.close()


def heard():
    said: list[str] = []
    return said, said.append


def test_hosts_of_one_name_are_told_apart(gathered):
    assert gathered(Here("a", "b")).names == ["a", "b"]
    machines = Here("a", "b")
    machines.hosts[1] = "a"
    assert gathered(machines).names == ["a-1", "a-2"]


def test_a_machine_that_is_lost_between_two_trials_is_done_without_and_the_trials_say_so(gathered):
    machines = Here("a", "b", "c")
    fleet = gathered(machines)
    said, tell = heard()
    assert fleet.ready(tell) == []
    machines.gone.add("b")
    notes = fleet.ready(tell)
    assert fleet.names == ["a", "c"]
    assert notes == [
        "this load was made by 2 of 3 machines of the fleet: b was lost (its node has left the Ray cluster)"
    ]
    assert said == ["b was lost (its node has left the Ray cluster); going on with a, c"]
    assert machines.dismissed == ["b"]
    assert fleet.ready(tell) == notes


def test_the_last_machine_cannot_be_done_without(gathered):
    machines = Here("a")
    fleet = gathered(machines)
    machines.gone.add("a")
    with pytest.raises(ArmError, match="no machine of the fleet is left: a was lost"):
        fleet.ready(print)


def test_a_replacement_takes_the_place_of_a_lost_machine(gathered):
    machines = Here("a", "b", free=["c"])
    fleet = gathered(machines, on_machine_loss="wait 90s")
    machines.gone.add("a")
    said, tell = heard()
    assert fleet.ready(tell) == []
    assert fleet.names == ["c", "b"]
    assert said == ["a was lost (its node has left the Ray cluster); waiting for another machine for 1min 30s"]


def test_where_no_replacement_comes_the_study_stops(gathered):
    machines = Here("a", "b")
    fleet = gathered(machines, on_machine_loss="wait 1s")
    machines.gone.add("b")
    with pytest.raises(ArmError, match=r"b was lost .* and no machine has taken its place: no machine .* within 1s"):
        fleet.ready(print)


def test_a_study_that_is_to_stop_for_a_lost_machine_stops(gathered):
    machines = Here("a", "b")
    fleet = gathered(machines, on_machine_loss="stop")
    machines.gone.add("b")
    with pytest.raises(
        ArmError, match=r'b was lost .* from the fleet, and the study stops because of on_machine_loss = "stop"'
    ):
        fleet.ready(print)


def test_a_machine_that_dies_before_the_first_trial_is_an_error(gathered):
    machines = Here("a", "b")
    machines.gone.add("b")
    with pytest.raises(ArmError, match="a machine of the fleet was lost before the first trial"):
        gathered(machines)


def test_a_machine_that_dies_as_a_load_starts_fails_that_trial_and_leaves_no_engine(gathered, free_port, tmp_path):
    machines = Here("a", "b")
    fleet = gathered(machines)
    nobody = target("127.0.0.1", free_port)
    order = LoadOrder("pgbench", lambda each: ["-c", "2", "-T", "1"], nobody, tmp_path / "events", most_parts=2)
    machines.gone.add("b")
    with pytest.raises(TrialError, match="the machine b was lost before the load began: its node has left the Ray"):
        fleet.started(order).__enter__()
    (left,) = machines.agents["a"]._running.values()
    assert left.process.poll() is not None
    said, tell = heard()
    fleet.ready(tell)
    assert said == ["b was lost (its node has left the Ray cluster); going on with a"]


def test_a_machine_that_falls_silent_is_lost_while_the_others_speak(gathered, start_cluster, tmp_path):
    machines = Here("a", "b")
    fleet = gathered(machines)
    (tmp_path / "nap.sql").write_text("SELECT pg_sleep(0.01);\n")
    options = ["-n", "-c", "2", "-T", "600", "--random-seed=1", "-f", str(tmp_path / "nap.sql")]
    order = LoadOrder("pgbench", lambda each: options, start_cluster().target, tmp_path / "events", most_parts=2)
    with fleet.started(order) as load:
        for event in load.events(time.monotonic() + 120):
            if event["event"] == "tick":
                machines.silent.add("b")
        load.finish()
    assert load.trouble is not None
    assert re.fullmatch(r"the machine b was lost \d+s into the load: it has not answered for \d+s", load.trouble)


class ByAnHour:
    """An agent whose machine has never had its clock set."""

    def __init__(self, agent):
        self._agent = agent

    def __getattr__(self, name):
        return getattr(self._agent, name)

    def clock(self):
        return tuple(moment + 3700 for moment in self._agent.clock())


class FarAway(ByAnHour):
    """An agent that a question about the time reaches late."""

    def clock(self):
        time.sleep(0.03)
        return self._agent.clock()


class OfAnotherKind(ByAnHour):
    """An agent on which no engine of this machine runs."""

    def complaint_of_engine(self):
        return "Exec format error"


def with_agent(kind, *hosts):
    class Changed(Here):
        def _member(self, place, patience_s):
            member = super()._member(place, patience_s)
            self.agents[member.host] = kind(self.agents[member.host])
            return member

    return Changed(*(hosts or ["a"]))


def test_a_clock_that_is_an_hour_off_is_refused(gathered):
    with pytest.raises(ArmError, match="the clock of the machine a is 1h 1min ahead of the lab's"):
        gathered(with_agent(ByAnHour))


def test_clocks_that_are_not_known_well_enough_for_the_slices_are_refused_and_noted_later(gathered):
    fleet = gathered(with_agent(FarAway, "a", "b"))
    doubt = (
        r"the difference of the clocks of the machines a and b is known to \d+\.?\d* ms only, which is more than 10% "
        "of a "
    )
    refusal = rf'\[load\] interleave: {doubt}slice of 250ms; write longer slices, or "off", or use'
    with pytest.raises(StudyError, match=refusal):
        fleet.check_slices(0.25)
    (note,) = fleet.ready(print)
    assert re.match(doubt, note)
    fleet.check_slices(60.0)
    assert fleet.ready(print) == []


def test_a_machine_on_which_the_engine_does_not_run_is_refused_with_both_kinds(gathered):
    with pytest.raises(ArmError, match=r"\(.+ .+\) does not run on the machine a \(.+ .+\): Exec format error; use"):
        gathered(with_agent(OfAnotherKind))


def target(host: str, port: int) -> Target:
    return Target(host, port, "u", "d")


def test_a_server_that_machines_cannot_connect_to_is_refused_with_machine_and_address(gathered, free_port):
    fleet = gathered(Here("a"))
    addresses = [each.address for of in psutil.net_if_addrs().values() for each in of if each.family == socket.AF_INET]
    address = next((each for each in addresses if not target(each, free_port).local), "")
    require(address, "an address beside the loopback one")
    with socket.create_server((address, 0)) as server:
        fleet.check_reaches("given", [target(address, server.getsockname()[1])])
    with pytest.raises(
        ArmError, match=f"the machine a cannot connect to the server at {address}:{free_port}: .*firewall"
    ):
        fleet.check_reaches("given", [target(address, free_port)])


def test_servers_of_this_machine_alone_are_refused_where_the_fleet_has_another(gathered):
    fleet = gathered(Here("a", "b"))
    fleet.check_reaches("own", None)
    fleet.check_reaches("given", [target("127.0.0.1", 1), target("/tmp", 1)])
    fleet._members[1].identity = "another host"
    with pytest.raises(
        StudyError, match=r"arms.own: pgtrial starts its server on this machine .*, but b of the fleet is"
    ):
        fleet.check_reaches("own", None)
    with pytest.raises(StudyError, match="the server u@localhost:1/d can be reached only from this machine"):
        fleet.check_reaches("given", [target("localhost", 1)])


def test_cpus_that_are_none_are_refused_and_those_of_larger_machines_are_not(gathered):
    fleet = gathered(Here("a"))
    fleet.check_cpus("0-511")
    with pytest.raises(StudyError, match="'all' is no list of CPUs") as refused:
        fleet.check_cpus("all")
    assert refused.value.keys == ("load.cpus",)


def test_nothing_is_left_of_a_fleet_that_was_dismissed(gathered):
    machines = Here("a", "b")
    fleet = gathered(machines)
    folders = [agent._scratch for agent in machines.agents.values()]
    fleet.dismiss()
    assert machines.dismissed == ["a", "b"]
    assert not any(Path(folder).exists() for folder in folders)


def test_the_round_trip_to_a_server_is_measured_from_every_machine(gathered, free_port):
    machines = Here("a", "b", "c")
    members = gathered(machines)._members
    with socket.create_server(("127.0.0.1", 0)) as server:
        reached = target("localhost", server.getsockname()[1])
        times = round_trips_us(members, reached)
        assert all(time is not None and 0 < time < 1e6 for time in times)
        machines.gone.add("b")
        assert [time is None for time in round_trips_us(members, reached)] == [False, True, False]
    assert members[1].lost == "its node has left the Ray cluster"
    assert round_trips_us([members[0]], target("127.0.0.1", free_port)) == [None]
    assert round_trips_us(members, target("/tmp", 1)) == [None, None, None]


def test_a_container_of_the_labs_kernel_takes_the_labs_cpus_and_another_machine_does_not(gathered):
    (member,) = gathered(Here("a"))._members
    assert member.with_lab
    member.identity = "a container"
    assert member.with_lab
    member.kernel = "another"
    assert not member.with_lab
