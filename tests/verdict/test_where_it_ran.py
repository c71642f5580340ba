"""Tests of the list of the machines on which each part of a study ran, and of finding a slow machine of the fleet."""

from __future__ import annotations

import pytest

from pgtrial.model.records.facts import Facts
from pgtrial.model.records.where_it_ran import ServerHost
from pgtrial.verdict.where_it_ran import machine_parts, where_it_ran
from tests.verdict.studies import decision_of

from .fleets import LOST, by_fleet, share
from .studies import make_plan, noisy, run

PLAN = make_plan()
TRIALS = run(PLAN, noisy({}))


def slow_machines(*speeds):
    """Names of the machines that are slow, of trials with these speeds; a, b, c..."""
    trials = [
        by_fleet(trial, dict(zip("abcdef", each, strict=False))) for trial, each in zip(TRIALS, speeds, strict=False)
    ]
    return [part.machine for part in machine_parts(trials) if part.slower_by is not None]


@pytest.mark.parametrize(
    ("speeds", "slow"),
    [
        ([(100, 100, 100, 100)], []),
        ([(100, 100, 100, 92)], []),
        ([(100, 100, 100, 85)], ["d"]),
        ([(100, 100, 100, 130)], []),
        ([(100, 80)], ["b"]),
        ([(100, 92)], []),
        ([(100, 70, 120, 95, 130, 70)], []),
        ([(100, 50), (100, 100), (100, 100)], []),
        ([(100, 50), (1000, 600), (100, 100)], ["b"]),
        ([(100,)], []),
        ([(100, LOST)], []),
    ],
)
def test_a_machine_is_slow_when_its_clients_do_less_than_the_spread_of_the_others_explains(speeds, slow):
    assert slow_machines(*speeds) == slow


def test_what_a_machine_did_is_told_over_all_trials_in_which_it_took_part():
    first, second, third = TRIALS[:3]
    a, b = machine_parts(
        [
            first.model_copy(
                update={
                    "machines": [
                        share(
                            "a", 100, address="10.0.0.1", clock_offset_us=50.0, offset_error_us=8.0, start_skew_us=-30.0
                        ),
                        share("b", 75, lag_p99_us=20.0),
                    ]
                }
            ),
            by_fleet(second, {"a": 300}, clock_offset_us=70.0, offset_error_us=6.0, start_skew_us=90.0),
            by_fleet(third, {"a": LOST, "b": 75}, clock_offset_us=60.0, offset_error_us=7.0),
        ]
    )
    assert (a.trials, a.lost, a.clients, a.transactions, a.address) == (3, 1, 4, 16_050, "10.0.0.1")
    assert a.share == pytest.approx(16_050 / 22_050)
    assert (a.tps, a.start_skew_us, a.clock_offset_us, a.offset_error_us) == (800, 90.0, 60.0, 8.0)
    assert a.cpu_per_transaction_us == pytest.approx(3.0)
    assert a.speed == pytest.approx((100 / 75) ** 0.5), (
        "by the middle of both; where it was alone nothing is to compare"
    )
    assert (b.trials, b.lost, b.lag_p99_us) == (2, 0, 20.0)
    assert b.slower_by == pytest.approx(0.25)


def facts(connection, **probes):
    return Facts(
        arm="on",
        collected="now",
        facts={
            "client": {"connection": connection, "distribution": "Debian 12", "kernel": "6.1"},
            "os": {"system": "FreeBSD", "distribution": None, "kernel": "14.3-RELEASE"},
            "network": {"path": "network", "interface": "eth0", "mtu": 1500, "tls": "none"},
            "probes": probes,
        },
    )


def test_on_one_machine_there_is_nothing_to_tell():
    here = {arm: facts("this machine") for arm in PLAN.arms}
    assert where_it_ran(PLAN, TRIALS, here) is None
    assert where_it_ran(PLAN, TRIALS, {}) is None
    assert "where" not in decision_of(PLAN, TRIALS, facts=here).model_dump()
    given = PLAN.model_copy(update={"hosts": {arm: [ServerHost(label="localhost", by="dsn")] for arm in PLAN.arms}})
    assert where_it_ran(given, TRIALS, here) is None, "a given server may be here as well"


def test_a_server_on_another_host_is_told_with_the_way_to_it():
    hosts = {
        "on": [ServerHost(label="this machine", by="this machine")],
        "off": [ServerHost(label="pg@bsd", by="ssh", address="10.0.0.7", data="/var/db/pgtrial")],
    }
    plan = PLAN.model_copy(update={"hosts": hosts})
    times = iter([150.0, 160.0, 900.0] + [155.0] * len(TRIALS))
    trials = [
        trial.model_copy(update={"round_trip_us": next(times)}) if trial.arm == "off" else trial for trial in TRIALS
    ]
    measured = {"bandwidth_mb_s": 117.5, "clock_offset_us": -2100.0, "clock_offset_error_us": 80.0}
    where = decision_of(plan, trials, facts={"off": facts("over the network", **measured)}).where
    assert where is not None
    assert (where.lab, where.load, where.machines) == ("Debian 12, 6.1", "lab", [])
    on, off = where.servers
    assert (on.by, on.host, on.system, on.round_trip_us, on.with_lab) == (
        "this machine",
        "this machine",
        None,
        None,
        None,
    )
    assert (off.by, off.host, off.address, off.system) == ("ssh", "pg@bsd", "10.0.0.7", "FreeBSD, 14.3-RELEASE")
    assert (off.with_lab, off.path, off.interface, off.mtu, off.tls) == (False, "network", "eth0", 1500, "none")
    assert (off.trials, off.round_trip_us, off.round_trip_lowest_us, off.round_trip_highest_us) == (8, 155, 150, 900)
    assert (off.bandwidth_mb_s, off.clock_offset_us, off.clock_offset_error_us) == (117.5, -2100.0, 80.0)


def test_a_study_that_did_not_note_its_hosts_still_tells_that_a_server_is_elsewhere():
    where = where_it_ran(PLAN, TRIALS, {"off": facts("over the network")})
    assert where is not None
    assert [(server.host, server.by) for server in where.servers] == [
        ("this machine", "this machine"),
        ("a given server", "dsn"),
    ]
