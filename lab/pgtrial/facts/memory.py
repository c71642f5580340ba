"""Memory: size, swap, transparent and explicit huge pages, write-back limits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psutil

from pgtrial.facts.collect import Subject, collector
from pgtrial.facts.files import chosen, fields, number, read

_THP = "/sys/kernel/mm/transparent_hugepage"
_POOLS = Path("/sys/kernel/mm/hugepages")
_SYSCTL = "/proc/sys/vm"


@collector("memory")
def memory(subject: Subject) -> dict[str, Any]:
    """Sizes in MB, intervals in hundredths of a second; nothing that changes by the minute."""
    if not subject.here:
        return {}
    info = fields("/proc/meminfo")
    return {
        "total_mb": psutil.virtual_memory().total // 2**20,
        "swap_mb": psutil.swap_memory().total // 2**20,
        "thp": chosen(f"{_THP}/enabled"),
        "thp_defrag": chosen(f"{_THP}/defrag"),
        "thp_shared": chosen(f"{_THP}/shmem_enabled"),
        "huge_pages": number(info.get("HugePages_Total")),
        "huge_page_size": info.get("Hugepagesize"),
        "huge_page_pools": huge_page_pools(_POOLS),
        "swappiness": number(read(f"{_SYSCTL}/swappiness")),
        "overcommit": number(read(f"{_SYSCTL}/overcommit_memory")),
        "dirty_ratio": number(read(f"{_SYSCTL}/dirty_ratio")),
        "dirty_bytes": number(read(f"{_SYSCTL}/dirty_bytes")),
        "dirty_background_ratio": number(read(f"{_SYSCTL}/dirty_background_ratio")),
        "dirty_background_bytes": number(read(f"{_SYSCTL}/dirty_background_bytes")),
        "dirty_expire_cs": number(read(f"{_SYSCTL}/dirty_expire_centisecs")),
        "dirty_writeback_cs": number(read(f"{_SYSCTL}/dirty_writeback_centisecs")),
        "zone_reclaim": number(read(f"{_SYSCTL}/zone_reclaim_mode")),
        "numa_balancing": number(read("/proc/sys/kernel/numa_balancing")),
        "same_page_merging": number(read("/sys/kernel/mm/ksm/run")),
    }


def huge_page_pools(directory: Path) -> dict[str, int | None] | None:
    """Pages reserved of each size that the processor has, by size in kB; None where the kernel tells of none."""
    sizes = {path.name.removeprefix("hugepages-"): path for path in directory.glob("hugepages-*kB")}
    ordered = sorted(sizes, key=lambda size: int(size.removesuffix("kB")))
    return {size: number(read(sizes[size] / "nr_hugepages")) for size in ordered} or None
