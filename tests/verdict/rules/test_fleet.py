"""Tests of findings on the machines of a fleet: their connections and clocks, and a fleet that is slow, lost or in the
wrong place.
"""

from __future__ import annotations

import pytest

from pgtrial.model.records.where_it_ran import ServerHost
from pgtrial.model.study.design import Design
from pgtrial.store.study_file import build_study
from pgtrial.verdict.rules import audit
from tests.verdict.fleets import LOST, by_fleet, share
from tests.verdict.studies import findings_over

from .cases import facts, named, plan_of, trials_of

HOUR_US = 3_600e6


def of_facts(a, b, *, fleet=None):
    study = {"arms": {"A": {}, "B": {}}} | ({"fleet": fleet} if fleet is not None else {})
    return audit(plan_of(), facts(A=a, B=b), Design(build_study(study, "test"))).findings


def of_trials(plan, change):
    return findings_over(plan, {}, [change(trial) for trial in trials_of(plan, lambda _: {})])


@pytest.mark.parametrize(("base", "own", "told"), [(110.0, 112.0, 0), (110.0, 70.0, 1), (None, 70.0, 0)])
def test_bandwidths_that_differ_by_half_make_unequal_ways(base, own, told):
    found = of_facts({"probes": {"bandwidth_mb_s": base}}, {"probes": {"bandwidth_mb_s": own}})
    assert named(found) == {("unequal_network_path", "warning")} if told else found == []
    assert ["a bandwidth of 110 MB/s and 70 MB/s" in finding.message for finding in found] == [True] * told


def test_the_labs_ways_are_not_those_of_a_fleet_elsewhere_but_for_the_encryption():
    ways = [
        {"network": {"path": "network", "mtu": mtu, "tls": tls}, "probes": {"round_trip_median_us": time}}
        for mtu, tls, time in ((9000, "none", 100.0), (1500, "TLSv1.3", 900.0))
    ]
    [alone] = of_facts(*ways)
    assert alone.severity == "warning"
    assert "mtu 9000 and 1500, tls none and TLSv1.3 and a round trip of 100 us and 900 us" in alone.message
    loads, labs = of_facts(*ways, fleet={"address": "auto"})
    assert (loads.severity, labs.severity) == ("warning", "info")
    assert "by unequal network paths: tls none and TLSv1.3." in loads.message
    assert (
        "The lab, which makes no load, reaches A and B by unequal network paths: mtu 9000 and 1500 and a round"
        in labs.message
    )


def ways_of(a, b, **known):
    """Findings on trials of a fleet whose machines have these round trips to A and to B; the lab's differ greatly."""

    def from_machines(trial):
        times = a if trial.arm == "A" else b
        shares = [share(name, 100, round_trip_us=time) for name, time in zip("xyz", times, strict=False)]
        return {"machines": shares, "round_trip_us": 100.0 if trial.arm == "A" else 900.0}

    return findings_over(plan_of(), facts(**known), trials_of(plan_of(), from_machines))


@pytest.mark.parametrize(
    ("a", "b", "told"),
    [
        ((100, 110), (105, 105), None),
        ((100, 140), (140, 100), None),
        ((200, 210), (280, 290), "205 us to A and 285 us to B (from the fleet, mean of its machines"),
        ((None, None), (None, None), "100 us to A and 900 us to B (medians"),
    ],
)
def test_arms_are_compared_by_the_ways_of_the_fleet_and_by_the_labs_only_where_those_are_unknown(a, b, told):
    found = ways_of(a, b)
    assert named(found) == ({("unequal_network_path", "warning")} if told else set())
    assert all((told or "") in finding.message for finding in found)


@pytest.mark.parametrize(
    ("a", "b", "severity", "told"),
    [
        ((100, 100, 149), (100, 100, 149), None, ""),
        ((20, 20, 69), (20, 20, 69), None, ""),
        (
            (100, 110, 200),
            (100, 110, 200),
            "info",
            "z of the fleet is further away: a round trip takes 200 us to A, fr",
        ),
        ((100, 300), (100, 100), "warning", "y of the fleet is further away: a round trip takes 300 us to A, from the"),
    ],
)
def test_a_machine_that_is_further_from_a_server_than_the_others_is_named(a, b, severity, told):
    found = [finding for finding in ways_of(a, b) if finding.rule == "far_machine"]
    assert [(finding.severity, finding.arms) for finding in found] == (
        [(severity, ["A"] if severity == "warning" else ["A", "B"])] if severity else []
    )
    assert all(told in finding.message for finding in found)


@pytest.mark.parametrize(
    ("path", "with_lab", "told"),
    [("own address", True, True), ("own address", False, False), ("loopback", True, False)],
)
def test_a_machine_of_the_fleet_that_is_the_labs_own_takes_the_cpu_time_of_a_server_there(path, with_lab, told):
    here = {"client": {"connection": "this machine"}, "network": {"path": path}}
    trials = trials_of(plan_of(), lambda trial: {"machines": [share("x", 100, with_lab=with_lab)]})
    found = findings_over(plan_of(), facts(A=here, B=here), trials)
    assert named(found) == ({("client_on_server_host", "info")} if told else set())


@pytest.mark.parametrize(
    ("own", "declared", "said"),
    [
        ({"cpu": {"model": "EPYC", "logical": 16}, "memory": {"total_mb": 64_100}}, True, None),
        (
            {"cpu": {"model": "EPYC", "logical": 8}, "memory": {"total_mb": 32_000}},
            True,
            "logical CPUs 16 and 8 and memory",
        ),
        ({"cpu": {"model": None, "logical": 16}, "memory": {"total_mb": None}}, True, None),
        ({"cpu": {"model": "Xeon", "logical": 16}, "memory": {"total_mb": 64_000}}, False, None),
    ],
)
def test_hosts_that_are_not_alike_are_told_where_arms_have_hosts_of_their_own(own, declared, said):
    base = {"cpu": {"model": "EPYC", "logical": 16}, "memory": {"total_mb": 65_000}}
    plan = plan_of(declared=["server.host"] if declared else ["server.version"])
    found = audit(plan, facts(A=base, B=own), Design(build_study({"arms": {"A": {}, "B": {}}}, "test"))).findings
    assert [said in each.message for each in found if each.rule == "unequal_hosts"] == ([True] if said else [])


@pytest.mark.parametrize(
    ("path", "fleet", "told"),
    [
        ("own address", None, True),
        ("own address", {"address": "auto"}, False),
        ("loopback", {"address": "local"}, True),
        ("unix socket", {"address": "local"}, True),
    ],
)
def test_a_fleet_is_on_the_servers_host_only_if_nothing_else_could_reach_the_server(path, fleet, told):
    here = {"client": {"connection": "this machine"}, "network": {"path": path}}
    found = of_facts(here, here, fleet=fleet)
    assert named(found) == ({("client_on_server_host", "info")} if told else set())


@pytest.mark.parametrize(
    ("offset", "error", "severity", "said"),
    [
        (100_000.0, 4_000.0, None, ""),
        (1.01 * HOUR_US, 10.0, "warning", "1:00:36 ahead on the host of B"),
        (-25 * HOUR_US, 10.0, "warning", "1 day, 1:00:00 behind on the host of B"),
        (0.0, 12_000.0, "info", "known to 12 ms on the host of B only"),
        (None, None, None, ""),
    ],
)
def test_a_servers_clock_is_told_when_it_is_wrong_or_unsure(offset, error, severity, said):
    found = of_facts({"probes": {}}, {"probes": {"clock_offset_us": offset, "clock_offset_error_us": error}})
    assert [(finding.rule, finding.severity, finding.arms) for finding in found] == (
        [("clock_offset", severity, ["B"])] if severity else []
    )
    assert all(said in finding.message for finding in found)


def test_a_wrong_clock_in_the_fleet_is_told_once_with_what_it_spoils():
    [found] = of_trials(
        plan_of(),
        lambda trial: trial.model_copy(
            update={"machines": [share("a", 100), share("b", 100, clock_offset_us=(2 + trial.index / 100) * HOUR_US)]}
        ),
    )
    assert (found.rule, found.severity, found.arms) == ("clock_offset", "warning", ["A", "B"])
    assert "2:09:00 ahead on b" in found.message
    assert "logs" in found.message


@pytest.mark.parametrize(("trials", "told"), [(2, False), (3, True)])
def test_an_unsure_clock_in_the_fleet_is_told_if_it_is_no_rare_accident(trials, told):
    found = of_trials(
        plan_of(),
        lambda trial: by_fleet(trial, {"a": 100}, offset_error_us=9_000.0 if trial.index < trials else 40.0),
    )
    assert named(found) == ({("clock_offset", "warning")} if told else set())
    assert all("known to 9 ms only, in 3 of 16 trials" in finding.message for finding in found)


def test_a_slow_machine_is_named_with_how_slow_it_is():
    [found] = of_trials(plan_of(), lambda trial: by_fleet(trial, {"a": 100, "b": 101, "c": 60}))
    assert (found.rule, found.severity) == ("slow_machine", "warning")
    assert "The machine c of the fleet is slow: its clients made 40% fewer" in found.message


def test_lost_machines_are_told_with_the_arms_whose_trials_they_cost():
    def lose(trial):
        lost = {0: ["b"], 1: ["b", "c"]}.get(trial.index, [])
        there = by_fleet(trial, {name: LOST if name in lost else 100 for name in "abc"})
        return there.model_copy(update={"status": "failed", "reason": "lost"} if lost else {})

    plan = plan_of()
    [found] = of_trials(plan, lose)
    assert (found.rule, found.severity) == ("lost_machine", "warning")
    assert "lost b (2 times) and c in mid-trial: 2 of 16 trials failed" in found.message
    assert set(found.arms) == {plan.trials[0].arm, plan.trials[1].arm}


@pytest.mark.parametrize(("late_ms", "trials", "told"), [(59, 16, False), (61, 2, False), (61, 3, True)])
def test_machines_that_begin_apart_by_more_than_a_hundredth_of_the_measured_part_are_told(late_ms, trials, told):
    def late(trial):
        skew = 1000.0 * late_ms if trial.index < trials else 1000.0
        machines = [share("a", 100, start_skew_us=0.0), share("b", 100, start_skew_us=skew)]
        return trial.model_copy(update={"machines": machines})

    found = of_trials(plan_of(), late)
    assert named(found) == ({("uneven_start", "warning")} if told else set())
    assert all("up to 61 ms apart, in 3 of 16 trials by more than 1%" in finding.message for finding in found)


def test_a_machine_of_the_fleet_is_known_by_the_login_to_a_given_servers_host():
    hosts = {"A": [ServerHost(label="db", by="dsn", looked_at="pg@10.0.0.9")], "B": [ServerHost(label="c", by="dsn")]}
    plan = plan_of().model_copy(update={"hosts": hosts})
    found = of_trials(plan, lambda trial: by_fleet(trial, {"worker-2": 100}, address="10.0.0.9"))
    assert named(found) == {("client_on_server_host", "warning")}


@pytest.mark.parametrize(
    ("hosts", "severity"),
    [
        ({"A": "pg@10.0.0.1", "B": "pg@10.0.0.2"}, None),
        ({"A": "pg@10.0.0.1", "B": "pg@10.0.0.9"}, "warning"),
        ({"A": "worker-2", "B": "pg@10.0.0.9"}, "info"),
    ],
)
def test_a_machine_of_the_fleet_that_serves_an_arm_is_told(hosts, severity):
    of_arms = {arm: [ServerHost(label=host, by="ssh")] for arm, host in hosts.items()}
    plan = plan_of().model_copy(update={"hosts": of_arms})
    found = of_trials(plan, lambda trial: by_fleet(trial, {"worker-2": 100}, address="10.0.0.9"))
    assert named(found) == ({("client_on_server_host", severity)} if severity else set())
    assert all("worker-2 (of B)" in finding.message for finding in found)


def test_a_load_of_the_labs_own_machine_is_no_fleet():
    assert of_trials(plan_of(), lambda trial: trial) == []


def test_what_differs_between_hosts_follows_from_the_declared_host():
    base, own = ({"os": {"kernel": kernel}, "settings": {"dynamic_shared_memory_type": kind}}
                 for kernel, kind in (("6.1", "posix"), ("14.3", "sysv")))  # fmt: skip
    found = audit(
        plan_of(["server.host"]), facts(A=base, B=own), Design(build_study({"arms": {"A": {}, "B": {}}}, "t"))
    ).findings
    assert named(found) == {("following_difference", "info")}
    assert "From the declared server.host of B follow differences in os.kernel and settings.dynamic" in found[0].message
