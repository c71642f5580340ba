"""Memory of the host: what is available, how many huge pages there are, and reserving more
(Linux: admin-guide/mm/hugetlbpage.rst)."""

from __future__ import annotations

import time
from pathlib import Path

from pgtrial.machines.machine import Change, HostError, Machine, refused
from pgtrial.model.resources import resource

_POOLS = Path("/sys/kernel/mm/hugepages")
KB = {"2MB": 2048, "1GB": 1048576}
PAUSES_S = (0.0, 0.25, 0.5, 1.0, 2.0)
"""Before each attempt after the first: what the kernel frees, it frees little by little."""

_CONTIGUOUS = resource("make_contiguous.sh", __package__)
"""As one command: the caches are some hundred, and the machine may be far."""


class HugePages(Change):
    """More pages of one size in the kernel's pool: `pages` beyond the `previous` ones."""

    size: str
    pages: int
    previous: int

    def make(self, machine: Machine) -> None:
        """Reserve them, in some seconds and several attempts if they are not to be had at once.

        Where the kernel gives too few, those count that the pool had before and nobody uses: reserved at boot, say.
        """
        _pool(machine, self.size)
        needed, free = self.pages * KB[self.size] * 1024, available_bytes(machine)
        if needed > free:
            if self._enough(machine):
                return
            raise HostError(
                f"{self.pages} huge pages of {self.size} take {needed / 1e9:.1f} GB and {free / 1e9:.1f} GB of memory "
                "are free; lower shared_buffers"
            )
        self._ask(machine)
        for pause in PAUSES_S:
            if self._enough(machine):
                return
            time.sleep(pause)
            make_contiguous(machine)
            self._ask(machine)
        if not self._enough(machine):
            raise HostError(
                f"of {self.pages} huge pages of {self.size} the kernel gave {max(self._got(machine), 0)} in "
                f"{len(PAUSES_S) + 1} attempts: not enough contiguous memory is free; lower shared_buffers, stop other "
                f"programs, or reserve the pages at boot (hugepagesz={self.size.removesuffix('B')} "
                f"hugepages={self.pages})"
            )

    def _ask(self, machine: Machine) -> None:
        """Ask for what is missing; the pages of the attempts before are kept."""
        _write(machine, _pool(machine, self.size), self.previous + self.pages)

    def _got(self, machine: Machine) -> int:
        return reserved(machine, self.size) - self.previous

    def _enough(self, machine: Machine) -> bool:
        return self._got(machine) >= self.pages or spare(machine, self.size) >= self.pages

    def undo(self, machine: Machine) -> None:
        """Give them back."""
        pool = _pool(machine, self.size)
        if _read(machine, pool) != self.previous:
            _write(machine, pool, self.previous)

    def __str__(self) -> str:
        return f"{self.pages} huge pages of {self.size}"


def reserved(machine: Machine, size: str) -> int:
    """Pages of a size that the pool holds, used or not. Raises HostError where there is no such pool."""
    return _read(machine, _pool(machine, size))


def spare(machine: Machine, size: str) -> int:
    """Pages of a size that the pool holds and that nobody uses or is promised."""
    home = _pool(machine, size).parent
    return _read(machine, home / "free_hugepages") - _read(machine, home / "resv_hugepages")


def counters(machine: Machine) -> dict[str, int]:
    """The kernel's counters for each size, e.g. `2MB_free`, and in kB what /proc/meminfo tells of huge memory."""
    files = {
        f"{size}_{name}": _POOLS / f"hugepages-{kilobytes}kB" / file
        for size, kilobytes in KB.items()
        for name, file in (("total", "nr_hugepages"), ("free", "free_hugepages"), ("reserved", "resv_hugepages"))
    }
    texts = machine.read_many(list(files.values()))
    found = {name: int(texts[path]) for name, path in files.items() if path in texts}
    told = meminfo(machine)
    kept = [name for name in ("AnonHugePages", "ShmemHugePages", "PageTables") if name in told]
    return {**found, **{f"{name}_kB": told[name] for name in kept}}


def make_contiguous(machine: Machine) -> None:
    """Have the kernel drop caches that can be read again and move pages together, if it does such things.

    A page of 1 GB fails by a single page that cannot be moved, mostly one with the kernel's own small objects (slab).
    """
    machine.run(["sh", "-c", _CONTIGUOUS])


def _pool(machine: Machine, size: str) -> Path:
    pool = _POOLS / f"hugepages-{KB[size]}kB" / "nr_hugepages"
    if not machine.exists(pool):
        raise HostError(f"this kernel has no huge pages of {size}")
    return pool


def _read(machine: Machine, pool: Path) -> int:
    return int(machine.read_text(pool))


def _write(machine: Machine, pool: Path, count: int) -> None:
    with refused(f"reserve huge pages ({pool})"):
        machine.write_text(pool, str(count))


_MEMINFO = Path("/proc/meminfo")


def meminfo(machine: Machine) -> dict[str, int]:
    """The numbers by their names, most of them in kB; none where there is no such file."""
    try:
        lines = machine.read_text(_MEMINFO).splitlines()
    except OSError:
        return {}
    return {name: int(value.split()[0]) for name, _, value in (line.partition(":") for line in lines) if value.split()}


def available_bytes(machine: Machine) -> int:
    """How much memory programs can still have without swapping. Raises HostError where the kernel does not tell."""
    kilobytes = meminfo(machine).get("MemAvailable")
    if kilobytes is None:
        raise HostError(f"the kernel of {machine.label} does not tell in {_MEMINFO} how much memory is available")
    return kilobytes * 1024
