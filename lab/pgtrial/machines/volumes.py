"""Reads the mounts of a machine, and makes and undoes the changes of the machine by which a volume comes to exist:
backing files, loop devices, ZFS pools, mount points and mounts."""

from __future__ import annotations

import errno
import os
import re
import secrets
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from pgtrial.machines.machine import LOCAL, Change, HostError, Machine, lies_in, refused
from pgtrial.machines.trust import check_way


class _Lasting(Change):
    """A change that makes a file or directory at a path where nothing was. The file survives a reboot."""

    survives_reboot: ClassVar[bool] = True
    path: Path


class BackingFile(_Lasting):
    """A file of `size` bytes that a loop device presents as a disk. Its blocks are allocated at once (`preallocate`),
    or it is sparse."""

    size: int
    preallocate: bool = True

    def make(self, machine: Machine) -> None:
        """Makes the file. Raises HostError if the file system has too little free space."""
        free = machine.free_bytes(self.path.parent)
        if self.preallocate and self.size > free:
            larger = "set PGTRIAL_STATE to a directory" if machine is LOCAL else "name a folder as data that is"
            raise HostError(
                f"a volume of {self.size / 1e9:.1f} GB does not fit into {self.path.parent}, where {free / 1e9:.1f} GB "
                f"are free; lower its size, or {larger} on a larger disk"
            )
        with refused(f"make {self.path}"):
            machine.allocate(self.path, self.size, sparse=not self.preallocate)

    def undo(self, machine: Machine) -> None:
        """Removes the file, if it exists."""
        with refused(f"remove {self.path}"):
            machine.unlink(self.path)

    def __str__(self) -> str:
        return f"backing file {self.path}"


class LoopDevice(Change):
    """A loop device: a block device whose content is a file. pgtrial finds the device again by the path of this
    file."""

    file: Path
    direct: bool = True
    """True if the device bypasses the page cache of the file system that has the file, so that data is not cached
    twice. If that file system does not support direct I/O, the device uses the cache."""

    def make(self, machine: Machine) -> None:
        """Attaches the file to a free loop device."""
        attach = ["losetup", "--find", "--show"]
        try:
            machine.tool([*attach, *(["--direct-io=on"] if self.direct else []), self.file])
        except HostError:
            if not self.direct or self.device(machine) is not None:
                raise
            machine.tool([*attach, self.file])

    def device(self, machine: Machine) -> Path | None:
        """Returns the loop device of the file; None if the file has none. A detached device that exists only until
        another program closes it does not count."""
        listed = machine.tool(["losetup", "--associated", self.file, "--noheadings", "--output", "AUTOCLEAR,NAME"])
        rows = [line.split() for line in listed.splitlines()]
        return next((Path(name) for goes, name in rows if goes == "0"), None)

    def undo(self, machine: Machine) -> None:
        """Detaches the loop device, if the file has one."""
        if machine.exists(self.file) and (device := self.device(machine)) is not None:
            machine.tool(["losetup", "--detach", device])

    def __str__(self) -> str:
        return f"loop device over {self.file}"


class MountPoint(_Lasting):
    """A directory that pgtrial makes in order to mount a file system on it."""

    def make(self, machine: Machine) -> None:
        """Makes the directory on which a file system will be mounted."""
        with refused(f"make {self.path}"):
            machine.mkdir(self.path, 0o711)

    def undo(self, machine: Machine) -> None:
        """Removes the directory. Raises HostError if it is not empty, since then somebody has put files there while
        nothing was mounted."""
        try:
            machine.rmdir(self.path)
        except FileNotFoundError:
            pass
        except OSError as error:
            if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
                raise HostError(
                    f"{self.path} is not empty though nothing is mounted there; see what it contains, and remove it "
                    "yourself"
                ) from None
            raise HostError(f"cannot remove {self.path}: {error.strerror}") from None

    def __str__(self) -> str:
        return f"mount point {self.path}"


class Mount(Change):
    """A file system mounted at a directory that pgtrial made."""

    filesystem: str
    source: str
    target: Path
    options: tuple[str, ...] = ()

    def make(self, machine: Machine) -> None:
        """Mounts the file system at `target`."""
        options = ["-o", ",".join(self.options)] if self.options else []
        try:
            machine.tool(["mount", "-t", self.filesystem, *options, self.source, self.target])
        except HostError as error:
            given = f" with the options {', '.join(self.options)}" if self.options else ""
            raise HostError(f"{self.filesystem} cannot be mounted{given}: {error}") from None

    def undo(self, machine: Machine) -> None:
        """Unmounts the file system, if it is mounted."""
        if mounted_at(machine.resolve(self.target), mountinfo(machine)) is not None:
            machine.tool(["umount", self.target])

    def __str__(self) -> str:
        return f"mount of {self.filesystem} at {self.target}"


_PRIVATE = re.compile(r"pgtrial-\d+-[0-9a-f]{6}")
_POOL = re.compile(r"pgtrial-[0-9a-f]{8}")
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def private_name() -> str:
    """Returns a name for a new directory that pgtrial makes in an existing directory: it has the process ID and random
    characters."""
    return f"pgtrial-{os.getpid()}-{secrets.token_hex(3)}"


def is_private(path: Path) -> bool:
    """True if a path is absolute and its last name has the form of `private_name`."""
    return path.is_absolute() and ".." not in path.parts and _PRIVATE.fullmatch(path.name) is not None


def pool_name() -> str:
    """Returns a random name for a new ZFS pool."""
    return f"pgtrial-{secrets.token_hex(4)}"


def _check_way_of_root(machine: Machine, path: Path) -> None:
    """Raises HostError if pgtrial works as root on the machine and another account could replace the directory by
    another one."""
    if machine.root:
        check_way(machine, path)


class PrivateDirectory(_Lasting):
    """A directory that pgtrial makes in an existing directory, and later removes with all files in it.

    As root, pgtrial makes and removes the directory only if no other account could replace one of its parent
    directories.
    """

    def make(self, machine: Machine) -> None:
        """Makes the directory, with rights by which the servers' accounts can enter it."""
        _check_way_of_root(machine, self.path.parent)
        with refused(f"make {self.path}"):
            machine.mkdir(self.path, 0o755)

    def is_of(self, run: Path) -> bool:
        """True if the name has the form that pgtrial gives to private directories. The directory that contains it can
        be any, since the study chooses it."""
        return is_private(self.path)

    def undo(self, machine: Machine) -> None:
        """Removes the directory with all files in it, if it exists."""
        if not machine.exists(self.path):
            return
        _check_way_of_root(machine, self.path.parent)
        machine.remove_tree(self.path)
        if machine.exists(self.path):
            raise HostError(f"cannot remove {self.path}")

    def __str__(self) -> str:
        return f"directory {self.path}"


class Signature(Change):
    """A file system that pgtrial makes on a device of the user. The device was empty, or the user has allowed pgtrial
    to overwrite it. `make_command` makes the file system with the UUID `uuid`."""

    survives_reboot: ClassVar[bool] = True
    device: Path
    uuid: str
    make_command: tuple[str, ...]

    def make(self, machine: Machine) -> None:
        """Makes the file system on the device."""
        machine.tool(self.make_command)

    def is_of(self, run: Path) -> bool:
        """True for any device, since the study chooses it. The undo removes only a file system that has the recorded
        UUID."""
        return self.device.is_absolute() and ".." not in self.device.parts and bool(_UUID.fullmatch(self.uuid))

    def undo(self, machine: Machine) -> None:
        """Removes the file system from the device. Does nothing if the file system there has another UUID, since
        another disk may have the device's name now."""
        if not machine.exists(self.device):
            return
        if self.uuid in machine.tool(["wipefs", "--noheadings", "--output", "UUID", self.device]).split():
            machine.tool(["wipefs", "--all", "--quiet", self.device])

    def __str__(self) -> str:
        return f"filesystem on {self.device}"


class Pool(Change):
    """A ZFS pool that pgtrial makes on a device and mounts at the directory `target`. Options and properties are
    written `name=value`."""

    name: str
    device: Path
    target: Path
    pool_options: tuple[str, ...] = ()
    properties: tuple[str, ...] = ()

    def make(self, machine: Machine) -> None:
        """Makes the pool on the device and mounts it."""
        machine.tool(self.command())

    def command(self) -> list[str]:
        """Returns the zpool command that makes the pool."""
        options = [word for option in self.pool_options for word in ("-o", option)]
        properties = [word for option in self.properties for word in ("-O", option)]
        return ["zpool", "create", "-f", "-m", str(self.target), *options, *properties, self.name, str(self.device)]

    def verify(self, machine: Machine) -> None:
        """Checks that each property has the value that the study asks for. Raises HostError if a property has another
        value."""
        for wanted in self.properties:
            name, _, value = wanted.partition("=")
            present = machine.tool(["zfs", "get", "-H", "-o", "value", name, self.name]).strip()
            if present.lower() != value.lower():
                raise HostError(f"the ZFS property {name} is {present}, but the study asks for {value}")

    def is_of(self, run: Path) -> bool:
        """True if the name has the form that pgtrial gives to pools, and the pool is mounted below the run's directory.
        The device can be any, since the study chooses it."""
        return bool(_POOL.fullmatch(self.name)) and lies_in(self.target, run)

    def undo(self, machine: Machine) -> None:
        """Destroys the pool, if it exists."""
        try:
            present = machine.tool(["zpool", "list", "-H", "-o", "name"]).split()
        except HostError:
            return  # if ZFS does not answer, there is no pool
        if self.name in present:
            machine.tool(["zpool", "destroy", "-f", self.name])

    def __str__(self) -> str:
        return f"ZFS pool {self.name} on {self.device}"


_MOUNTINFO = Path("/proc/self/mountinfo")
_OF_MOUNT = re.compile(r"(.+) on (.+) \((\w+)(?:, (.*))?\)")
_OPTIONS = {"read-only": "ro", "asynchronous": "async", "synchronous": "sync"}
"""Translates the names that mount(8) prints for options on FreeBSD, DragonFly and macOS into the names on Linux."""


@dataclass(frozen=True)
class Mounted:
    """One mounted file system. `options` has the options of the mount, then those of the file system. `device` is the
    device number as major:minor on Linux, and empty elsewhere."""

    target: Path
    filesystem: str
    source: str
    options: tuple[str, ...]
    device: str


def mountinfo(machine: Machine) -> str:
    """Returns the text of the system's list of mounts: /proc/self/mountinfo, or the output of mount(8). It is empty if
    the machine has neither."""
    with suppress(OSError):
        return machine.read_text(_MOUNTINFO)
    with suppress(HostError):
        return machine.tool(["mount"])
    return ""


def mounts(text: str) -> list[Mounted]:
    """Returns all mounts in the text that `mountinfo` returns, in the same order."""
    return [mount for line in text.splitlines() if (mount := _parse(line) or _parse_words(line)) is not None]


def mounted_at(target: Path, text: str) -> Mounted | None:
    """Returns the file system that is mounted at exactly this directory, a path without symbolic links; None if there
    is none. If there are several, the last one hides the others and is returned."""
    return next((mount for mount in reversed(mounts(text)) if mount.target == target), None)


def mount_of(path: Path, text: str) -> Mounted | None:
    """Returns the mount to which a path belongs; the path must be free of symbolic links. It is the mount with the
    longest directory that contains the path, and the last of several mounts at that directory."""
    holding = [mount for mount in mounts(text) if path.is_relative_to(mount.target)]
    return max(reversed(holding), key=lambda mount: len(mount.target.parts), default=None)


def _parse(line: str) -> Mounted | None:
    before, separator, after = line.partition(" - ")
    fields, tail = before.split(" "), after.split(" ")
    if not separator or len(fields) < 6 or len(tail) < 3:
        return None
    options = tuple(dict.fromkeys([*fields[5].split(","), *tail[2].split(",")]))
    return Mounted(Path(_unescaped(fields[4])), tail[0], _unescaped(tail[1]), options, fields[2])


def _parse_words(line: str) -> Mounted | None:
    """Returns the mount that a line of mount(8) on FreeBSD, DragonFly or macOS describes, such as `/dev/ada0p2 on /
    (ufs, local, noatime)`; None for another line."""
    match = _OF_MOUNT.fullmatch(line)
    if match is None:
        return None
    options = [_OPTIONS.get(word, word) for word in (match[4] or "").split(", ") if word]
    return Mounted(Path(match[2]), match[3], match[1], (*options, *(() if "ro" in options else ("rw",))), "")


def _unescaped(text: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), text)
