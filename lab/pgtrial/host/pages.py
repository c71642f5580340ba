"""Huge pages of the host: how many there are, and reserving more (Linux: admin-guide/mm/hugetlbpage.rst)."""

from __future__ import annotations

import os
import time
from pathlib import Path

import psutil

from pgtrial.host.change import Change, HostError

_POOLS = Path("/sys/kernel/mm/hugepages")
_SLABS = Path("/sys/kernel/slab")
KB = {"2MB": 2048, "1GB": 1048576}
PAUSES_S = (0.0, 0.25, 0.5, 1.0, 2.0)
"""Before each attempt after the first: what the kernel frees, it frees little by little."""


class HugePages(Change):
    """More pages of one size in the kernel's pool: `pages` beyond the `previous` ones."""

    size: str
    pages: int
    previous: int

    def make(self) -> None:
        """Reserve them, in some seconds and several attempts if they are not to be had at once.

        Where the kernel gives too few, those count that the pool had before and nobody uses: reserved at boot, say.
        """
        _pool(self.size)
        needed, free = self.pages * KB[self.size] * 1024, psutil.virtual_memory().available
        if needed > free:
            if self._enough():
                return
            raise HostError(
                f"{self.pages} huge pages of {self.size} take {needed / 1e9:.1f} GB and {free / 1e9:.1f} GB of memory "
                "are free; lower shared_buffers"
            )
        self._ask()
        for pause in PAUSES_S:
            if self._enough():
                return
            time.sleep(pause)
            make_contiguous()
            self._ask()
        if not self._enough():
            raise HostError(
                f"of {self.pages} huge pages of {self.size} the kernel gave {max(self._got(), 0)} in "
                f"{len(PAUSES_S) + 1} attempts: not enough contiguous memory is free; lower shared_buffers, stop other "
                f"programs, or reserve the pages at boot (hugepagesz={self.size.removesuffix('B')} "
                f"hugepages={self.pages})"
            )

    def _ask(self) -> None:
        """Ask for what is missing; the pages of the attempts before are kept."""
        _write(_pool(self.size), self.previous + self.pages)

    def _got(self) -> int:
        return reserved(self.size) - self.previous

    def _enough(self) -> bool:
        return self._got() >= self.pages or spare(self.size) >= self.pages

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


def spare(size: str) -> int:
    """Pages of a size that the pool holds and that nobody uses or is promised."""
    home = _pool(size).parent
    return int((home / "free_hugepages").read_text()) - int((home / "resv_hugepages").read_text())


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
    """Have the kernel drop caches that can be read again and move pages together, if it does such things.

    A page of 1 GB fails by a single page that cannot be moved, mostly one with the kernel's own small objects (slab).
    """
    os.sync()
    steps = [(Path("/proc/sys/vm/drop_caches"), "3")]
    steps += [(cache / "shrink", "1") for cache in sorted(_SLABS.glob("*"))]
    steps += [(Path("/proc/sys/vm/compact_memory"), "1")]
    for path, value in steps:
        try:
            path.write_text(value)
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
