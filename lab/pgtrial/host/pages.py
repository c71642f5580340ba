"""Huge pages of the host: how many there are, and reserving more (Linux: admin-guide/mm/hugetlbpage.rst)."""

from __future__ import annotations

import os
from pathlib import Path

import psutil

from pgtrial.host.change import Change, HostError

_POOLS = Path("/sys/kernel/mm/hugepages")
KB = {"2MB": 2048, "1GB": 1048576}


class HugePages(Change):
    """More pages of one size in the kernel's pool: `pages` beyond the `previous` ones."""

    size: str
    pages: int
    previous: int

    def make(self) -> None:
        """Reserve them; memory is made contiguous first if they are not to be had at once."""
        pool, wanted = _pool(self.size), self.previous + self.pages
        needed, free = self.pages * KB[self.size] * 1024, psutil.virtual_memory().available
        if needed > free:
            raise HostError(
                f"{self.pages} huge pages of {self.size} take {needed / 1e9:.1f} GB and {free / 1e9:.1f} GB of memory "
                "are free; lower shared_buffers"
            )
        for attempt in range(2):
            _write(pool, wanted)
            got = _read(pool)
            if got >= wanted:
                return
            if attempt == 0:
                make_contiguous()
        raise HostError(
            f"of {self.pages} huge pages of {self.size} the kernel gave {got - self.previous}: not enough contiguous "
            "memory is free; lower shared_buffers, free memory, or reserve the pages at boot"
        )

    def undo(self) -> None:
        """Give them back."""
        pool = _pool(self.size)
        if _read(pool) != self.previous:
            _write(pool, self.previous)

    def __str__(self) -> str:
        return f"{self.pages} huge pages of {self.size}"


def reserved(size: str) -> int:
    """Pages of a size that the pool holds, used or not. Raises HostError where there is no such pool."""
    return _read(_pool(size))


def counters() -> dict[str, int]:
    """The kernel's counters for each size, e.g. `2MB_free`, and in kB what /proc/meminfo tells of huge memory."""
    found: dict[str, int] = {}
    for size, kilobytes in KB.items():
        home = _POOLS / f"hugepages-{kilobytes}kB"
        for name, file in (("total", "nr_hugepages"), ("free", "free_hugepages"), ("reserved", "resv_hugepages")):
            if (home / file).exists():
                found[f"{size}_{name}"] = int((home / file).read_text())
    for line in Path("/proc/meminfo").read_text().splitlines():
        name, _, value = line.partition(":")
        if name in ("AnonHugePages", "ShmemHugePages", "PageTables"):
            found[f"{name}_kB"] = int(value.split()[0])
    return found


def make_contiguous() -> None:
    """Have the kernel drop caches that can be read again and move pages together, if it does such things."""
    os.sync()
    for path, value in (("/proc/sys/vm/drop_caches", "3"), ("/proc/sys/vm/compact_memory", "1")):
        try:
            Path(path).write_text(value)
        except OSError:
            continue


def _pool(size: str) -> Path:
    pool = _POOLS / f"hugepages-{KB[size]}kB" / "nr_hugepages"
    if not pool.exists():
        raise HostError(f"this kernel has no huge pages of {size}")
    return pool


def _read(pool: Path) -> int:
    return int(pool.read_text())


def _write(pool: Path, count: int) -> None:
    try:
        pool.write_text(str(count))
    except OSError as error:
        raise HostError(f"cannot reserve huge pages ({pool}): {error.strerror}") from None
