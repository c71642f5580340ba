"""Changes that make a place for data: backing files, loop devices, ZFS pools, filesystems, mounts."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import ClassVar

from pgtrial.machines.machine import LOCAL, Change, HostError, Machine, refused
from pgtrial.machines.mounts import mounted_at, mountinfo

_LOOP_DIRECT = "--direct-io=on"


class BackingFile(Change):
    """A file that a loop device shows as a disk. `size` in bytes; preallocated, or sparse."""

    survives_reboot: ClassVar[bool] = True
    path: Path
    size: int
    preallocate: bool = True

    def make(self, machine: Machine) -> None:
        """Make the file; refused where it does not fit."""
        free = machine.free_bytes(self.path.parent)
        if self.preallocate and self.size > free:
            larger = "set PGTRIAL_STATE to a directory" if machine is LOCAL else "name a folder as data that is"
            raise HostError(
                f"a volume of {self.size / 1e9:.1f} GB does not fit {self.path.parent}, where {free / 1e9:.1f} GB are "
                f"free; lower its size, or {larger} on a larger disk"
            )
        with refused(f"make {self.path}"):
            machine.allocate(self.path, self.size, sparse=not self.preallocate)

    def undo(self, machine: Machine) -> None:
        """Remove the file."""
        with refused(f"remove {self.path}"):
            machine.unlink(self.path)

    def __str__(self) -> str:
        return f"backing file {self.path}"


class LoopDevice(Change):
    """A block device over a file; found again by the file."""

    file: Path
    direct: bool = True
    """Past the page cache of the filesystem below, so that data is not cached twice; where that one can."""

    def make(self, machine: Machine) -> None:
        """Attach a free loop device."""
        attach = ["losetup", "--find", "--show"]
        try:
            machine.tool([*attach, *([_LOOP_DIRECT] if self.direct else []), self.file])
        except HostError:
            if not self.direct or self.device(machine) is not None:
                raise
            machine.tool([*attach, self.file])

    def device(self, machine: Machine) -> Path | None:
        """The device, once made; not one that was detached and goes when somebody else who looks into it lets go."""
        listed = machine.tool(["losetup", "--associated", self.file, "--noheadings", "--output", "AUTOCLEAR,NAME"])
        rows = [line.split() for line in listed.splitlines()]
        return next((Path(name) for goes, name in rows if goes == "0"), None)

    def undo(self, machine: Machine) -> None:
        """Detach it."""
        if machine.exists(self.file) and (device := self.device(machine)) is not None:
            machine.tool(["losetup", "--detach", device])

    def __str__(self) -> str:
        return f"loop device over {self.file}"


class MountPoint(Change):
    """A directory to mount on."""

    survives_reboot: ClassVar[bool] = True
    path: Path

    def make(self, machine: Machine) -> None:
        """Make the directory."""
        with refused(f"make {self.path}"):
            machine.mkdir(self.path, 0o711)

    def undo(self, machine: Machine) -> None:
        """Remove it; it has to be empty, so that nothing is lost that was put there without the mount."""
        try:
            machine.rmdir(self.path)
        except FileNotFoundError:
            pass
        except OSError as error:
            if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
                raise HostError(
                    f"{self.path} is not empty though nothing is mounted there; look and remove it"
                ) from None
            raise HostError(f"cannot remove {self.path}: {error.strerror}") from None

    def __str__(self) -> str:
        return f"mount point {self.path}"


class Mount(Change):
    """A filesystem at a directory of ours."""

    filesystem: str
    source: str
    target: Path
    options: tuple[str, ...] = ()

    def make(self, machine: Machine) -> None:
        """Mount it."""
        options = ["-o", ",".join(self.options)] if self.options else []
        try:
            machine.tool(["mount", "-t", self.filesystem, *options, self.source, self.target])
        except HostError as error:
            given = f" with the options {', '.join(self.options)}" if self.options else ""
            raise HostError(f"{self.filesystem} cannot be mounted{given}: {error}") from None

    def undo(self, machine: Machine) -> None:
        """Unmount it."""
        if mounted_at(machine.resolve(self.target), mountinfo(machine)) is not None:
            machine.tool(["umount", self.target])

    def __str__(self) -> str:
        return f"mount of {self.filesystem} at {self.target}"


class PrivateDirectory(Change):
    """A directory of ours in one that was there; removed with all that is in it."""

    survives_reboot: ClassVar[bool] = True
    path: Path

    def make(self, machine: Machine) -> None:
        """Make the directory; servers' accounts may enter it."""
        with refused(f"make {self.path}"):
            machine.mkdir(self.path, 0o755)

    def undo(self, machine: Machine) -> None:
        """Remove it."""
        machine.remove_tree(self.path)
        if machine.exists(self.path):
            raise HostError(f"cannot remove {self.path}")

    def __str__(self) -> str:
        return f"directory {self.path}"


class Signature(Change):
    """A filesystem on a device that was empty, or given over. `uuid` is what the command gives the filesystem."""

    survives_reboot: ClassVar[bool] = True
    device: Path
    uuid: str
    make_command: tuple[str, ...]

    def make(self, machine: Machine) -> None:
        """Make the filesystem."""
        machine.tool(self.make_command)

    def undo(self, machine: Machine) -> None:
        """Leave the device without the filesystem; with another one it is another disk, which has the name now."""
        if not machine.exists(self.device):
            return
        if self.uuid in machine.tool(["wipefs", "--noheadings", "--output", "UUID", self.device]).split():
            machine.tool(["wipefs", "--all", "--quiet", self.device])

    def __str__(self) -> str:
        return f"filesystem on {self.device}"


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
