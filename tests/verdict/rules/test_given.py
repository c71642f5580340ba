"""Tests of findings on the trials of given servers: the way to the servers, and what they do not permit."""

from __future__ import annotations

import pytest

from tests.verdict.studies import findings_over

from .cases import facts, named, plan_of, trials_of


def _findings(change, **known):
    plan = plan_of()
    return findings_over(plan, facts(**known), trials_of(plan, change))


@pytest.mark.parametrize(
    ("base", "own", "found"),
    [(500.0, 600.0, False), (500.0, 610.0, True), (610.0, 500.0, True), (20.0, 60.0, False), (20.0, 80.0, True)],
)
def test_round_trips_that_differ_by_more_than_a_fifth_and_50_us_are_told(base, own, found):
    findings = _findings(lambda trial: {"round_trip_us": base if trial.arm == "A" else own})
    assert named(findings) == ({("unequal_network_path", "warning")} if found else set())


@pytest.mark.parametrize(
    ("noise_us", "where", "found"),
    [(1.0, "over the network", True), (12.0, "over the network", False), (1.0, "this machine", False)],
)
def test_over_a_network_the_trials_themselves_tell_how_much_is_noise(noise_us, where, found):
    known = {arm: {"client": {"connection": where}} for arm in "AB"}
    findings = _findings(
        lambda trial: {"round_trip_us": (100.0 if trial.arm == "A" else 130.0) + noise_us * (trial.block % 3)}, **known
    )
    assert named(findings) == ({("unequal_network_path", "warning")} if found else set())


@pytest.mark.parametrize(
    ("paths", "found"),
    [
        (("unix socket", "unix socket"), False),
        (("loopback", "loopback"), False),
        (("unix socket", "loopback"), True),
        (("network", "network"), True),
    ],
)
def test_servers_on_one_path_of_this_machine_are_equally_far_however_slowly_they_answer(paths, found):
    known = {arm: {"network": {"path": path}} for arm, path in zip("AB", paths, strict=True)}
    findings = _findings(lambda trial: {"round_trip_us": 90.0 if trial.arm == "A" else 170.0}, **known)
    assert named(findings) == ({("unequal_network_path", "warning")} if found else set())


def test_one_slow_round_trip_is_no_finding():
    slow = {"round_trip_us": 9000.0}
    assert _findings(lambda trial: slow if trial.block == 0 and trial.arm == "B" else {"round_trip_us": 500.0}) == []


def test_what_no_server_permits_is_told_once_and_what_one_does_not_is_a_warning():
    [alike] = _findings(lambda trial: {"not_permitted": ["issue a checkpoint"]})
    assert (alike.severity, alike.arms) == ("info", ["A", "B"])
    assert "pgtrial may not issue a checkpoint" in alike.message
    [unlike] = _findings(lambda trial: {"not_permitted": ["issue a checkpoint"] if trial.arm == "B" else []})
    assert (unlike.severity, unlike.arms) == ("warning", ["B"])
