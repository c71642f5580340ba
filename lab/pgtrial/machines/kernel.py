"""What the kernel has as files, and changes of it: sysctl, schedulers, governors, huge pages; one lab at a time.

Huge pages are reserved as in Linux: admin-guide/mm/hugetlbpage.rst.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from pydantic import BaseModel

from pgtrial.machines.locks import take
from pgtrial.machines.machine import LOCAL, Change, ChangedMeanwhile, HostError, Machine, lies_in, refused
from pgtrial.model.errors import ArmError
from pgtrial.model.resources import resource
from pgtrial.model.study.keys import KernelFile, keys_of
from pgtrial.model.study.machine_keys import COUNTERPARTS, MachineKeys

_SYSCTL = Path("/proc/sys")
_DEVICES = Path("/sys/devices")
_CHOSEN = re.compile(r"\[([^]]+)]")

_SWITCHES = [key.effect for key in keys_of(MachineKeys).values() if isinstance(key.effect, KernelFile)]
"""The files outside of /proc/sys that an arm may set."""
_PARAMETER = re.compile(r"[A-Za-z0-9_%][A-Za-z0-9_.%-]*")
"""A name that sysctl(8) takes for no option."""


def _is_switch(path: Path) -> bool:
    if ".." in path.parts:
        return False
    return lies_in(path, _SYSCTL) or any(
        path.match(switch.path) and (lies_in(path, _DEVICES) or not switch.of_disk) for switch in _SWITCHES
    )


class Counterpart(BaseModel):
    """The parameter that was in force in place of one that was 0: to set it again makes that one 0."""

    name: str
    path: Path
    previous: str


class _Value(Change):
    """A value of the kernel's."""

    name: str
    """For people: `vm.swappiness`."""
    value: str
    previous: str

    def _check(self, value: str) -> None:
        if value.split() != self.value.split():
            raise HostError(f"{self.name} was set to {self.value} and is {value}: the kernel gives no more, or refuses")

    def _is_to_be_undone(self, now: str) -> bool:
        """True if the value is the one that was set; False: the former one. Raises ChangedMeanwhile for another one."""
        if now.split() == self.previous.split():
            return False
        if now.split() != self.value.split():
            raise ChangedMeanwhile(
                f"{self.name} was {self.previous}, pgtrial has set it to {self.value}, and now it is {now}: somebody "
                "else has changed it meanwhile, so it stays as it is"
            )
        return True

    def __str__(self) -> str:
        return f"value of {self.name}, {self.previous} before"


class KernelValue(_Value):
    """A value in a file below /proc/sys or /sys."""

    path: Path
    counterpart: Counterpart | None = None

    @classmethod
    def planned(cls, machine: Machine, name: str, path: Path, value: str) -> Self:
        """The change from what there is now. Raises HostError for a file that is not there or cannot be read."""
        previous = read_value(machine, name, path)
        counterpart = None
        if previous == "0" and (other := COUNTERPARTS.get(name)) is not None:
            counterpart = _in_place(machine, other)
        return cls(name=name, path=path, value=value, previous=previous, counterpart=counterpart)

    def make(self, machine: Machine) -> None:
        """Write the value and look whether it is there; not without trying the way back, which some values lack."""
        try:
            self._put_back(machine)
        except HostError as error:
            raise HostError(f"{self.name} cannot be changed and put back: {error}") from None
        _write(machine, self.name, self.path, self.value)
        try:
            self._check(read_value(machine, self.name, self.path))
        except HostError:
            self._put_back(machine)
            raise

    def undo(self, machine: Machine) -> None:
        """Write the former value, unless it is there. Raises ChangedMeanwhile, and HostError."""
        if machine.exists(self.path) and self._is_to_be_undone(read_value(machine, self.name, self.path)):
            self._put_back(machine)

    def is_of(self, run: Path) -> bool:
        """The files of sysctl, and those below /sys that an arm may set; of counterparts those that are known."""
        other = self.counterpart
        known = other is None or (COUNTERPARTS.get(self.name) == other.name and other.path == sysctl_path(other.name))
        return _is_switch(self.path) and known

    def _put_back(self, machine: Machine) -> None:
        back = self.counterpart or self
        _write(machine, back.name, back.path, back.previous)


def _in_place(machine: Machine, name: str) -> Counterpart | None:
    path = sysctl_path(name)
    previous = read_value(machine, name, path)
    return Counterpart(name=name, path=path, previous=previous) if previous != "0" else None


def sysctl_path(name: str) -> Path:
    """The file of a sysctl: dots are slashes, as in sysctl(8)."""
    return _SYSCTL / name.replace(".", "/")


def read_value(machine: Machine, name: str, path: Path) -> str:
    """The value in force; of a list of choices the one in brackets. Raises HostError."""
    with refused(f"read {name} ({path})"):
        try:
            value = in_force(machine.read_text(path).strip())
        except FileNotFoundError:
            raise HostError(f"this kernel has no {name} ({path})") from None
    return str(int(value) - meminfo(machine).get("HugePages_Surp", 0)) if name == _PAGES else value


def in_force(text: str) -> str:
    """The word in brackets of a kernel switch: `always [madvise] never` is madvise; another value is itself."""
    chosen = _CHOSEN.search(text)
    return chosen[1] if chosen else text


def _write(machine: Machine, name: str, path: Path, value: str) -> None:
    with refused(f"set {name} to {value!r} ({path})"):
        machine.write_text(path, value)


class Parameter(_Value):
    """A parameter that sysctl knows, such as `kern.ipc.shm_use_phys`."""

    @classmethod
    def planned(cls, machine: Machine, name: str, value: str) -> Self:
        """The change from what there is now. Raises HostError for a parameter that is not there."""
        return cls(name=name, value=value, previous=_read(machine, name))

    def make(self, machine: Machine) -> None:
        """Set the value and look whether it is there."""
        machine.tool(["sysctl", f"{self.name}={self.value}"])
        try:
            self._check(_read(machine, self.name))
        except HostError:
            machine.tool(["sysctl", f"{self.name}={self.previous}"])
            raise

    def is_of(self, run: Path) -> bool:
        """Whatever sysctl has, and no option of it."""
        return _PARAMETER.fullmatch(self.name) is not None

    def undo(self, machine: Machine) -> None:
        """Set the former value, unless it is there. Raises ChangedMeanwhile, and HostError."""
        if self._is_to_be_undone(_read(machine, self.name)):
            machine.tool(["sysctl", f"{self.name}={self.previous}"])


def _read(machine: Machine, name: str) -> str:
    return machine.tool(["sysctl", "-n", name]).strip()


_PAGES = "vm.nr_hugepages"
"""The kernel shows with it pages that go as soon as their users end (surplus pages), and sets it without them."""
_POOLS = Path("/sys/kernel/mm/hugepages")
KB = {"2MB": 2048, "1GB": 1048576}
PAUSES_S = (0.0, 0.25, 0.5, 1.0, 2.0)
"""Before each attempt after the first: what the kernel frees, it frees little by little."""

_CONTIGUOUS = resource("make_contiguous.sh", __package__)
"""One command: the caches are some hundred, and the machine may be far."""


class HugePages(Change):
    """More pages of one size in the kernel's pool: `pages` beyond the `previous` ones.

    Pages that somebody uses when they are given back become surplus pages, which the kernel frees when their user ends
    (hugetlbpage.rst). They belong to no former value: who took them for it would reserve them for good.
    """

    size: str
    pages: int
    previous: int
    """Pages that the pool keeps whether they are used or not: without surplus pages."""
    surplus: int = 0
    """Pages that the pool had beside those, and that became its own when more were asked for."""

    @classmethod
    def planned(cls, machine: Machine, size: str, pages: int) -> Self:
        """The change from what there is now. Raises HostError where there is no such pool."""
        return cls(
            size=size, pages=pages, previous=reserved_pages(machine, size), surplus=_surplus_pages(machine, size)
        )

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

    def is_of(self, run: Path) -> bool:
        """The pools of the sizes that are known."""
        return self.size in KB and min(self.pages, self.previous, self.surplus) >= 0

    def _ask(self, machine: Machine) -> None:
        """Ask for what is missing; the pages of the attempts before are kept."""
        _set_count(machine, _pool(machine, self.size), self._asked)

    @property
    def _asked(self) -> int:
        return self.previous + self.surplus + self.pages

    def _got(self, machine: Machine) -> int:
        return _count(machine, _pool(machine, self.size)) - self.previous - self.surplus

    def _enough(self, machine: Machine) -> bool:
        return self._got(machine) >= self.pages or spare_pages(machine, self.size) >= self.pages

    def undo(self, machine: Machine) -> None:
        """Give them back, those that are in use as soon as their user ends. Raises ChangedMeanwhile, and HostError."""
        now = reserved_pages(machine, self.size)
        if not self.previous <= now <= self._asked:
            raise ChangedMeanwhile(
                f"{self.previous} huge pages of {self.size} were reserved, pgtrial has reserved {self.pages} more, and "
                f"now there are {now}: somebody else has changed their number meanwhile, so it stays as it is"
            )
        if now != self.previous:
            _set_count(machine, _pool(machine, self.size), self.previous)

    def __str__(self) -> str:
        return f"{self.pages} huge pages of {self.size}"


def reserved_pages(machine: Machine, size: str) -> int:
    """Pages of a size that the pool keeps, used or not. Raises HostError where there is no such pool."""
    return _count(machine, _pool(machine, size)) - _surplus_pages(machine, size)


def _surplus_pages(machine: Machine, size: str) -> int:
    """Pages of a size that the pool holds until their users end."""
    return _count(machine, _pool(machine, size).parent / "surplus_hugepages")


def spare_pages(machine: Machine, size: str) -> int:
    """Pages of a size that the pool holds and that nobody uses or is promised."""
    home = _pool(machine, size).parent
    return _count(machine, home / "free_hugepages") - _count(machine, home / "resv_hugepages")


def huge_page_counters(machine: Machine) -> dict[str, int]:
    """The kernel's counters for each size, e.g. `2MB_free`, and in kB what /proc/meminfo tells of huge memory."""
    files = {
        f"{size}_{name}": _POOLS / f"hugepages-{kilobytes}kB" / file
        for size, kilobytes in KB.items()
        for name, file in (("total", "nr_hugepages"), ("free", "free_hugepages"), ("reserved", "resv_hugepages"))
    }
    texts = machine.read_many(list(files.values()))
    counters = {name: int(texts[path]) for name, path in files.items() if path in texts}
    memory = meminfo(machine)
    kept = [name for name in ("AnonHugePages", "ShmemHugePages", "PageTables") if name in memory]
    return {**counters, **{f"{name}_kB": memory[name] for name in kept}}


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


def _count(machine: Machine, pool: Path) -> int:
    return int(machine.read_text(pool))


def _set_count(machine: Machine, pool: Path, count: int) -> None:
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


_CACHES = Path("/proc/sys/vm/drop_caches")


def drop_caches(machine: Machine) -> None:
    """Empty the kernel's cache of files; what is not written yet is written before. Raises HostError."""
    machine.tool(["sync"])
    _write(machine, "the kernel's cache of files", _CACHES, "3")


def may_drop_caches(machine: Machine) -> bool:
    """Whether the kernel's cache of files can be emptied."""
    return machine.root and machine.exists(_CACHES)


_LOCK = _CACHES
"""A file of the kernel's that root alone can open serves as the lock: it need not be made or removed."""
_PATIENCE_S = 600.0
_LOOK_S = 0.1


_held: list[int] = []
"""The locks that this process holds: arms whose servers are up at the same time each ask for one."""


@contextmanager
def alone_changing(machine: Machine, patience_s: float = _PATIENCE_S) -> Iterator[None]:
    """Wait for other labs of this machine, and keep them waiting inside; other machines are not looked after.

    Raises ArmError after `patience_s` seconds: what the other one does is no failure of an arm.
    """
    if machine is not LOCAL or not _LOCK.exists():
        yield
        return
    lock = os.open(_LOCK, os.O_WRONLY | os.O_CLOEXEC)
    try:
        deadline = time.monotonic() + patience_s
        while not (_held or take(lock)):
            if time.monotonic() > deadline:
                raise ArmError(
                    "another pgtrial has been changing this machine's kernel parameters or huge pages for "
                    f"{patience_s / 60:.0f} minutes; wait until its trial has ended"
                )
            time.sleep(_LOOK_S)
        _held.append(lock)
        try:
            yield
        finally:
            _held.remove(lock)
    finally:
        os.close(lock)
