"""Collects the facts of Windows from CIM, the management interface of Windows, by one call of PowerShell. Some facts
are unknown to accounts without administrator rights."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pgtrial.evidence.collect.files import NAMES, POWERSHELL
from pgtrial.evidence.collect.subject import Collector, Subject, collector
from pgtrial.machines.windows import Reply, drive_of, parse_reply, part, parts_in, quoted, reply_script, rows, whole
from pgtrial.model.resources import filled, resource
from pgtrial.model.units import as_list

Group = dict[str, Any]

_PARTS = parts_in(resource("facts.ps1", __package__))
_VOLUME = resource("volume.ps1", __package__)
_DISK = "$disk = Get-Partition -DriveLetter @letter@ | Get-Disk"

_HYPERVISORS = ("VMware", "VirtualBox", "KVM", "QEMU", "Xen", "Virtual Machine", "Amazon EC2", "Google Compute Engine")
"""Words that occur in the maker's or model's name of virtual machines. The property HypervisorPresent cannot be used,
since it is also true on a host that runs Hyper-V."""

_WORDS = NAMES["windows"]
_PLAN = re.compile(r"([0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})(?:\s*\((.*)\))?")
_LOCAL_DISK = 3
"""The value of Win32_LogicalDisk.DriveType for a local disk."""


def script(directory: Path | None) -> str:
    """Returns the PowerShell script that reads all facts of the machine in one call, including those of the drive with
    `directory`, if that is given."""
    drive = drive_of(directory)
    if drive is None:
        return reply_script(_PARTS)
    names = {"drive": drive, "letter": drive[0], "wal": quoted(f"{directory}/pg_wal")}
    return reply_script(_PARTS | parts_in(filled(_VOLUME, **names)), filled(_DISK, **names))


def hardware_of(reply: Reply) -> Group:
    """Returns the facts about maker, model and firmware of the machine, under the same names as on Linux."""
    return {
        "vendor": _of(reply, "system", "Manufacturer"),
        "product": _of(reply, "system", "Model"),
        "board_vendor": _of(reply, "board", "Manufacturer"),
        "board": _of(reply, "board", "Product"),
        "bios_vendor": _of(reply, "bios", "Manufacturer"),
        "bios_version": _of(reply, "bios", "SMBIOSBIOSVersion"),
    }


def cpu_of(reply: Reply) -> Group:
    """Returns the facts of the processors, summed over the sockets. A sum is None if one of the sockets does not report
    its number."""
    sockets = rows(reply, "cpu")
    first = sockets[0] if sockets else {}
    cache = whole(first.get("L3CacheSize"))
    return {
        "model": _text(first.get("Name")),
        "architecture": _named(first.get("Architecture"), _WORDS["architectures"]),
        "sockets": len(sockets) or None,
        "cores": _sum(sockets, "NumberOfCores"),
        "logical": _sum(sockets, "NumberOfLogicalProcessors"),
        "cache": f"{cache} KB" if cache else None,
        "max_mhz": whole(first.get("MaxClockSpeed")),
        "governor": _plan(reply.get("power")),
    }


def memory_of(reply: Reply) -> Group:
    """Returns the facts of the memory that Windows may use, of its page files and modules. The right to lock large
    pages is not known."""
    size, modules = whole(_of(reply, "system", "TotalPhysicalMemory")), rows(reply, "memory")
    speeds = {whole(module.get("ConfiguredClockSpeed") or module.get("Speed")) for module in modules}
    return {
        "total_mb": None if size is None else size // 2**20,
        "swap_mb": _sum(rows(reply, "pages"), "AllocatedBaseSize"),
        "page_file_automatic": _of(reply, "system", "AutomaticManagedPagefile"),
        "modules": len(modules) or None,
        "modules_mts": speeds.pop() if len(speeds) == 1 else None,
        "large_pages_privilege": None,
    }


def system_of(reply: Reply) -> Group:
    """Returns the facts of the operating system. The fact `virtualisation` has the maker and model of a
    virtual machine, which name the hypervisor; it is `none` on other machines."""
    return {
        "system": "Windows",
        "distribution": _of(reply, "os", "Caption"),
        "kernel": _of(reply, "os", "Version"),
        "virtualisation": _virtualisation(reply),
        "ticks_per_s": whole(reply.get("ticks")),
        "time_synchronisation": _text(reply.get("time")),
    }


def storage_of(reply: Reply, directory: Path) -> Group:
    """Returns the facts of the file system and the disk of a directory with a drive letter. A network share has no
    facts of a disk."""
    disk, drive = part(reply, "disk"), drive_of(directory)
    size = whole(disk.get("Size"))
    media = _named(part(reply, "physical").get("MediaType"), _WORDS["media"])
    local = whole(_of(reply, "volume", "DriveType")) in (None, _LOCAL_DISK)
    disk_number = whole(disk.get("Number"))
    return {
        "filesystem": _of(reply, "volume", "FileSystem"),
        "mount_point": None if drive is None else f"{drive}/",
        "on_this_host": None if "volume" not in reply else local,
        "allocation_unit": whole(reply.get("unit")),
        "device": None if disk_number is None else f"disk {disk_number}",
        "device_model": _text(disk.get("FriendlyName")),
        "device_firmware": _text(disk.get("FirmwareVersion")),
        "device_mb": None if size is None else size // 2**20,
        "bus": _named(part(reply, "physical").get("BusType", disk.get("BusType")), _WORDS["buses"]),
        "rotational": _WORDS["spins"].get(media or ""),
        "logical_block": whole(disk.get("LogicalSectorSize")),
        "physical_block": whole(disk.get("PhysicalSectorSize")),
        "wal_link": next(filter(None, map(_text, as_list(reply.get("wal") or []))), None),
    }


def _plan(reply: Any) -> str | None:
    """Returns the power plan from a line such as `Power Scheme GUID: 8c5e7fda-... (High performance)`. It is identified
    by its GUID, since the rest depends on the language of Windows."""
    match = _PLAN.search(reply) if isinstance(reply, str) else None
    return None if match is None else _WORDS["plans"].get(match[1].lower(), match[2] or match[1].lower())


def _virtualisation(reply: Reply) -> str | None:
    name = f"{_of(reply, 'system', 'Manufacturer') or ''} {_of(reply, 'system', 'Model') or ''}".strip()
    if not name:
        return None
    return name if any(mark in name for mark in _HYPERVISORS) else "none"


def _named(value: Any, names: dict[str, str]) -> str | None:
    """Returns the name for a value, which PowerShell gives as a name and CIM as a number; None for values that mean
    "unspecified" or "unknown"."""
    code = whole(value)
    name = _text(value) if code is None else names.get(str(code))
    return None if name in ("Unspecified", "Unknown") else name


def _of(reply: Reply, name: str, key: str) -> Any:
    value = part(reply, name).get(key)
    return _text(value) if isinstance(value, str) else value


def _text(value: Any) -> str | None:
    return value.strip() or None if isinstance(value, str) else None


def _sum(rows: list[Reply], key: str) -> int | None:
    numbers = [whole(row.get(key)) for row in rows]
    return sum(one for one in numbers if one is not None) if numbers and None not in numbers else None


def _asked(subject: Subject) -> Reply:
    return parse_reply(subject.host.output(*POWERSHELL, script(subject.data_directory)))


def _collector(group: str, facts: Callable[[Reply], Group]) -> Collector:
    return Collector(lambda subject: facts(_asked(subject)), group, systems=["Windows"])


hardware = _collector("hardware", hardware_of)
cpu = _collector("cpu", cpu_of)
memory = _collector("memory", memory_of)
system = _collector("os", system_of)


@collector("storage", systems=["Windows"])
def storage(subject: Subject) -> Group:
    """Returns the facts of the volume that holds the data directory."""
    directory = subject.data_directory
    return {} if directory is None else storage_of(_asked(subject), directory)
