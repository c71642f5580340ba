"""Facts of systems other than Linux, from what their tools print."""

from __future__ import annotations

import platform

import pytest

from pgtrial.facts import bsd, windows
from pgtrial.facts.collect import Subject

from .recordings import recorded

FREEBSD = bsd.parse_sysctl(recorded("freebsd-sysctl.txt"))
DRAGONFLY = bsd.parse_sysctl(recorded("dragonfly-sysctl.txt"))
MACOS = bsd.parse_sysctl(recorded("macos-sysctl.txt"))
WINDOWS = windows.parse_cim(recorded("windows-cim.txt"))


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


def test_the_bsd_collectors_ask_sysctl_where_the_system_is_one_of_theirs(monkeypatch):
    monkeypatch.setattr(platform, "system", lambda: "DragonFly")
    monkeypatch.setattr(bsd, "_sysctl", lambda: DRAGONFLY)
    assert bsd.cpu(Subject(None, None, here=True))["logical"] == 28
    assert bsd.cpu(Subject(None, None, here=False)) == {}
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    assert bsd.cpu(Subject(None, None, here=True)) == {}


def test_windows_tells_machine_processor_and_power_plan():
    cpu = windows.cpu_of(WINDOWS)
    assert cpu["model"] == "Intel(R) Xeon(R) Platinum 8370C CPU @ 2.80GHz"
    assert (cpu["sockets"], cpu["cores"], cpu["logical"], cpu["governor"]) == (1, 2, 4, "High performance")
    assert windows.memory_of(WINDOWS)["total_mb"] == 16382
    assert windows.hardware_of(WINDOWS)["bios_version"] == "090008"
    system = windows.system_of(WINDOWS)
    assert (system["kernel"], system["virtualisation"]) == ("10.0.20348", "Microsoft Corporation Virtual Machine")


def test_a_windows_host_with_hyper_v_is_no_guest():
    asked = {"system": {"Manufacturer": "Dell Inc.", "Model": "PowerEdge R640", "HypervisorPresent": True}}
    assert windows.system_of(asked)["virtualisation"] == "none"


@pytest.mark.parametrize("said", [None, "", "not JSON", "[]"])
def test_what_powershell_does_not_tell_is_unknown(said):
    asked = windows.parse_cim(said)
    for group in (windows.cpu_of(asked), windows.memory_of(asked), windows.hardware_of(asked)):
        assert set(group.values()) == {None}
    assert windows.system_of(asked)["virtualisation"] is None
