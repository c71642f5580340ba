"""Changes of what the kernel has as files: sysctl, transparent huge pages, schedulers, governors, module parameters."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Self

from pydantic import BaseModel

from pgtrial.machines.machine import Change, HostError, Machine, refused

_CHOSEN = re.compile(r"\[([^]]+)]")

_COUNTERPARTS = {
    "vm.dirty_bytes": "vm.dirty_ratio",
    "vm.dirty_background_bytes": "vm.dirty_background_ratio",
    "vm.overcommit_kbytes": "vm.overcommit_ratio",
}
"""Of each pair one is in force and the other is 0, which cannot always be written (Linux: sysctl/vm.rst)."""
COUNTERPARTS = {**_COUNTERPARTS, **{other: name for name, other in _COUNTERPARTS.items()}}


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

    def _check(self, found: str) -> None:
        if found.split() != self.value.split():
            raise HostError(f"{self.name} was set to {self.value} and is {found}: the kernel gives no more, or refuses")

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
        self._check(read_value(machine, self.name, self.path))

    def undo(self, machine: Machine) -> None:
        """Write the former value, unless it is there."""
        if machine.exists(self.path) and read_value(machine, self.name, self.path) != self.previous:
            self._put_back(machine)

    def _put_back(self, machine: Machine) -> None:
        back = self.counterpart or self
        _write(machine, back.name, back.path, back.previous)


def _in_place(machine: Machine, name: str) -> Counterpart | None:
    path = sysctl_path(name)
    previous = read_value(machine, name, path)
    return Counterpart(name=name, path=path, previous=previous) if previous != "0" else None


def sysctl_path(name: str) -> Path:
    """The file of a sysctl: dots are slashes, as in sysctl(8)."""
    return Path("/proc/sys") / name.replace(".", "/")


def read_value(machine: Machine, name: str, path: Path) -> str:
    """The value in force; of a list of choices the one in brackets. Raises HostError."""
    try:
        text = machine.read_text(path).strip()
    except FileNotFoundError:
        raise HostError(f"this kernel has no {name} ({path})") from None
    except OSError as error:
        raise HostError(f"cannot read {name} ({path}): {error.strerror}") from None
    return in_force(text)


def in_force(text: str) -> str:
    """Of a kernel switch the word in brackets: `always [madvise] never` is madvise; another value is itself."""
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
        self._check(_read(machine, self.name))

    def undo(self, machine: Machine) -> None:
        """Set the former value, unless it is there."""
        if _read(machine, self.name) != self.previous:
            machine.tool(["sysctl", f"{self.name}={self.previous}"])


def _read(machine: Machine, name: str) -> str:
    return machine.tool(["sysctl", "-n", name]).strip()
