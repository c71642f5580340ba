"""Facts of BSDs and macOS, from what their tools print."""

from __future__ import annotations

from pathlib import Path

import pytest

from pgtrial.evidence.collect import bsd
from pgtrial.evidence.collect.collect import facts_of
from pgtrial.evidence.collect.files import parse_fields
from pgtrial.evidence.collect.subject import Subject

from .played import PlayedMachine
from .recordings import recorded

FREEBSD = parse_fields(recorded("freebsd-sysctl.txt"))
DRAGONFLY = parse_fields(recorded("dragonfly-sysctl.txt"))
MACOS = parse_fields(recorded("macos-sysctl.txt"))


def test_freebsd_tells_processor_and_mitigations():
    cpu = bsd.cpu_of(FREEBSD)
    assert (cpu["model"], cpu["logical"], cpu["smt"], cpu["numa_nodes"]) == ("AMD EPYC 7B13", 2, "on", 1)
    assert cpu["mitigations"] == {"vm.pmap.pti": "0", "hw.ibrs_active": "0", "hw.mds_disable_state": "inactive"}
    assert cpu["cores"] is None


def test_freebsd_tells_memory_in_megabytes():
    memory = bsd.memory_of(FREEBSD)
    assert (memory["total_mb"], memory["swap_mb"], memory["zfs_cache_mb"]) == (8149, 2048, 1024)
    assert memory["superpages"] is True
    assert memory["wired_shared_memory"] is False


def test_freebsd_tells_hypervisor_and_clock():
    system = bsd.system_of("FreeBSD", FREEBSD)
    assert system["distribution"] == "FreeBSD 14.2-RELEASE"
    assert (system["virtualisation"], system["container"], system["clocksource"]) == ("bhyve", "none", "TSC-low")


def test_kenv_tells_the_hardware_without_quotes():
    hardware = bsd.hardware_of(bsd.parse_kenv(recorded("freebsd-kenv.txt")))
    assert (hardware["vendor"], hardware["product"], hardware["board"]) == ("Dell Inc.", "PowerEdge R640", "0923K0")
    assert (hardware["bios_version"], hardware["bios_date"]) == ("2.19.1", "10/17/2023")


def test_dragonfly_on_a_machine_of_its_own():
    system = bsd.system_of("DragonFly", DRAGONFLY)
    assert (system["virtualisation"], system["clocksource"]) == ("none", "TSC_INV")
    assert bsd.cpu_of(DRAGONFLY)["logical"] == 28
    assert bsd.cpu_of(DRAGONFLY)["mitigations"]["machdep.spectre_mitigation"] == "IBRS_AUTO"
    assert bsd.memory_of(DRAGONFLY)["wired_shared_memory"] is True


def test_macos_tells_both_kinds_of_cores():
    cpu = bsd.cpu_of(MACOS)
    assert (cpu["model"], cpu["cores"]) == ("Apple M2 Pro", 10)
    assert (cpu["performance_cores"], cpu["efficiency_cores"]) == (6, 4)
    assert bsd.system_of("Darwin", MACOS)["distribution"] == "macOS 15.1"
    assert bsd.system_of("Darwin", MACOS)["virtualisation"] == "none"
    assert bsd.memory_of(MACOS)["total_mb"] == 16384


def test_what_sysctl_does_not_tell_is_unknown():
    for group in (bsd.cpu_of({}), bsd.memory_of({}), bsd.hardware_of({})):
        assert set(group.values()) == {None}
    assert {name for name, value in bsd.system_of("FreeBSD", {}).items() if value is not None} == {"system"}


def _facts_of(machine):
    return {
        group: values for group, values in facts_of(Subject(None, Path("/var/db/postgres"), machine)).items() if values
    }


@pytest.mark.parametrize(
    ("name", "model"), [("FreeBSD", "AMD EPYC 7B13"), ("DragonFly", None), ("Darwin", "Apple M2 Pro")]
)
def test_another_host_tells_its_facts_by_its_own_tools(name, model):
    file = {"FreeBSD": "freebsd", "DragonFly": "dragonfly", "Darwin": "macos"}[name]
    said = {"sysctl": recorded(f"{file}-sysctl.txt")}
    facts = _facts_of(PlayedMachine(said, f"{name}\n1.2-RELEASE\n{name} of somebody\namd64\nunknown"))
    values = parse_fields(said["sysctl"])
    expected = bsd.cpu_of(values) | {"model": model or values["hw.model"], "architecture": "amd64"}
    assert {fact: facts["cpu"][fact] for fact in expected} == expected
    assert facts["memory"]["total_mb"] == bsd.memory_of(values)["total_mb"]
    assert facts["os"]["system"] == name
    assert facts["os"]["kernel_build"] == f"{name} of somebody"
    assert facts["client"]["connection"] == "over the network"


def test_what_another_host_does_not_tell_is_not_taken_from_this_one():
    facts = _facts_of(PlayedMachine({}, "FreeBSD\n14.2-RELEASE\nFreeBSD 14.2\namd64\namd64"))
    told = {
        (group, name): value for group, values in facts.items() for name, value in values.items() if value is not None
    }
    assert {
        key: value for key, value in told.items() if key[0] in ("cpu", "memory", "limits", "storage", "hardware")
    } == {
        ("cpu", "architecture"): "amd64",
        ("cpu", "model"): "amd64",
    }


def test_another_host_is_asked_once_for_what_several_collectors_want():
    machine = PlayedMachine({"sysctl": recorded("freebsd-sysctl.txt")}, "FreeBSD\n14.2\nFreeBSD 14.2\namd64\namd64")
    _facts_of(machine)
    assert machine.asked.count("sysctl") == 1
    assert len(machine.asked) <= 10


def test_a_bsd_tells_the_file_system_of_a_directory_by_mount():
    said = {"mount": recorded("freebsd-mount.txt"), "zfs": recorded("zfs_get.txt")}
    storage = _facts_of(PlayedMachine(said, "FreeBSD\n14.2\nFreeBSD 14.2\namd64\namd64"))["storage"]
    assert (storage["filesystem"], storage["mount_point"], storage["source"]) == ("zfs", "/var/db/postgres", "zroot/pg")
    assert storage["mount_options"] == "local,nfsv4acls,noatime,rw"
    assert storage["filesystem_parameters"]["recordsize"] == "8192"
    assert "device" not in storage
