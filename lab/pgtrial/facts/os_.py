"""The operating system: kernel, distribution, virtualisation, clock."""

from __future__ import annotations

import platform
import re
from pathlib import Path
from typing import Any

from pgtrial.facts.collect import Subject, collector
from pgtrial.facts.files import fields, output, read

_TELLING = re.compile(
    r"(mitigations|nosmt|hugepages|hugepagesz|default_hugepagesz|transparent_hugepage|isolcpus|nohz_full|rcu_nocbs|"
    r"intel_pstate|amd_pstate|intel_idle\.\S+|processor\.\S+|idle|clocksource|tsc|numa_balancing|preempt|spectre_v2|pti|"
    r"elevator|swapaccount|iommu|intel_iommu|amd_iommu)(=\S*)?"
)
"""Kernel parameters that bear on speed; the rest of the command line may name disks, addresses or secrets."""


_ENGINES = {
    "kubepods": "kubernetes",
    "docker": "docker",
    "libpod": "podman",
    "lxc": "lxc",
    "containerd": "containerd",
    "garden": "garden",
    "machine.slice": "systemd-nspawn",
}
"""By what the paths of their control groups hold; the more telling first."""


@collector("os")
def operating_system(subject: Subject) -> dict[str, Any]:
    """The kernel's version and the parameters that bear on speed."""
    if not subject.here:
        return {}
    return {
        "system": platform.system(),
        "distribution": _distribution(),
        "kernel": platform.release(),
        "kernel_build": platform.version(),
        "parameters": _parameters(),
        "libc": " ".join(platform.libc_ver()).strip() or None,
        "virtualisation": virtualisation(),
        "container": _container(),
        "clocksource": read("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        "preemption": _preemption(),
        "address_randomisation": read("/proc/sys/kernel/randomize_va_space"),
    }


def virtualisation() -> str | None:
    """`none`, or the hypervisor by the best name that can be found."""
    said = output("systemd-detect-virt", "--vm")  # fails, saying none, where there is none
    if said is not None:
        return said
    hypervisor = read("/sys/hypervisor/type")
    if hypervisor is not None:
        return hypervisor
    vendor = read("/sys/class/dmi/id/sys_vendor") or ""
    product = read("/sys/class/dmi/id/product_name") or ""
    for mark in ("QEMU", "KVM", "VMware", "VirtualBox", "Xen", "Amazon EC2", "Google", "Microsoft", "Hetzner"):
        if mark.lower() in f"{vendor} {product}".lower():
            return f"{vendor} {product}".strip()
    flags = fields("/proc/cpuinfo").get("flags")
    if flags is None:
        return None
    return "unnamed hypervisor" if "hypervisor" in flags.split() else "none"


def _distribution() -> str | None:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME")
    except OSError:
        return None


def _parameters() -> list[str] | None:
    line = read("/proc/cmdline")
    # what follows -- is for the first process
    return None if line is None else [word for word in line.split(" -- ")[0].split() if _TELLING.fullmatch(word)]


def _container() -> str | None:
    """By what containers leave behind, then by the control group of the first process; None where nothing is told."""
    if Path("/.dockerenv").exists():
        return "docker"
    if Path("/run/.containerenv").exists():
        return "podman"
    return read("/run/systemd/container") or container_of(read("/proc/1/cgroup"))


def container_of(groups: str | None) -> str | None:
    """The engine that the paths of /proc/1/cgroup speak of; `none` for an ordinary init process."""
    if groups is None:
        return None
    return next((engine for mark, engine in _ENGINES.items() if mark in groups), "none")


def _preemption() -> str | None:
    found = re.search(r"PREEMPT(_\w+)?", platform.version())
    return found[0] if found else None
