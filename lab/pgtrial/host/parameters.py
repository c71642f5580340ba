"""Changes of kernel parameters where the kernel shows no files: by sysctl(8), which BSDs and macOS have."""

from __future__ import annotations

from typing import Self

from pgtrial.host.change import Change
from pgtrial.host.machine import HostError, Machine


class Parameter(Change):
    """A parameter that sysctl knows, such as `kern.ipc.shm_use_phys`."""

    name: str
    value: str
    previous: str

    @classmethod
    def planned(cls, machine: Machine, name: str, value: str) -> Self:
        """The change from what there is now. Raises HostError for a parameter that is not there."""
        return cls(name=name, value=value, previous=_read(machine, name))

    def make(self, machine: Machine) -> None:
        """Set the value and look whether it is there."""
        machine.tool(["sysctl", f"{self.name}={self.value}"])
        if (found := _read(machine, self.name)).split() != self.value.split():
            raise HostError(f"{self.name} was set to {self.value} and is {found}: the kernel gives no more, or refuses")

    def undo(self, machine: Machine) -> None:
        """Set the former value, unless it is there."""
        if _read(machine, self.name) != self.previous:
            machine.tool(["sysctl", f"{self.name}={self.previous}"])

    def __str__(self) -> str:
        return f"value of {self.name}, {self.previous} before"


def _read(machine: Machine, name: str) -> str:
    return machine.tool(["sysctl", "-n", name]).strip()
