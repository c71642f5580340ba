"""Windows: what CIM says, asked once by PowerShell."""

from __future__ import annotations

import json
from typing import Any

from pgtrial.facts.collect import Subject, collector
from pgtrial.facts.files import Files

Group = dict[str, Any]

_SCRIPT = """
$ErrorActionPreference = 'SilentlyContinue'
[Console]::OutputEncoding = [Text.Encoding]::UTF8
@{
  system = Get-CimInstance Win32_ComputerSystem |
    Select-Object Manufacturer, Model, TotalPhysicalMemory, HypervisorPresent, AutomaticManagedPagefile
  bios = Get-CimInstance Win32_BIOS | Select-Object Manufacturer, SMBIOSBIOSVersion
  board = Get-CimInstance Win32_BaseBoard | Select-Object Manufacturer, Product
  os = Get-CimInstance Win32_OperatingSystem | Select-Object Caption, Version, BuildNumber
  cpu = @(Get-CimInstance Win32_Processor |
    Select-Object Name, NumberOfCores, NumberOfLogicalProcessors, MaxClockSpeed, L3CacheSize)
  power = (Get-CimInstance -Namespace root/cimv2/power Win32_PowerPlan -Filter 'IsActive=True').ElementName
  disks = @(Get-PhysicalDisk | Select-Object FriendlyName, MediaType, BusType, FirmwareVersion)
} | ConvertTo-Json -Depth 3 -Compress
"""
_HYPERVISORS = ("VMware", "VirtualBox", "KVM", "QEMU", "Xen", "Virtual Machine", "Amazon EC2", "Google Compute Engine")
"""In the maker's or the model's name of a virtual machine; HypervisorPresent is also true on a host with Hyper-V."""


@collector("hardware")
def hardware(subject: Subject) -> Group:
    """The machine, its board and its firmware."""
    files = _windows(subject)
    return {} if files is None else hardware_of(_asked(files))


@collector("cpu")
def cpu(subject: Subject) -> Group:
    """Of all sockets together; the power plan is what governs the frequency."""
    files = _windows(subject)
    return {} if files is None else cpu_of(_asked(files))


@collector("memory")
def memory(subject: Subject) -> Group:
    """Size in MB."""
    files = _windows(subject)
    return {} if files is None else memory_of(_asked(files))


@collector("os")
def system(subject: Subject) -> Group:
    """Edition, version, hypervisor."""
    files = _windows(subject)
    return {} if files is None else system_of(_asked(files))


def parse_cim(text: str | None) -> Group:
    """The JSON of the script; nothing where it is none."""
    try:
        found = json.loads(text or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def hardware_of(asked: Group) -> Group:
    """Names as on Linux."""
    return {
        "vendor": _of(asked, "system", "Manufacturer"),
        "product": _of(asked, "system", "Model"),
        "board_vendor": _of(asked, "board", "Manufacturer"),
        "board": _of(asked, "board", "Product"),
        "bios_vendor": _of(asked, "bios", "Manufacturer"),
        "bios_version": _of(asked, "bios", "SMBIOSBIOSVersion"),
    }


def cpu_of(asked: Group) -> Group:
    """Sums over the sockets; unknown if one of them does not tell."""
    sockets = [one for one in asked.get("cpu") or [] if isinstance(one, dict)]
    return {
        "model": _told(sockets[0].get("Name")) if sockets else None,
        "sockets": len(sockets) or None,
        "cores": _sum(sockets, "NumberOfCores"),
        "logical": _sum(sockets, "NumberOfLogicalProcessors"),
        "max_mhz": sockets[0].get("MaxClockSpeed") if sockets else None,
        "governor": _told(asked.get("power")),
    }


def memory_of(asked: Group) -> Group:
    """Installed memory that Windows may use."""
    size = _of(asked, "system", "TotalPhysicalMemory")
    return {
        "total_mb": int(size) // 2**20 if size is not None else None,
        "page_file_automatic": _of(asked, "system", "AutomaticManagedPagefile"),
    }


def system_of(asked: Group) -> Group:
    """The hypervisor by the names that makers of virtual machines give them."""
    return {
        "system": "Windows",
        "distribution": _of(asked, "os", "Caption"),
        "kernel": _of(asked, "os", "Version"),
        "virtualisation": _virtualisation(asked),
    }


def _virtualisation(asked: Group) -> str | None:
    name = f"{_of(asked, 'system', 'Manufacturer') or ''} {_of(asked, 'system', 'Model') or ''}".strip()
    if not name:
        return None
    return name if any(mark in name for mark in _HYPERVISORS) else "none"


def _of(asked: Group, part: str, name: str) -> Any:
    found = asked.get(part)
    return _told(found.get(name)) if isinstance(found, dict) else None


def _told(value: Any) -> Any:
    return value.strip() or None if isinstance(value, str) else value


def _sum(sockets: list[Group], name: str) -> int | None:
    numbers = [socket.get(name) for socket in sockets]
    return sum(one for one in numbers if one is not None) if numbers and None not in numbers else None


def _windows(subject: Subject) -> Files | None:
    """The machine, where it is one of these."""
    files = subject.files
    return files if files is not None and files.uname.system == "Windows" else None


def _asked(files: Files) -> Group:
    return parse_cim(files.output("powershell", "-NoProfile", "-NonInteractive", "-Command", _SCRIPT))
