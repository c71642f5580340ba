"""Collects the facts of the hardware: the maker and model of the machine, its processors and its memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psutil

from pgtrial.evidence.collect.files import NAMES, Files, flag, number, read_facts, scaled
from pgtrial.evidence.collect.subject import Subject, collector
from pgtrial.machines.kernel import POOLS

_SYSTEM = Path("/sys/devices/system/cpu")
_NODES = "/sys/devices/system/node/node[0-9]*"
_GOVERNORS = "cpu[0-9]*/cpufreq/scaling_governor"
_SHARING = ("cpu[0-9]*/topology/core_cpus_list", "cpu[0-9]*/topology/thread_siblings_list")
"""The files that list the CPUs of a core, in newer and in older kernels."""

_CPU_FILES = (
    *("smt/control", "smt/active", "online", "isolated", "intel_pstate/no_turbo", "cpufreq/boost"),
    *("cpuidle/current_driver", "cpu0/cpufreq/*", "vulnerabilities/*", _GOVERNORS, *_SHARING),
)


@collector("cpu", host=True, files=["/proc/cpuinfo", _NODES, *(f"{_SYSTEM}/{name}" for name in _CPU_FILES)])
def cpu(subject: Subject) -> dict[str, Any]:
    """Returns those facts of the processors that do not change while a study runs. Momentary frequencies, for example,
    are left out."""
    files, read = subject.host, subject.host.read
    info = files.fields("/proc/cpuinfo")
    return {
        "model": info.get("model name") or files.uname.processor or None,
        "architecture": files.uname.machine or None,
        "logical": _logical(files),
        "cores": _cores(files),
        "smt": read(_SYSTEM / "smt/control"),
        "smt_active": flag(read(_SYSTEM / "smt/active")),
        "online": read(_SYSTEM / "online"),
        "isolated": _list(files, _SYSTEM / "isolated"),
        "numa_nodes": len(files.glob(_NODES)) or None,
        "cache": info.get("cache size"),
        "microcode": info.get("microcode"),
        "governor": governor(files, _SYSTEM),
        "preference": read(_SYSTEM / "cpu0/cpufreq/energy_performance_preference"),
        "max_mhz": scaled(read(_SYSTEM / "cpu0/cpufreq/cpuinfo_max_freq"), 1000),
        "limit_mhz": scaled(read(_SYSTEM / "cpu0/cpufreq/scaling_max_freq"), 1000),
        "driver": read(_SYSTEM / "cpu0/cpufreq/scaling_driver"),
        "boost": _boost(files),
        "idle_driver": read(_SYSTEM / "cpuidle/current_driver"),
        "mitigations": _mitigations(files),
    }


def _logical(files: Files) -> int | None:
    """Returns the number of CPUs that are online; None if it is not known."""
    online = files.read(_SYSTEM / "online")
    if online is not None:
        spans = [[int(end) for end in span.split("-")] for span in online.split(",")]
        return sum(span[-1] - span[0] + 1 for span in spans)
    listed = [line for line in (files.read("/proc/cpuinfo") or "").splitlines() if line.startswith("processor")]
    return len(listed) or (psutil.cpu_count() if files.local else None)


def _cores(files: Files) -> int | None:
    """Returns the number of cores to which the online CPUs belong."""
    for pattern in _SHARING:
        sharing = {files.read(path) for path in files.glob(_SYSTEM / pattern)}
        if sharing:
            return len(sharing)
    return psutil.cpu_count(logical=False) if files.local else None


def governor(files: Files, system: Path) -> str | None:
    """Returns the name of the frequency governor; if the processors have different ones, all their names."""
    names = {files.read(path) for path in files.glob(system / _GOVERNORS)}
    return ", ".join(sorted(name for name in names if name is not None)) or None


def _boost(files: Files) -> bool | None:
    no_turbo = flag(files.read(_SYSTEM / "intel_pstate/no_turbo"))
    return flag(files.read(_SYSTEM / "cpufreq/boost")) if no_turbo is None else not no_turbo


def _list(files: Files, path: Path) -> str | None:
    """Returns the list of CPUs in a file of the kernel, such as `0-3,8`; `none` if the list is empty, and None if the
    file does not exist."""
    return files.read(path) or ("none" if files.exists(path) else None)


def _mitigations(files: Files) -> dict[str, str] | None:
    """Returns, for each hardware vulnerability that this processor has, the mitigation that the kernel uses."""
    states = {path.name: files.read(path) or "" for path in files.glob(_SYSTEM / "vulnerabilities/*")}
    return {name: state for name, state in states.items() if state != "Not affected"} if states else None


_MODEL = "firmware/devicetree/base/model"
_HARDWARE_FILES = (*(f"class/dmi/id/{file}" for file in NAMES["dmi"].values()), "class/dmi/id", "firmware/efi", _MODEL)
_EMPTY = frozenset({"to be filled by o.e.m.", "default string", "not specified", "system product name", "none", "n/a"})
"""The placeholder texts, in lower case, that makers of machines leave in DMI fields in place of a model's name. They
count as unknown."""


@collector("hardware", host=True, files=[f"/sys/{path}" for path in _HARDWARE_FILES])
def hardware(subject: Subject) -> dict[str, Any]:
    """Returns the facts of the machine. They are None if the kernel provides no DMI data, as in some virtual
    machines."""
    return linux_hardware(subject.host, Path("/sys"))


def linux_hardware(files: Files, sys: Path) -> dict[str, Any]:
    """Returns the facts from a sysfs tree mounted at `sys` (see Documentation/ABI/testing/sysfs-firmware-dmi-entries
    and dmi-id in the kernel's sources)."""
    facts = {name: _filled(files.read(sys / "class/dmi/id" / file)) for name, file in NAMES["dmi"].items()}
    product = facts["product"] or _filled(files.read(sys / _MODEL))
    return facts | {"product": product, "firmware": _firmware(files, sys)}


def _firmware(files: Files, sys: Path) -> str | None:
    if files.exists(sys / "firmware/efi"):
        return "UEFI"
    return "BIOS" if files.exists(sys / "class/dmi/id") else None


def _filled(text: str | None) -> str | None:
    plain = (text or "").strip("\0 ")
    return None if plain.lower() in _EMPTY else plain or None


_POOL, _SURPLUS = "nr_hugepages", "surplus_hugepages"
_EACH = "hugepages-*kB"
_POOL_FILES = [f"{POOLS}/{_EACH}/{name}" for name in (_POOL, _SURPLUS)]
_MEMORY_FILES = [path for table in NAMES["memory"].values() for path, _ in table.values()]


@collector(
    "memory",
    host=True,
    files=["/proc/meminfo", *_POOL_FILES, *_MEMORY_FILES],
)
def memory(subject: Subject) -> dict[str, Any]:
    """Returns those facts of the memory that do not change from minute to minute. Sizes are in MB, intervals in
    hundredths of a second."""
    files = subject.host
    info = files.fields("/proc/meminfo")
    return {
        "total_mb": _mb(info.get("MemTotal"), psutil.virtual_memory().total if files.local else None),
        "swap_mb": _mb(info.get("SwapTotal"), psutil.swap_memory().total if files.local else None),
        **read_facts(files, NAMES["memory"]["huge"]),
        "huge_pages": _kept_pages(info.get("HugePages_Total"), info.get("HugePages_Surp")),
        "huge_page_size": info.get("Hugepagesize"),
        "huge_page_pools": huge_page_pools(files, POOLS),
        **read_facts(files, NAMES["memory"]["limits"]),
    }


def _mb(kilobytes: str | None, size: int | None) -> int | None:
    """Returns a size in MB from a line of the kernel (`2048 kB`), or, if there is no such line, from a size in
    bytes."""
    known = scaled(kilobytes, 2**10)
    return size // 2**20 if known is None and size is not None else known


def huge_page_pools(files: Files, directory: Path) -> dict[str, int | None] | None:
    """Returns the number of reserved huge pages for each page size, such as `2048kB`; None if the kernel lists no
    sizes."""
    homes = {path.parent.name.removeprefix("hugepages-"): path.parent for path in files.glob(directory / _EACH / _POOL)}
    ordered = {size: homes[size] for size in sorted(homes, key=lambda size: int(size.removesuffix("kB")))}
    return {
        size: _kept_pages(files.read(home / _POOL), files.read(home / _SURPLUS)) for size, home in ordered.items()
    } or None


def _kept_pages(total: str | None, surplus: str | None) -> int | None:
    """Returns the number of pages in a pool of huge pages without surplus pages. The kernel adds surplus pages on
    demand and removes them as soon as the processes that use them end, so their number is not a property of the
    machine."""
    pages = number(total)
    return pages if pages is None else pages - (number(surplus) or 0)
