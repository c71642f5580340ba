"""ZFS pools: made by zpool, destroyed by zpool."""

from __future__ import annotations

from pathlib import Path

from pgtrial.host.change import Change
from pgtrial.host.machine import HostError, Machine


class Pool(Change):
    """A pool with its root filesystem at a directory of ours. Options and properties are written `name=value`."""

    name: str
    device: Path
    target: Path
    pool_options: tuple[str, ...] = ()
    properties: tuple[str, ...] = ()

    def make(self, machine: Machine) -> None:
        """Make the pool."""
        machine.tool(self.command())

    def command(self) -> list[str]:
        """How zpool is called."""
        options = [word for option in self.pool_options for word in ("-o", option)]
        properties = [word for option in self.properties for word in ("-O", option)]
        return ["zpool", "create", "-f", "-m", str(self.target), *options, *properties, self.name, str(self.device)]

    def verify(self, machine: Machine) -> None:
        """Each property is as asked for, or HostError says which is not."""
        for wanted in self.properties:
            name, _, value = wanted.partition("=")
            found = machine.tool(["zfs", "get", "-H", "-o", "value", name, self.name]).strip()
            if found.lower() != value.lower():
                raise HostError(f"the ZFS property {name} is {found}, and the study asks for {value}")

    def undo(self, machine: Machine) -> None:
        """Destroy the pool, if it is there."""
        try:
            present = machine.tool(["zpool", "list", "-H", "-o", "name"]).split()
        except HostError:
            return  # without a ZFS that answers there is no pool
        if self.name in present:
            machine.tool(["zpool", "destroy", "-f", self.name])

    def __str__(self) -> str:
        return f"ZFS pool {self.name} on {self.device}"
