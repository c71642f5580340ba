"""Memory: size, swap, transparent and explicit huge pages, write-back limits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psutil

from pgtrial.evidence.collect.files import Files, number, read_facts
from pgtrial.evidence.collect.names import NAMES
from pgtrial.evidence.collect.subject import Subject, collector

_POOLS = Path("/sys/kernel/mm/hugepages")
_POOL = "hugepages-*kB/nr_hugepages"


@collector(
    "memory",
    host=True,
    files=[
        "/proc/meminfo",
        f"{_POOLS}/{_POOL}",
        *(path for table in NAMES["memory"].values() for path, _ in table.values()),
    ],
)
def memory(subject: Subject) -> dict[str, Any]:
    """Sizes in MB, intervals in hundredths of a second; nothing that changes by the minute."""
    files = subject.host
    info = files.fields("/proc/meminfo")
    return {
        "total_mb": _mb(info.get("MemTotal"), psutil.virtual_memory().total if files.local else None),
        "swap_mb": _mb(info.get("SwapTotal"), psutil.swap_memory().total if files.local else None),
        **read_facts(files, NAMES["memory"]["huge"]),
        "huge_pages": number(info.get("HugePages_Total")),
        "huge_page_size": info.get("Hugepagesize"),
        "huge_page_pools": huge_page_pools(files, _POOLS),
        **read_facts(files, NAMES["memory"]["limits"]),
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
