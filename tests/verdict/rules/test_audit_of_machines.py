"""Tests of findings on volumes, on the connection to the server, on huge pages, and on settings made for finding
errors.
"""

from __future__ import annotations

import pytest

from pgtrial.model.study.design import Design
from pgtrial.model.study.spec import StudySpec
from pgtrial.verdict.rules import audit
from pgtrial.verdict.rules.hygiene import is_debugging

from .cases import facts, named, plan_of


def _findings(a, b, declared=()):
    spec = StudySpec.model_validate({"arms": {"A": {}, "B": {}}})
    return audit(plan_of(declared), facts(A=a, B=b), Design(spec)).findings


def _volume(rate, cache="write back", virtual="none", filesystem="ext4", **probes):
    return {
        "storage": {"filesystem": filesystem, "disk_write_caches": [cache]},
        "os": {"virtualisation": virtual},
        "probes": {"flushes_per_s": rate, "flush_us": 1e6 / rate, **probes},
    }


def test_rates_within_the_noise_are_no_finding():
    assert _findings(_volume(900), _volume(5000)) == []


def test_an_unknown_rate_is_no_finding():
    assert _findings(_volume(900), {"probes": {"flushes_per_s": None, "flush_us": None}}) == []


def test_a_flush_that_is_too_fast_is_suspicious_in_every_arm_that_has_it():
    [finding] = _findings(_volume(40_000), _volume(30_000))
    assert (finding.rule, finding.severity, finding.arms) == ("suspicious_durability", "warning", ["A", "B"])
    assert "40,000 times a second (25 us)" in finding.message


def test_a_protected_cache_of_a_physical_disk_is_believed_and_a_virtual_one_is_not():
    assert _findings(_volume(40_000, "write through"), _volume(40_000, "write through")) == []
    virtual = _volume(40_000, "write through", "kvm")
    assert named(_findings(virtual, virtual)) == {("suspicious_durability", "warning")}


def test_a_file_system_in_memory_is_told_by_its_own_rule_alone():
    memory = _volume(400_000, filesystem="tmpfs")
    assert named(_findings(memory, memory)) == {("not_durable", "warning")}


def test_one_arm_with_a_suspicious_volume_withholds_the_verdict():
    found = _findings(_volume(500), _volume(40_000))
    assert named(found) == {("unequal_flush", "withhold"), ("suspicious_durability", "warning")}
    assert "faster than a durable device can be" in found[0].message


def test_volumes_that_are_unequal_and_plausible_are_a_warning():
    assert named(_findings(_volume(100), _volume(9_000))) == {("unequal_flush", "warning")}


def test_one_volume_is_equal_to_itself_whatever_was_measured():
    def here(rate, point):
        arm = _volume(rate)
        arm["storage"] |= {"source": "/dev/vda", "mount_point": point, "mount_options": "rw"}
        return {**arm, "client": {"connection": "this machine"}}

    assert "unequal_flush" not in {rule for rule, _ in named(_findings(here(300, "/"), here(40_000, "/")))}
    assert ("unequal_flush", "withhold") in named(_findings(here(300, "/"), here(40_000, "/srv")))


@pytest.mark.parametrize("declared", ["storage.filesystem", "storage", "server.dsn"])
def test_declared_volumes_may_flush_at_unequal_rates_but_not_be_suspicious(declared):
    assert named(_findings(_volume(100), _volume(9_000), [declared])) == set()
    assert named(_findings(_volume(100), _volume(40_000), [declared])) == {("suspicious_durability", "warning")}


def test_the_volume_of_the_wal_decides_where_it_has_one():
    own_wal = _volume(500, wal_flushes_per_s=40_000, wal_flush_us=25.0)
    assert named(_findings(own_wal, own_wal)) == {("suspicious_durability", "warning")}


def _way(path="network", median_us=200.0, connection="over the network", **more):
    return {
        "network": {"path": path, "mtu": 1500, **more},
        "probes": {"round_trip_median_us": median_us},
        "client": {"connection": connection},
    }


def test_equal_ways_are_no_finding():
    assert _findings(_way(), _way(median_us=230.0)) == []


@pytest.mark.parametrize("path", ["unix socket", "loopback"])
def test_round_trips_within_one_machine_differ_by_noise_and_by_the_servers_alone(path):
    assert _findings(_way(path, 30.0), _way(path, 300.0)) == []


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (_way(median_us=900.0), "a round trip of 200 us and 900 us"),
        (_way(mtu=9000), "mtu 1500 and 9000"),
        (_way(path="loopback"), "path network and loopback"),
    ],
)
def test_unequal_ways_to_the_servers_are_one_finding(other, words):
    [finding] = _findings(_way(), other)
    assert (finding.rule, finding.severity, finding.arms) == ("unequal_network_path", "warning", ["A", "B"])
    assert words in finding.message


def test_encryption_on_one_way_is_told():
    [finding] = _findings(_way(tls="none"), _way(tls="TLSv1.3 TLS_AES_256_GCM_SHA384"))
    assert "tls none and TLSv1.3 TLS_AES_256_GCM_SHA384" in finding.message


def test_the_load_on_the_servers_own_machine_is_information():
    here = {**_way("unix socket", 30.0, "this machine"), "cpu": {"logical": 2}}
    [finding] = _findings(here, here)
    assert (finding.rule, finding.severity) == ("client_on_server_host", "info")
    assert "shares its 2 CPUs" in finding.message


def test_the_load_on_one_servers_machine_is_a_warning():
    found = named(_findings(_way("unix socket", 30.0, "this machine"), _way()))
    assert found == {("client_on_server_host", "warning"), ("unequal_network_path", "warning")}


@pytest.mark.parametrize(
    ("server", "expected", "words"),
    [
        ({"huge_pages_status": "off"}, "warning", "which need no such help, are off"),
        ({"huge_pages_status": "on"}, "info", "is in explicit huge pages"),
        ({}, "warning", "may stall the server to make them."),
    ],
)
def test_transparent_huge_pages_are_worst_without_explicit_ones(server, expected, words):
    arm = {"memory": {"thp": "always"}, "server": server}
    [finding] = _findings(arm, arm)
    assert (finding.rule, finding.severity) == ("thp", expected)
    assert words in finding.message


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("log_statement", "all"),
        ("log_min_duration_statement", "0"),
        ("log_min_messages", "debug1"),
        ("debug_discard_caches", "1"),
        ("auto_explain.log_min_duration", "10ms"),
        ("wal_consistency_checking", "all"),
    ],
)
def test_a_setting_for_finding_errors_is_told_in_one_arm_and_in_both(name, value):
    with_it, without = {"settings": {name: value}}, {"settings": {name: "none" if name == "log_statement" else "-1"}}
    one = [finding for finding in _findings({"settings": {}}, with_it) if finding.rule == "debug_setting"]
    assert [finding.arms for finding in one] == [["A", "B"]]
    assert f"{name} is {value} in B only" in one[0].message
    assert named(_findings(with_it, with_it)) == {("debug_setting", "warning")}
    assert named(_findings(with_it, with_it, [f"settings.{name}"])) == set()
    if not is_debugging(name, without["settings"][name]):
        assert named(_findings(without, with_it)) == {("debug_setting", "warning")}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("log_statement", "ddl"),
        ("log_min_duration_statement", "1s"),
        ("log_min_messages", "warning"),
        ("debug_discard_caches", "0"),
        ("auto_explain.log_min_duration", "-1"),
        ("wal_consistency_checking", ""),
        ("work_mem", "all"),
    ],
)
def test_ordinary_logging_is_not_for_finding_errors(name, value):
    assert not is_debugging(name, value)


def test_probes_and_sources_are_never_differences():
    a = {"probes": {"flushes_per_s": 900, "flush_us": 1111.0}, "sources": {"work_mem": "database"}}
    b = {"probes": {"flushes_per_s": 950, "flush_us": 1052.0}, "sources": {"work_mem": "configuration file"}}
    assert _findings(a, b) == []


@pytest.mark.parametrize(
    ("machine", "emulated"),
    [
        ({"cpu": {"model": "QEMU TCG CPU version 2.5+"}, "os": {"virtualisation": None}}, True),
        ({"cpu": {"model": None}, "os": {"virtualisation": "qemu"}}, True),
        ({"cpu": {"model": "QEMU Virtual CPU version 2.5+"}, "os": {"virtualisation": "kvm"}}, False),
        ({"cpu": {"model": None}, "os": {"virtualisation": None}}, False),
    ],
)
def test_a_machine_emulated_in_software_is_told_and_one_under_a_hypervisor_is_not(machine, emulated):
    told = [found for found in _findings(machine, machine) if found.rule == "emulated_machine"]
    assert [(finding.severity, finding.arms) for finding in told] == [("warning", ["A", "B"])] * emulated


def test_one_emulated_machine_among_real_ones_is_told_of_its_arm_alone():
    emulated, real = ({"cpu": {"model": model}} for model in ("QEMU TCG CPU version 2.5+", "AMD EPYC 9654"))
    [told] = [found for found in _findings(real, emulated) if found.rule == "emulated_machine"]
    assert told.arms == ["B"]
    assert "QEMU TCG CPU version 2.5+" in told.message
