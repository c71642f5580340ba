"""Reads what is mounted where, and has the changes that make a volume: files, loop devices, pools, mount points."""

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
    """Something that pgtrial makes at a free path, and that survives a reboot."""

    survives_reboot: ClassVar[bool] = True
    path: Path


class BackingFile(_Lasting):
    """A file that a loop device shows as a disk, of `size` bytes. It is preallocated or sparse."""

    size: int
    preallocate: bool = True

    def make(self, machine: Machine) -> None:
        """Makes the file. Raises HostError if it does not fit."""
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
        """Removes the file, if it is there."""
        with refused(f"remove {self.path}"):
            machine.unlink(self.path)

    def __str__(self) -> str:
        return f"backing file {self.path}"


class LoopDevice(Change):
    """A block device over a file, by which the device is found again."""

    file: Path
    direct: bool = True
    """True if the device bypasses the page cache of the file system below, so that data is not cached twice. Where that
    file system cannot do so, the device uses the cache."""

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
        """Returns the device over the file; None if there is none. A device that was detached and stays only until
        another program lets go of it does not count."""
        listed = machine.tool(["losetup", "--associated", self.file, "--noheadings", "--output", "AUTOCLEAR,NAME"])
        rows = [line.split() for line in listed.splitlines()]
        return next((Path(name) for goes, name in rows if goes == "0"), None)

    def undo(self, machine: Machine) -> None:
        """Detaches the loop device, if it is there."""
        if machine.exists(self.file) and (device := self.device(machine)) is not None:
            machine.tool(["losetup", "--detach", device])

    def __str__(self) -> str:
        return f"loop device over {self.file}"


class MountPoint(_Lasting):
    """A directory on which a file system is mounted."""

    def make(self, machine: Machine) -> None:
        """Makes the directory to mount on."""
        with refused(f"make {self.path}"):
            machine.mkdir(self.path, 0o711)

    def undo(self, machine: Machine) -> None:
        """Removes the directory. It has to be empty, so that nothing is lost that was put there without the mount."""
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
    """Returns the name for a new directory of pgtrial in a directory that exists."""
    return f"pgtrial-{os.getpid()}-{secrets.token_hex(3)}"


def is_private(path: Path) -> bool:
    """True if a path is absolute and has a name as `private_name` gives it."""
    return path.is_absolute() and ".." not in path.parts and _PRIVATE.fullmatch(path.name) is not None


def pool_name() -> str:
    """Returns the name of a new pool."""
    return f"pgtrial-{secrets.token_hex(4)}"


def _check_way_of_root(machine: Machine, path: Path) -> None:
    """Raises HostError if root would work in a directory that another account could exchange."""
    if machine.root:
        check_way(machine, path)


class PrivateDirectory(_Lasting):
    """A directory that pgtrial makes in one that exists; it is removed with all that is in it.

    Root makes and removes it only where no other account could exchange a directory on the way to it.
    """

    def make(self, machine: Machine) -> None:
        """Makes the directory; the servers' accounts can enter it."""
        _check_way_of_root(machine, self.path.parent)
        with refused(f"make {self.path}"):
            machine.mkdir(self.path, 0o755)

    def is_of(self, run: Path) -> bool:
        """True if only pgtrial gives such a name. The study chooses the directory around it, which may be any."""
        return is_private(self.path)

    def undo(self, machine: Machine) -> None:
        """Removes the directory with all that is in it."""
        if not machine.exists(self.path):
            return
        _check_way_of_root(machine, self.path.parent)
        machine.remove_tree(self.path)
        if machine.exists(self.path):
            raise HostError(f"cannot remove {self.path}")

    def __str__(self) -> str:
        return f"directory {self.path}"


class Signature(Change):
    """A file system that pgtrial makes on a device of the user's, which was empty or may be overwritten. `uuid` is the
    UUID that `make_command` gives the file system."""

    survives_reboot: ClassVar[bool] = True
    device: Path
    uuid: str
    make_command: tuple[str, ...]

    def make(self, machine: Machine) -> None:
        """Makes the file system on the device."""
        machine.tool(self.make_command)

    def is_of(self, run: Path) -> bool:
        """True for any device, since the study chooses it. What may be removed is known by its UUID."""
        return self.device.is_absolute() and ".." not in self.device.parts and bool(_UUID.fullmatch(self.uuid))

    def undo(self, machine: Machine) -> None:
        """Removes the file system from the device. If the device has another file system, it is another disk, which has
        the name now and is left as it is."""
        if not machine.exists(self.device):
            return
        if self.uuid in machine.tool(["wipefs", "--noheadings", "--output", "UUID", self.device]).split():
            machine.tool(["wipefs", "--all", "--quiet", self.device])

    def __str__(self) -> str:
        return f"filesystem on {self.device}"


class Pool(Change):
    """A ZFS pool with its root file system at a directory that pgtrial made. Options and properties are written
    `name=value`."""

    name: str
    device: Path
    target: Path
    pool_options: tuple[str, ...] = ()
    properties: tuple[str, ...] = ()

    def make(self, machine: Machine) -> None:
        """Makes the pool on the device."""
        machine.tool(self.command())

    def command(self) -> list[str]:
        """Returns the zpool command that makes the pool."""
        options = [word for option in self.pool_options for word in ("-o", option)]
        properties = [word for option in self.properties for word in ("-O", option)]
        return ["zpool", "create", "-f", "-m", str(self.target), *options, *properties, self.name, str(self.device)]

    def verify(self, machine: Machine) -> None:
        """Checks that each property has the value that the study asks for. Raises HostError for one that differs."""
        for wanted in self.properties:
            name, _, value = wanted.partition("=")
            present = machine.tool(["zfs", "get", "-H", "-o", "value", name, self.name]).strip()
            if present.lower() != value.lower():
                raise HostError(f"the ZFS property {name} is {present}, and the study asks for {value}")

    def is_of(self, run: Path) -> bool:
        """True if only pgtrial gives such a name and the pool is mounted below the run. The study chooses the
        device."""
        return bool(_POOL.fullmatch(self.name)) and lies_in(self.target, run)

    def undo(self, machine: Machine) -> None:
        """Destroys the pool, if it is there."""
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
"""The words of mount(8) on FreeBSD, DragonFly and macOS for options that Linux names as in fstab(5)."""


@dataclass(frozen=True)
class Mounted:
    """One mount. `options` has those of the mount, then those of the file system; `device` is major:minor, on Linux
    only."""

    target: Path
    filesystem: str
    source: str
    options: tuple[str, ...]
    device: str


def mountinfo(machine: Machine) -> str:
    """Returns the system's list of mounts; empty if the system has none that pgtrial can read."""
    with suppress(OSError):
        return machine.read_text(_MOUNTINFO)
    with suppress(HostError):
        return machine.tool(["mount"])
    return ""


def mounts(text: str) -> list[Mounted]:
    """Returns all mounts in the order of the system's list."""
    return [mount for line in text.splitlines() if (mount := _parse(line) or _parse_words(line)) is not None]


def mounted_at(target: Path, text: str) -> Mounted | None:
    """Returns the mount at exactly this directory, a path without links: the last one, which hides those before it."""
    return next((mount for mount in reversed(mounts(text)) if mount.target == target), None)


def mount_of(path: Path, text: str) -> Mounted | None:
    """Returns the mount that holds a path without links: the one with the longest directory, and of several the
    last."""
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
    """Returns the mount in a line of FreeBSD, DragonFly or macOS: `/dev/ada0p2 on / (ufs, local, noatime)`."""
    match = _OF_MOUNT.fullmatch(line)
    if match is None:
        return None
    options = [_OPTIONS.get(word, word) for word in (match[4] or "").split(", ") if word]
    return Mounted(Path(match[2]), match[3], match[1], (*options, *(() if "ro" in options else ("rw",))), "")


def _unescaped(text: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), text)
