"""Memory: size, swap, transparent and explicit huge pages, write-back limits."""

from __future__ import annotations

from typing import Any

import psutil

from pgtrial.facts.collect import Subject, collector
from pgtrial.facts.files import chosen, fields, read

_THP = "/sys/kernel/mm/transparent_hugepage"
_SYSCTL = "/proc/sys/vm"


@collector("memory")
def memory(subject: Subject) -> dict[str, Any]:
    """Sizes in MB; nothing that changes by the minute."""
    if not subject.here:
        return {}
    info = fields("/proc/meminfo")
    return {
        "total_mb": psutil.virtual_memory().total // 2**20,
        "swap_mb": psutil.swap_memory().total // 2**20,
        "thp": chosen(f"{_THP}/enabled"),
        "thp_defrag": chosen(f"{_THP}/defrag"),
        "huge_pages": _number(info.get("HugePages_Total")),
        "huge_page_size": info.get("Hugepagesize"),
        "swappiness": _number(read(f"{_SYSCTL}/swappiness")),
        "overcommit": _number(read(f"{_SYSCTL}/overcommit_memory")),
        "dirty_ratio": _number(read(f"{_SYSCTL}/dirty_ratio")),
        "dirty_bytes": _number(read(f"{_SYSCTL}/dirty_bytes")),
        "dirty_background_ratio": _number(read(f"{_SYSCTL}/dirty_background_ratio")),
        "dirty_background_bytes": _number(read(f"{_SYSCTL}/dirty_background_bytes")),
        "numa_balancing": _number(read("/proc/sys/kernel/numa_balancing")),
    }


def _number(text: str | None) -> int | None:
    return int(text.split()[0]) if text and text.split()[0].isdigit() else None
