"""The processor: model, count, frequency policy, mitigations."""

from __future__ import annotations

import platform
from pathlib import Path
from typing import Any

import psutil

from pgtrial.facts.collect import Subject, collector
from pgtrial.facts.files import fields, read

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
        "numa_nodes": len(list(Path("/sys/devices/system/node").glob("node[0-9]*"))) or None,
        "cache": info.get("cache size"),
        "microcode": info.get("microcode"),
        "governor": read(_SYSTEM / "cpu0/cpufreq/scaling_governor"),
        "driver": read(_SYSTEM / "cpu0/cpufreq/scaling_driver"),
        "boost": _boost(),
        "idle_driver": read(_SYSTEM / "cpuidle/current_driver"),
        "mitigations": _mitigations(),
    }


def _boost() -> bool | None:
    no_turbo = read(_SYSTEM / "intel_pstate/no_turbo")
    if no_turbo is not None:
        return no_turbo == "0"
    boost = read(_SYSTEM / "cpufreq/boost")
    return None if boost is None else boost == "1"


def _mitigations() -> dict[str, str] | None:
    """What the kernel does about each weakness that this processor has."""
    states = {path.name: read(path) or "" for path in sorted((_SYSTEM / "vulnerabilities").glob("*"))}
    return {name: state for name, state in states.items() if state != "Not affected"} if states else None
