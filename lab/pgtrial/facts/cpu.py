"""The processor: model, count, frequency policy, mitigations."""

from __future__ import annotations

import platform
from pathlib import Path
from typing import Any

import psutil

from pgtrial.facts.collect import Subject, collector
from pgtrial.facts.files import fields, number, read

_SYSTEM = Path("/sys/devices/system/cpu")


@collector("cpu")
def cpu(subject: Subject) -> dict[str, Any]:
    """Facts that stay the same while a study runs; no momentary frequency."""
    if not subject.here:
        return {}
    info = fields("/proc/cpuinfo")
    return {
        "model": info.get("model name") or platform.processor() or None,
        "architecture": platform.machine(),
        "logical": psutil.cpu_count(),
        "cores": psutil.cpu_count(logical=False),
        "smt": read(_SYSTEM / "smt/control"),
        "smt_active": _flag(read(_SYSTEM / "smt/active")),
        "online": read(_SYSTEM / "online"),
        "isolated": _list(_SYSTEM / "isolated"),
        "numa_nodes": len(list(Path("/sys/devices/system/node").glob("node[0-9]*"))) or None,
        "cache": info.get("cache size"),
        "microcode": info.get("microcode"),
        "governor": governor(_SYSTEM),
        "preference": read(_SYSTEM / "cpu0/cpufreq/energy_performance_preference"),
        "max_mhz": _megahertz(read(_SYSTEM / "cpu0/cpufreq/cpuinfo_max_freq")),
        "limit_mhz": _megahertz(read(_SYSTEM / "cpu0/cpufreq/scaling_max_freq")),
        "driver": read(_SYSTEM / "cpu0/cpufreq/scaling_driver"),
        "boost": _boost(),
        "idle_driver": read(_SYSTEM / "cpuidle/current_driver"),
        "mitigations": _mitigations(),
    }


def governor(system: Path) -> str | None:
    """The frequency governor, or all that are in use, where the processors do not share one."""
    names = {read(path) for path in system.glob("cpu[0-9]*/cpufreq/scaling_governor")}
    return ", ".join(sorted(name for name in names if name is not None)) or None


def _megahertz(kilohertz: str | None) -> int | None:
    value = number(kilohertz)
    return None if value is None else value // 1000


def _boost() -> bool | None:
    no_turbo = read(_SYSTEM / "intel_pstate/no_turbo")
    if no_turbo is not None:
        return no_turbo == "0"
    boost = read(_SYSTEM / "cpufreq/boost")
    return None if boost is None else boost == "1"


def _list(path: Path) -> str | None:
    """A list of CPUs, which may be an empty line."""
    return read(path) or ("none" if path.exists() else None)


def _flag(text: str | None) -> bool | None:
    return None if text is None else text == "1"


def _mitigations() -> dict[str, str] | None:
    """What the kernel does about each weakness that this processor has."""
    states = {path.name: read(path) or "" for path in sorted((_SYSTEM / "vulnerabilities").glob("*"))}
    return {name: state for name, state in states.items() if state != "Not affected"} if states else None
