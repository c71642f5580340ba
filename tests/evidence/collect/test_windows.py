"""Facts of a host with Windows, from what its PowerShell prints; they were played back, never collected there."""

from __future__ import annotations

from pathlib import Path

import pytest

from pgtrial.evidence.collect import windows
from pgtrial.evidence.collect.collect import facts_of
from pgtrial.evidence.collect.files import WindowsFiles
from pgtrial.evidence.collect.subject import Subject, backend_process
from pgtrial.machines.windows import WindowsHost, command_line, parse_reply

from .recordings import recorded

DATA = Path("D:/pgdata")
TOLD = parse_reply(recorded("windows-cim.txt"))


class PlayedWindows(WindowsHost):
    """A host with Windows that answers every script with the same output."""

    label = "somebody@windows"

    def __init__(self, said: str):
        self._said = said
        self.scripts: list[str] = []

    def powershell(self, script: str) -> str:
        self.scripts.append(script)
        return self._said


def test_all_collectors_ask_once():
    host = PlayedWindows(recorded("windows-cim.txt"))
    facts = facts_of(Subject(None, DATA, host))
    assert len(host.scripts) == 1
    assert "DeviceID='D:'" in host.scripts[0]
    assert facts["os"]["distribution"] == "Microsoft Windows Server 2022 Datacenter"
    assert facts["storage"]["filesystem"] == "NTFS"
    assert facts["client"]["connection"] == "over the network"


def test_machine_processor_and_power_plan():
    cpu = windows.cpu_of(TOLD)
    assert cpu["model"] == "Intel(R) Xeon(R) Platinum 8370C CPU @ 2.80GHz"
    assert (cpu["sockets"], cpu["cores"], cpu["logical"], cpu["governor"]) == (1, 2, 4, "High performance")
    assert (cpu["architecture"], cpu["cache"], cpu["max_mhz"]) == ("x64", "49152 KB", 2793)
    assert windows.hardware_of(TOLD)["bios_version"] == "090008"
    system = windows.system_of(TOLD)
    assert (system["kernel"], system["virtualisation"]) == ("10.0.20348", "Microsoft Corporation Virtual Machine")
    assert (system["ticks_per_s"], system["time_synchronisation"]) == (10_000_000, "NTP")


def test_memory_and_what_nobody_asked_of_it():
    memory = windows.memory_of(TOLD)
    assert (memory["total_mb"], memory["swap_mb"], memory["modules"], memory["modules_mts"]) == (16382, 2432, 1, 2933)
    assert memory["large_pages_privilege"] is None


def test_the_volume_of_the_data_and_its_disk():
    storage = windows.storage_of(TOLD, DATA)
    assert (storage["filesystem"], storage["mount_point"], storage["allocation_unit"]) == ("NTFS", "D:/", 4096)
    assert (storage["device"], storage["device_model"], storage["device_mb"]) == ("disk 1", "Msft Virtual Disk", 131072)
    assert (storage["bus"], storage["rotational"], storage["on_this_host"]) == ("SAS", False, True)
    assert (storage["logical_block"], storage["physical_block"], storage["wal_link"]) == (512, 4096, None)


def test_a_host_with_hyper_v_is_no_guest():
    told = {"system": {"Manufacturer": "Dell Inc.", "Model": "PowerEdge R640", "HypervisorPresent": True}}
    assert windows.system_of(told)["virtualisation"] == "none"


@pytest.mark.parametrize(
    ("told", "plan"),
    [
        ("GUID du mode de gestion : 381b4222-f694-41f0-9685-ff5bb260df2e  (Utilisation normale)", "Balanced"),
        ("GUID: 11111111-2222-3333-4444-555555555555  (Mine)", "Mine"),
        ("GUID: 11111111-2222-3333-4444-555555555555", "11111111-2222-3333-4444-555555555555"),
        ("", None),
        (None, None),
        (["x"], None),
    ],
)
def test_the_power_plan_is_known_in_every_language(told, plan):
    assert windows.cpu_of({"power": told})["governor"] == plan


@pytest.mark.parametrize(
    ("physical", "rotational", "bus"),
    [
        ({"MediaType": 3, "BusType": 11}, True, "SATA"),
        ({"MediaType": "SSD", "BusType": "NVMe"}, False, "NVMe"),
        ({"MediaType": "Unspecified", "BusType": 17}, None, "NVMe"),
        ({"MediaType": 0, "BusType": 99}, None, None),
        ({"MediaType": None, "BusType": None}, None, None),
    ],
)
def test_disks_are_told_by_name_or_by_number(physical, rotational, bus):
    storage = windows.storage_of({"physical": physical}, DATA)
    assert (storage["rotational"], storage["bus"]) == (rotational, bus)


@pytest.mark.parametrize("said", [None, "", "not JSON", "[]", "{", '{"cpu":null,"system":[null],"disk":"none"}'])
def test_what_powershell_does_not_tell_is_unknown(said):
    told = parse_reply(said)
    for group in (windows.cpu_of(told), windows.memory_of(told), windows.hardware_of(told)):
        assert set(group.values()) == {None}
    assert {name for name, value in windows.system_of(told).items() if value is not None} == {"system"}
    storage = windows.storage_of(told, DATA)
    assert {name for name, value in storage.items() if value is not None} == {"mount_point"}


def test_processes_are_asked_of_powershell():
    assert backend_process(7, WindowsFiles(PlayedWindows("postgres\r\n"))) == 7
    assert backend_process(7, WindowsFiles(PlayedWindows(""))) is None


def test_the_script_fits_on_a_command_line_of_cmd():
    assert len(command_line(windows.script(Path("D:/" + "directory/" * 30)))) < 8192
