"""Collects the facts of the operating system, on the server's machine and on the lab's: kernel, distribution,
virtualisation, container and clock."""

from __future__ import annotations

import platform
import re
from typing import Any

from pgtrial.evidence.collect.files import NAMES, Files, MachineFiles
from pgtrial.evidence.collect.subject import Subject, collector
from pgtrial.machines.machine import LOCAL

_TELLING = re.compile(
    r"(mitigations|nosmt|hugepages|hugepagesz|default_hugepagesz|transparent_hugepage|isolcpus|nohz_full|rcu_nocbs|"
    r"intel_pstate|amd_pstate|intel_idle\.\S+|processor\.\S+|idle|clocksource|tsc|numa_balancing|preempt|spectre_v2|pti|"
    r"elevator|swapaccount|iommu|intel_iommu|amd_iommu)(=\S*)?"
)
"""Matches kernel parameters that affect speed. The rest of the kernel's command line is not stored, since it may name
disks, addresses or secrets."""

_OS_RELEASE = ("/etc/os-release", "/usr/lib/os-release")
_CLOCK = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
_RANDOMISATION = "/proc/sys/kernel/randomize_va_space"
_HYPERVISORS = ("qemu", "kvm", "vmware", "virtualbox", "xen", "amazon ec2", "google", "microsoft", "hetzner")
"""Words in the vendor's or the product's name of a virtual machine, in lower case."""
_FILES = (
    *(*_OS_RELEASE, _CLOCK, _RANDOMISATION, "/proc/cmdline", "/proc/cpuinfo", "/proc/1/cgroup"),
    *("/sys/hypervisor/type", "/sys/class/dmi/id/sys_vendor", "/sys/class/dmi/id/product_name"),
    *("/.dockerenv", "/run/.containerenv", "/run/systemd/container"),
)
_DETECT_VIRT = ("systemd-detect-virt", "--vm")
_LIBC = ("getconf", "GNU_LIBC_VERSION")


@collector("os", host=True, files=_FILES, tools=[_DETECT_VIRT, _LIBC])
def operating_system(subject: Subject) -> dict[str, Any]:
    """Returns the facts of the operating system, with the kernel's version and the parameters that affect speed."""
    files = subject.host
    return {
        **_named(files),
        "kernel_build": files.uname.version or None,
        "parameters": _parameters(files),
        "libc": (" ".join(platform.libc_ver()).strip() or None) if files.local else files.output(*_LIBC),
        "virtualisation": _virtualisation(files),
        "container": _container(files),
        "clocksource": files.read(_CLOCK),
        "preemption": _preemption(files),
        "address_randomisation": files.read(_RANDOMISATION),
    }


def _virtualisation(files: Files) -> str | None:
    """Returns the name of the hypervisor from the most reliable source that is available; `none` if there is no
    hypervisor, and None if that is not known."""
    detected = files.output(*_DETECT_VIRT)  # this command prints "none" and fails if there is no hypervisor
    if detected is not None:
        return detected
    hypervisor = files.read("/sys/hypervisor/type")
    if hypervisor is not None:
        return hypervisor
    name = " ".join(files.read(f"/sys/class/dmi/id/{part}") or "" for part in ("sys_vendor", "product_name")).strip()
    if any(mark in name.lower() for mark in _HYPERVISORS):
        return name
    flags = files.fields("/proc/cpuinfo").get("flags")
    if flags is None:
        return None
    return "unnamed hypervisor" if "hypervisor" in flags.split() else "none"


def _distribution(files: Files) -> str | None:
    """Returns PRETTY_NAME from the file os-release(5), or `Linux` if the file has none; None if there is no such
    file."""
    text = next(filter(None, map(files.read, _OS_RELEASE)), None)
    if text is None:
        return None
    match = re.search(r"""^PRETTY_NAME=(["']?)(.*)\1\s*$""", text, flags=re.MULTILINE)
    return re.sub(r"""\\([\\$"'`])""", r"\1", match[2]) if match else "Linux"


def _parameters(files: Files) -> list[str] | None:
    line = files.read("/proc/cmdline")
    # the words after -- are arguments of the first process
    return None if line is None else [word for word in line.split(" -- ")[0].split() if _TELLING.fullmatch(word)]


def _container(files: Files) -> str | None:
    """Returns the name of the container engine, from files that engines create or from the control group of the first
    process.

    None if that is not known.
    """
    if files.exists("/.dockerenv"):
        return "docker"
    if files.exists("/run/.containerenv"):
        return "podman"
    return files.read("/run/systemd/container") or container_of(files.read("/proc/1/cgroup"))


def container_of(groups: str | None) -> str | None:
    """Returns the container engine that the paths of /proc/1/cgroup name; `none` for an ordinary init process."""
    if groups is None:
        return None
    return next((engine for mark, engine in NAMES["containers"].items() if mark in groups), "none")


def _preemption(files: Files) -> str | None:
    match = re.search(r"PREEMPT(_\w+)?", files.uname.version)
    return match[0] if match else None


@collector("client")
def lab_machine(subject: Subject) -> dict[str, Any]:
    """Returns the facts of the lab's own operating system, whatever the subject is."""
    return _named(MachineFiles(LOCAL))


def _named(files: Files) -> dict[str, Any]:
    uname = files.uname
    return {"system": uname.system or None, "distribution": _distribution(files), "kernel": uname.release or None}
