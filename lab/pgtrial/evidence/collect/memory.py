"""Memory: size, swap, transparent and explicit huge pages, write-back limits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psutil

from pgtrial.evidence.collect.files import Files, number
from pgtrial.evidence.collect.subject import Subject, collector

_THP = "/sys/kernel/mm/transparent_hugepage"
_POOLS = Path("/sys/kernel/mm/hugepages")
_POOL = "hugepages-*kB/nr_hugepages"
_SYSCTL = "/proc/sys/vm"


@collector(
    "memory",
    host=True,
    files=[
        "/proc/meminfo",
        *(f"{_THP}/{name}" for name in ("enabled", "defrag", "shmem_enabled")),
        f"{_POOLS}/{_POOL}",
        *(f"{_SYSCTL}/{name}" for name in ("swappiness", "overcommit_memory", "dirty_*", "zone_reclaim_mode")),
        "/proc/sys/kernel/numa_balancing",
        "/sys/kernel/mm/ksm/run",
    ],
)
def memory(subject: Subject) -> dict[str, Any]:
    """Sizes in MB, intervals in hundredths of a second; nothing that changes by the minute."""
    files = subject.host
    read, chosen = files.read, files.chosen
    info = files.fields("/proc/meminfo")
    return {
        "total_mb": _mb(info.get("MemTotal"), psutil.virtual_memory().total if files.local else None),
        "swap_mb": _mb(info.get("SwapTotal"), psutil.swap_memory().total if files.local else None),
        "thp": chosen(f"{_THP}/enabled"),
        "thp_defrag": chosen(f"{_THP}/defrag"),
        "thp_shared": chosen(f"{_THP}/shmem_enabled"),
        "huge_pages": number(info.get("HugePages_Total")),
        "huge_page_size": info.get("Hugepagesize"),
        "huge_page_pools": huge_page_pools(files, _POOLS),
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


def _mb(kilobytes: str | None, size: int | None) -> int | None:
    """From the kernel's line (`2048 kB`), else from a size in bytes."""
    known = number(kilobytes)
    return known // 2**10 if known is not None else size // 2**20 if size is not None else None


def huge_page_pools(files: Files, directory: Path) -> dict[str, int | None] | None:
    """Pages reserved of each size that the processor has, by size in kB; None where the kernel lists none."""
    sizes = {path.parent.name.removeprefix("hugepages-"): path for path in files.glob(directory / _POOL)}
    ordered = sorted(sizes, key=lambda size: int(size.removesuffix("kB")))
    return {size: number(files.read(sizes[size])) for size in ordered} or None
