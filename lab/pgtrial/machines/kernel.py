"""Reads and changes kernel parameters: those of sysctl, I/O schedulers, CPU governors, and pools of huge pages. On one
machine, only one pgtrial at a time changes them.

How the kernel reserves huge pages is described in admin-guide/mm/hugetlbpage.rst of Linux.
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

from pgtrial.files.locks import take
from pgtrial.machines.machine import LOCAL, Change, ChangedMeanwhile, HostError, Machine, lies_in, refused
from pgtrial.model.errors import ArmError
from pgtrial.model.quoting import quoted
from pgtrial.model.resources import resource
from pgtrial.model.study.keys import KernelFile, keys_of
from pgtrial.model.study.machine_keys import COUNTERPARTS, MachineKeys

SYSCTL = Path("/proc/sys")
_DEVICES = Path("/sys/devices")
_CHOSEN = re.compile(r"\[([^]]+)]")

_SWITCHES = [key.effect for key in keys_of(MachineKeys).values() if isinstance(key.effect, KernelFile)]
"""The kernel files outside of /proc/sys whose values an arm may set."""
_PARAMETER = re.compile(r"[A-Za-z0-9_%][A-Za-z0-9_.%-]*")
"""The form of a parameter's name. A name of this form cannot be taken for an option of sysctl(8)."""


def _is_switch(path: Path) -> bool:
    if ".." in path.parts:
        return False
    return lies_in(path, SYSCTL) or any(
        path.match(switch.path) and (lies_in(path, _DEVICES) or not switch.of_disk) for switch in _SWITCHES
    )


class Counterpart(BaseModel):
    """The other parameter of a pair such as vm.dirty_bytes and vm.dirty_ratio, where the kernel sets one to 0 when the
    other is set. If the changed parameter was 0 before, the undo has to set the other parameter to its former value,
    which is recorded here."""

    name: str
    path: Path
    previous: str


class _Value(Change):
    """A change of one kernel value: its name, the value to set and the value before."""

    name: str
    """The name in messages, such as `vm.swappiness`."""
    value: str
    previous: str

    def _check(self, value: str) -> None:
        if value.split() != self.value.split():
            raise HostError(
                f"pgtrial has set {self.name} to {self.value}, but the kernel reports {value}: the kernel limits or "
                "refuses the value"
            )

    def _is_to_be_undone(self, now: str) -> bool:
        """True if the value in force is the one that pgtrial has set; false if it is the former value already. Raises
        ChangedMeanwhile for any other value."""
        if now.split() == self.previous.split():
            return False
        if now.split() != self.value.split():
            raise ChangedMeanwhile(
                f"{self.name} was {self.previous}, pgtrial has set it to {self.value}, and now it is {now}: somebody "
                "else has changed it in the meantime, so it stays as it is"
            )
        return True

    def __str__(self) -> str:
        return f"value of {self.name}, {self.previous} before"


class KernelValue(_Value):
    """A change of a value in a file below /proc/sys or /sys."""

    path: Path
    counterpart: Counterpart | None = None

    @classmethod
    def planned(cls, machine: Machine, name: str, path: Path, value: str) -> Self:
        """Returns the change that sets this value, with the value in force as the former one. Raises HostError if the
        file does not exist or cannot be read."""
        previous = read_value(machine, name, path)
        counterpart = None
        if previous == "0" and (other := COUNTERPARTS.get(name)) is not None:
            counterpart = _in_place(machine, other)
        return cls(name=name, path=path, value=value, previous=previous, counterpart=counterpart)

    def make(self, machine: Machine) -> None:
        """Writes the value and checks that it is in force. Writes the former value first, to find out before the change
        whether it can be restored: the kernel does not accept every value that it reports."""
        try:
            self._put_back(machine)
        except HostError as error:
            raise HostError(
                f"{self.name} could not be restored after a change, so pgtrial does not change it: {error}"
            ) from None
        _write(machine, self.name, self.path, self.value)
        try:
            self._check(read_value(machine, self.name, self.path))
        except HostError:
            self._put_back(machine)
            raise

    def undo(self, machine: Machine) -> None:
        """Writes the former value, unless it is in force already. Raises ChangedMeanwhile, and HostError."""
        if machine.exists(self.path) and self._is_to_be_undone(read_value(machine, self.name, self.path)):
            self._put_back(machine)

    def is_of(self, run: Path) -> bool:
        """True if the file belongs to sysctl, or is a file below /sys whose value an arm may set. If the change has a
        counterpart, the counterpart also has to be the one that pgtrial knows for this parameter."""
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
    """Returns the file of a sysctl parameter: the dots of its name become slashes, as in sysctl(8)."""
    return SYSCTL / name.replace(".", "/")


def read_value(machine: Machine, name: str, path: Path) -> str:
    """Returns the value in force. If the file lists choices, that is the choice in brackets. Raises HostError."""
    with refused(f"read {name} ({path})"):
        try:
            value = in_force(machine.read_text(path).strip())
        except FileNotFoundError:
            raise HostError(f"this kernel has no {name}: {path} does not exist") from None
    return str(int(value) - meminfo(machine).get("HugePages_Surp", 0)) if name == _PAGES else value


def in_force(text: str) -> str:
    """Returns the word in brackets in the text of a kernel file that lists choices: `madvise` for `always [madvise]
    never`. A text without brackets is returned unchanged."""
    chosen = _CHOSEN.search(text)
    return chosen[1] if chosen else text


def _write(machine: Machine, name: str, path: Path, value: str) -> None:
    with refused(f"set {name} to {quoted(value)} ({path})"):
        machine.write_text(path, value)


class Parameter(_Value):
    """A change of a parameter by the command sysctl, such as `kern.ipc.shm_use_phys`."""

    @classmethod
    def planned(cls, machine: Machine, name: str, value: str) -> Self:
        """Returns the change that sets this value, with the value in force as the former one. Raises HostError if there
        is no such parameter."""
        return cls(name=name, value=value, previous=_read(machine, name))

    def make(self, machine: Machine) -> None:
        """Sets the value and checks that it is in force."""
        machine.tool(["sysctl", f"{self.name}={self.value}"])
        try:
            self._check(_read(machine, self.name))
        except HostError:
            machine.tool(["sysctl", f"{self.name}={self.previous}"])
            raise

    def is_of(self, run: Path) -> bool:
        """True for every name that sysctl cannot take for an option."""
        return _PARAMETER.fullmatch(self.name) is not None

    def undo(self, machine: Machine) -> None:
        """Sets the former value, unless it is in force already. Raises ChangedMeanwhile, and HostError."""
        if self._is_to_be_undone(_read(machine, self.name)):
            machine.tool(["sysctl", f"{self.name}={self.previous}"])


def _read(machine: Machine, name: str) -> str:
    return machine.tool(["sysctl", "-n", name]).strip()


_PAGES = "vm.nr_hugepages"
"""The name of a parameter that the kernel can report higher than it was set: the number that is read includes surplus
pages, which the kernel frees as soon as the processes that use them end."""
POOLS = Path("/sys/kernel/mm/hugepages")
KB = {"2MB": 2048, "1GB": 1048576}
PAUSES_S = (0.0, 0.25, 0.5, 1.0, 2.0)
"""The pauses in seconds before the second and each further attempt to reserve huge pages. Pauses help because the
kernel frees memory little by little."""

_CONTIGUOUS = resource("make_contiguous.sh", __package__)
"""The script of `make_contiguous`. It does everything in one command, since there are some hundred slab caches and each
command on a distant machine takes a network round trip."""


class HugePages(Change):
    """A change that adds `pages` huge pages of one size to the `previous` pages in the kernel's pool.

    If a page is still in use when pgtrial gives it back, it becomes a surplus page, which the kernel frees when the
    process that uses it ends (hugetlbpage.rst). Surplus pages are not part of the former value, since restoring their
    number would reserve them permanently.
    """

    size: str
    pages: int
    previous: int
    """The number of pages that the pool keeps whether they are used or not, without surplus pages."""
    surplus: int = 0
    """The number of surplus pages that the pool had in addition before the change. The kernel makes them permanent
    pages of the pool when it is asked for more pages."""

    @classmethod
    def planned(cls, machine: Machine, size: str, pages: int) -> Self:
        """Returns the change that adds `pages` pages to the present state of the pool. Raises HostError if the kernel
        has no pool of this page size."""
        return cls(
            size=size, pages=pages, previous=reserved_pages(machine, size), surplus=_surplus_pages(machine, size)
        )

    def make(self, machine: Machine) -> None:
        """Reserves the pages. If the kernel does not give all of them at once, further attempts follow for some
        seconds.

        If the kernel gives too few pages, unused pages that were in the pool before, such as pages reserved at boot,
        count as well. Raises HostError if there are too few even so.
        """
        _pool(machine, self.size)
        needed, free = self.pages * KB[self.size] * 1024, available_bytes(machine)
        if needed > free:
            if self._enough(machine):
                return
            raise HostError(
                f"{self.pages} huge pages of {self.size} take {needed / 1e9:.1f} GB, but only {free / 1e9:.1f} GB of "
                "memory are free; lower shared_buffers"
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
        """True for pools of the known page sizes."""
        return self.size in KB and min(self.pages, self.previous, self.surplus) >= 0

    def _ask(self, machine: Machine) -> None:
        """Asks the kernel for the missing pages; the pages of earlier attempts are kept."""
        _set_count(machine, _pool(machine, self.size), self._asked)

    @property
    def _asked(self) -> int:
        return self.previous + self.surplus + self.pages

    def _got(self, machine: Machine) -> int:
        return _count(machine, _pool(machine, self.size)) - self.previous - self.surplus

    def _enough(self, machine: Machine) -> bool:
        return self._got(machine) >= self.pages or spare_pages(machine, self.size) >= self.pages

    def undo(self, machine: Machine) -> None:
        """Gives the pages back to the kernel. Pages that are in use are freed when the process that uses them ends.
        Raises ChangedMeanwhile, and HostError."""
        now = reserved_pages(machine, self.size)
        if not self.previous <= now <= self._asked:
            raise ChangedMeanwhile(
                f"{self.previous} huge pages of {self.size} were reserved, pgtrial has reserved {self.pages} more, and "
                f"now there are {now}: somebody else has changed their number in the meantime, so it stays as it is"
            )
        if now != self.previous:
            _set_count(machine, _pool(machine, self.size), self.previous)

    def __str__(self) -> str:
        return f"{self.pages} huge pages of {self.size}"


def reserved_pages(machine: Machine, size: str) -> int:
    """Returns the number of huge pages of one size that the pool keeps whether they are used or not. Raises HostError
    if the kernel has no pool of this size."""
    return _count(machine, _pool(machine, size)) - _surplus_pages(machine, size)


def _surplus_pages(machine: Machine, size: str) -> int:
    """Returns the number of pages of a size that the pool holds only until the processes that use them end."""
    return _count(machine, _pool(machine, size).parent / "surplus_hugepages")


def spare_pages(machine: Machine, size: str) -> int:
    """Returns the number of pages of a size in the pool that are neither used nor reserved by a process."""
    home = _pool(machine, size).parent
    return _count(machine, home / "free_hugepages") - _count(machine, home / "resv_hugepages")


def huge_page_counters(machine: Machine) -> dict[str, int]:
    """Returns the kernel's counters of huge pages: for each page size those of its pool, such as `2MB_free`, and those
    of /proc/meminfo in kB, such as `AnonHugePages_kB`."""
    files = {
        f"{size}_{name}": POOLS / f"hugepages-{kilobytes}kB" / file
        for size, kilobytes in KB.items()
        for name, file in (("total", "nr_hugepages"), ("free", "free_hugepages"), ("reserved", "resv_hugepages"))
    }
    texts = machine.read_many(list(files.values()))
    counters = {name: int(texts[path]) for name, path in files.items() if path in texts}
    memory = meminfo(machine)
    kept = [name for name in ("AnonHugePages", "ShmemHugePages", "PageTables") if name in memory]
    return {**counters, **{f"{name}_kB": memory[name] for name in kept}}


def make_contiguous(machine: Machine) -> None:
    """Makes the kernel drop its caches and compact memory, if the kernel can do so, so that contiguous memory becomes
    free.

    A huge page of 1 GB cannot be made if a single small page in its range cannot be moved. Mostly that is a page with
    small objects of the kernel (slab), so the slab caches are dropped as well.
    """
    machine.run(["sh", "-c", _CONTIGUOUS])


def _pool(machine: Machine, size: str) -> Path:
    pool = POOLS / f"hugepages-{KB[size]}kB" / "nr_hugepages"
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
    """Returns the numbers of /proc/meminfo by name, most of them in kB; empty if there is no such file."""
    try:
        lines = machine.read_text(_MEMINFO).splitlines()
    except OSError:
        return {}
    return {name: int(value.split()[0]) for name, _, value in (line.partition(":") for line in lines) if value.split()}


def available_bytes(machine: Machine) -> int:
    """Returns the memory that programs can still allocate without swapping, in bytes. Raises HostError if the kernel
    does not report it."""
    kilobytes = meminfo(machine).get("MemAvailable")
    if kilobytes is None:
        raise HostError(
            f"the kernel of {machine.label} does not report how much memory is available: {_MEMINFO} has no "
            "MemAvailable"
        )
    return kilobytes * 1024


_CACHES = Path("/proc/sys/vm/drop_caches")


def drop_caches(machine: Machine) -> None:
    """Writes all changed pages to disk, and then empties the kernel's page cache. Raises HostError."""
    machine.tool(["sync"])
    _write(machine, "the kernel's cache of files", _CACHES, "3")


def may_drop_caches(machine: Machine) -> bool:
    """True if pgtrial can empty the kernel's page cache on this machine."""
    return machine.root and machine.exists(_CACHES)


_LOCK = _CACHES
"""The file that a lab locks while it changes the machine's kernel parameters. This file is suitable because only root
can open it and it always exists."""
_PATIENCE_S = 600.0
_LOOK_S = 0.1


_held: list[int] = []
"""The file descriptors of the locks that this process holds. Each arm takes a lock of its own, and the servers of
several arms can be up at the same time."""


@contextmanager
def alone_changing(machine: Machine, patience_s: float = _PATIENCE_S) -> Iterator[None]:
    """Waits until no other pgtrial changes the kernel parameters of this machine, and makes others wait until the
    context ends. Does nothing for a machine other than the local one.

    Raises ArmError if the wait takes longer than `patience_s` seconds. This is no TrialError or HostError, since the
    delay by another pgtrial must not count as a failure of the arm.
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
