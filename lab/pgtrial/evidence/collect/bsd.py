"""Collects facts of FreeBSD, DragonFly and macOS, from sysctl and kenv."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pgtrial.evidence.collect.files import NAMES, Files, flag, number, parse_fields, scaled
from pgtrial.evidence.collect.subject import Collector, Subject, collector

Values = dict[str, str]
Group = dict[str, Any]

_SYSTEMS = tuple(NAMES["sysctl"])
_EACH = 'for name do sysctl "$name" 2>/dev/null; done; true'


@collector("hardware", systems=_SYSTEMS)
def hardware(subject: Subject) -> Group:
    """Returns the facts of the machine from the kernel's environment (kenv). On a Mac, which has no kenv, the fact
    `product` is the model that sysctl prints."""
    if subject.host.uname.system == "Darwin":
        return {"vendor": "Apple", "product": _sysctl(subject.host).get("hw.model")}
    return hardware_of(parse_kenv(subject.host.output("kenv") or ""))


def parse_kenv(text: str) -> Values:
    """Returns the variables in the output of `kenv`, which has lines of name="value"."""
    return {name: value.strip('"') for name, value in parse_fields(text, "=").items()}


def hardware_of(kenv: Values) -> Group:
    """Returns the facts from the smbios.* variables, which the boot loader sets on FreeBSD and DragonFly (kenv(1))."""
    return {name: kenv.get(variable) or None for name, variable in NAMES["kenv"].items()}


def cpu_of(values: Values) -> Group:
    """Returns the facts of the processors, under the same names as on Linux. `values` has the variables that sysctl
    printed; a fact is None if its variable is not among them."""
    return {
        "model": values.get("machdep.cpu.brand_string") or values.get("hw.model"),
        "logical": number(values.get("hw.logicalcpu") or values.get("hw.ncpu")),
        "cores": number(values.get("hw.physicalcpu")),
        "performance_cores": number(values.get("hw.perflevel0.physicalcpu")),
        "efficiency_cores": number(values.get("hw.perflevel1.physicalcpu")),
        "smt": _switched(values.get("machdep.hyperthreading_allowed"), "on", "off"),
        "numa_nodes": number(values.get("vm.ndomains")),
        "idle_limit": values.get("hw.acpi.cpu.cx_lowest"),
        "driver": values.get("dev.cpu.0.freq_driver"),
        "mitigations": {name: values[name] for name in NAMES["mitigations"] if name in values} or None,
    }


def memory_of(values: Values) -> Group:
    """Returns the facts of the memory from the variables that sysctl printed, with sizes in MB; a fact is None if its
    variable is missing."""
    return {
        "total_mb": _mb(values.get("hw.physmem") or values.get("hw.memsize")),
        "swap_mb": _mb(values.get("vm.swap_total")),
        "overcommit": number(values.get("vm.overcommit")),
        "page_sizes": values.get("hw.pagesizes") or values.get("hw.pagesize"),
        "superpages": flag(values.get("vm.pmap.pg_ps_enabled")),
        "wired_shared_memory": flag(values.get("kern.ipc.shm_use_phys")),
        "zfs_cache_mb": _mb(values.get("vfs.zfs.arc.max") or values.get("vfs.zfs.arc_max")),
        "compressor_mode": number(values.get("vm.compressor_mode")),
    }


def system_of(name: str, values: Values) -> Group:
    """Returns the facts of the operating system; `name` is its name as platform.system() returns it."""
    product = values.get("kern.osproductversion")
    release = values.get("kern.osrelease")
    guest = values.get("kern.vm_guest") or values.get("kern.vmm_guest")
    return {
        "system": name,
        "distribution": f"macOS {product}" if product else f"{name} {release}" if release else None,
        "kernel": release,
        "virtualisation": guest or _switched(values.get("kern.hv_vmm_present"), "unnamed hypervisor", "none"),
        "container": _switched(values.get("security.jail.jailed") or values.get("jail.jailed"), "jail", "none"),
        "clocksource": values.get("kern.timecounter.hardware") or values.get("kern.cputimer.name"),
        "scheduler": values.get("kern.sched.name"),
    }


def _switched(switch: str | None, on: str, off: str) -> str | None:
    return {None: None, "1": on}.get(switch, off)


def _mb(text: str | None) -> int | None:
    return scaled(text, 2**20)


def _sysctl(files: Files) -> Values:
    """Returns the variables that names.toml lists for this system, as far as sysctl knows them. sysctl is called once
    for each variable, since on some systems it stops at the first unknown name."""
    return parse_fields(files.output("sh", "-c", _EACH, "sh", *NAMES["sysctl"][files.uname.system]) or "")


def _collector(group: str, facts: Callable[[Values], Group]) -> Collector:
    return Collector(lambda subject: facts(_sysctl(subject.host)), group, systems=_SYSTEMS)


cpu = _collector("cpu", cpu_of)
memory = _collector("memory", memory_of)


@collector("os", systems=_SYSTEMS)
def system(subject: Subject) -> Group:
    """Returns the facts of the operating system: its release, the hypervisor, the jail and the clock."""
    return system_of(subject.host.uname.system, _sysctl(subject.host))
