"""What Linux tells of a machine's memory (`proc_meminfo(5)`)."""

from __future__ import annotations

from pathlib import Path

from pgtrial.host.machine import HostError, Machine

_MEMINFO = Path("/proc/meminfo")


def meminfo(machine: Machine) -> dict[str, int]:
    """The numbers by their names, most of them in kB; none where there is no such file."""
    try:
        lines = machine.read_text(_MEMINFO).splitlines()
    except OSError:
        return {}
    return {name: int(value.split()[0]) for name, _, value in (line.partition(":") for line in lines) if value.split()}


def available_bytes(machine: Machine) -> int:
    """How much memory programs can still have without swapping. Raises HostError where the kernel does not tell."""
    kilobytes = meminfo(machine).get("MemAvailable")
    if kilobytes is None:
        raise HostError(f"the kernel of {machine.label} does not tell in {_MEMINFO} how much memory is available")
    return kilobytes * 1024
