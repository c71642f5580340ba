"""The volumes of an arm: file systems that pgtrial makes for one trial, verifies, and destroys after the trial."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from pgtrial.files.trust import check_exchangeable, paths_in
from pgtrial.machines.host_changes import HostJournal
from pgtrial.machines.kernel import available_bytes
from pgtrial.machines.machine import LOCAL, HostError, Machine
from pgtrial.machines.volumes import (
    BackingFile,
    LoopDevice,
    Mount,
    Mounted,
    MountPoint,
    Pool,
    PrivateDirectory,
    Signature,
    mount_of,
    mounted_at,
    mountinfo,
    mounts,
    pool_name,
    private_name,
)
from pgtrial.model.errors import ArmError, StudyError
from pgtrial.model.study.storage import Storage, Volume

MAKERS = {
    # without these options, a background thread would initialise inode tables during the trial, and a backing file
    # would lose its preallocated blocks
    "ext4": ["mkfs.ext4", "-q", "-F", "-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=0"],
    "xfs": ["mkfs.xfs", "-q", "-f", "-K"],
    "btrfs": ["mkfs.btrfs", "-q", "-f", "-K"],
}

_WITH_UUID = {"ext4": "-U{}", "xfs": "-muuid={}", "btrfs": "-U{}"}
"""The option of each mkfs that sets the UUID of the file system. By this UUID pgtrial recognises its own file system on
a device of the user before it removes the file system."""

_IN_FORCE_UNSAID = frozenset(
    {"defaults", "rw", "atime", "relatime", "async", "barrier", "barrier=1", "suid", "dev", "exec"}
)
"""Mount options that are in force by default, so that the kernel does not list them."""


@dataclass(frozen=True)
class DataDirectories:
    """The directory for the data of one trial, and the directory for its WAL if that is a separate one. Neither
    directory exists yet."""

    data: Path
    wal: Path | None = None


@dataclass
class Volumes:
    """Makes the volumes of one arm. `changes` makes and records the changes of the machine that are needed for this.

    The loop devices of all arms use the same backing file one after the other, so that no arm has better disk blocks
    than another.
    """

    arm: str
    storage: Storage
    changes: HostJournal
    _lies_on: dict[Path, Path] = field(default_factory=dict, init=False)
    """For each directory that the study names, the mount point to which it belonged when it was first used."""

    def check(self, needed_bytes: int, wal_bytes: int = 0) -> None:
        """Checks before the first trial that the volumes can be made on each device or directory that the storage
        lists. Raises StudyError and ArmError.

        `needed_bytes` is the space that the data needs with its WAL, and `wal_bytes` the space that a separate volume
        for the WAL needs.
        """
        for number in range(len(self.storage.on)):
            try:
                for volume, key in self._volumes(number):
                    needed = (needed_bytes, "data") if key == "storage" else (wal_bytes, "WAL")
                    self._check_volume(volume, key, *needed)
                with self.made(number):
                    pass
            except (ArmError, HostError) as error:
                raise StudyError(f"arms.{self.arm}: {error}") from None

    @contextmanager
    def made(self, number: int | None = None) -> Iterator[DataDirectories]:
        """Makes fresh volumes, and destroys them on exit from the context. If the storage lists several devices or
        directories, `number` is the number of the one to use.

        Raises ArmError with the messages of the system's tools, and HostLost.
        """
        with ExitStack() as stack:
            try:
                roots = [self._make(stack, volume, key) for volume, key in self._volumes(number)]
            except HostError as error:
                raise ArmError(str(error)) from None
            yield DataDirectories(roots[0] / "data", roots[1] / "wal" if len(roots) > 1 else None)

    def _volumes(self, number: int | None) -> list[tuple[Volume, str]]:
        storage = self.storage.at(number)
        return [(storage, "storage"), *([(storage.wal, "storage.wal")] if storage.wal is not None else [])]

    def _check_volume(self, volume: Volume, key: str, needed_bytes: int, what: str) -> None:
        where = f"arms.{self.arm}: {key}"
        machine = self.changes.machine
        if volume.directory is None and not machine.root:
            raise StudyError(
                f"{where} makes a filesystem, which only root may do; {machine.way_to_root}, or name a directory"
            )
        if volume.directory is not None and machine.run(["test", "-d", volume.directory]).status != 0:
            raise StudyError(
                f"{where}: the directory {volume.directory} does not exist; make it, or name another directory"
            )
        named = [volume.device, *paths_in([*volume.mkfs, *volume.mount])]
        for path in filter(None, named if machine is LOCAL else ()):
            try:
                check_exchangeable(path)
            except OSError as error:
                raise StudyError(
                    f"{where}: pgtrial as root does not use {path}: {error.strerror}; name a path that only root can "
                    "change"
                ) from None
        if volume.device is not None:
            _check_device(machine, volume.device, volume.overwrite, where)
        if volume.device is None and volume.directory is None and volume.size < needed_bytes:
            raise StudyError(
                f"{where}: size = {volume.size / 1e6:,.0f} MB does not hold the {what}, which needs about "
                f"{needed_bytes / 1e6:,.0f} MB{' with its WAL' if what == 'data' else ''}; raise the size or lower the "
                "scale"
            )
        if volume.fs == "tmpfs" and volume.size > (available := available_bytes(machine)):
            raise StudyError(
                f"{where}: a tmpfs of {volume.size / 1e9:.1f} GB does not fit into memory, of which "
                f"{available / 1e9:.1f} GB are available; lower its size"
            )

    def _make(self, stack: ExitStack, volume: Volume, key: str) -> Path:
        """Makes one fresh volume, and returns its root directory, which the servers' account can enter. `stack`
        destroys the volume."""
        machine = self.changes.machine
        if volume.directory is not None:
            root = volume.directory / private_name()
            stack.enter_context(self.changes.made(PrivateDirectory(path=root)))
            mounted = mount_of(machine.resolve(root), mountinfo(machine))
            _verify(mounted, volume)
            if mounted is not None:
                self._check_same_mount(volume.directory, mounted.target)
            return root
        # all arms and trials use the same path, so that the path cannot be a difference between them
        target = self.changes.run / f"volume-{key.replace('.', '-')}"
        if volume.fs == "zfs":
            self._make_pool(stack, volume, target, key)
            return target
        stack.enter_context(self.changes.made(MountPoint(path=target)))
        source, options = self._source(stack, volume, key)
        mount = Mount(filesystem=str(volume.fs), source=source, target=target, options=(*options, *volume.mount))
        stack.enter_context(self.changes.made(mount))
        _verify(mounted_at(machine.resolve(target), mountinfo(machine)), volume)
        machine.tool(["chmod", "0755", target])
        return target

    def _check_same_mount(self, directory: Path, mounted: Path) -> None:
        """Raises HostError if a directory is not on the same mount as at its first use, for example after a restart of
        the host. Otherwise the arm would run on another file system without anybody noticing."""
        before = self._lies_on.setdefault(directory, mounted)
        if mounted != before:
            raise HostError(
                f"{directory} on {self.changes.machine.label} was on the file system mounted at {before}, and is on "
                f"that at {mounted} now; mount the file system at {before} again"
            )

    def _source(self, stack: ExitStack, volume: Volume, key: str) -> tuple[str, list[str]]:
        """Makes the file system of a volume, and returns the source to pass to mount(8), such as a device, with the
        mount options that this kind of file system needs."""
        if volume.fs == "tmpfs":
            return "pgtrial", [f"size={volume.size}"]
        device = self._device(stack, volume, key)
        filesystem = str(volume.fs)
        command = [*MAKERS[filesystem], *volume.mkfs]
        if volume.device is not None:
            identifier = str(uuid.uuid4())
            words = (*command, _WITH_UUID[filesystem].format(identifier), str(device))
            stack.enter_context(self.changes.made(Signature(device=device, uuid=identifier, make_command=words)))
        else:
            self.changes.machine.tool([*command, str(device)])
        return str(device), []

    def _device(self, stack: ExitStack, volume: Volume, key: str) -> Path:
        if volume.device is not None:
            return volume.device
        # a run has one backing file for each key and size, which is made on first use and removed with the run
        file = self.changes.run / f"{key}-{volume.size}{'' if volume.preallocate else '-sparse'}.img"
        if not self.changes.machine.exists(file):
            self.changes.make(BackingFile(path=file, size=volume.size, preallocate=volume.preallocate))
        loop = LoopDevice(file=file)
        stack.enter_context(self.changes.made(loop))
        device = loop.device(self.changes.machine)
        if device is None:
            raise HostError(f"the loop device of {file}, which pgtrial has just made, is gone")
        return device

    def _make_pool(self, stack: ExitStack, volume: Volume, target: Path, key: str) -> None:
        device = self._device(stack, volume, key)
        name = pool_name()
        stack.enter_context(self.changes.made(MountPoint(path=target)))
        pool = Pool(
            name=name, device=device, target=target, pool_options=tuple(volume.mkfs), properties=tuple(volume.mount)
        )
        stack.enter_context(self.changes.made(pool))
        pool.verify(self.changes.machine)


def _check_device(machine: Machine, device: Path, overwrite: bool, where: str) -> None:
    if machine.run(["test", "-b", device]).status != 0:
        raise StudyError(f"{where}: {device} is not a block device")
    real = machine.resolve(device)
    from_device = [mounted for mounted in mounts(mountinfo(machine)) if mounted.source.startswith("/")]
    sources = {source: machine.resolve(Path(source)) for source in {mounted.source for mounted in from_device}}
    users = [str(mounted.target) for mounted in from_device if sources[mounted.source] == real]
    if users:
        raise StudyError(f"{where}: {device} is in use: mounted at {', '.join(users)}")
    try:
        signatures = machine.tool(["wipefs", "--noheadings", "--output", "TYPE", device]).split()
    except HostError as error:
        raise StudyError(f"{where}: {error}") from None
    if signatures and not overwrite:
        raise StudyError(
            f"{where}: {device} contains {', '.join(signatures)}; if pgtrial may overwrite it, write overwrite = true"
        )


def _verify(mounted: Mounted | None, volume: Volume) -> None:
    """Raises HostError unless the mounted file system and its options are those that the study asks for."""
    if mounted is None:
        raise HostError("the system's list of mounts lacks the volume that pgtrial has just mounted")
    if volume.fs is not None and mounted.filesystem != volume.fs:
        raise HostError(
            f"the file system at {mounted.target} is {mounted.filesystem}, but the study asks for {volume.fs}"
        )
    missing = [option for option in volume.mount if not _in_force(option, mounted.options)]
    if missing:
        raise HostError(
            f"the kernel has mounted {mounted.filesystem}, but the option {', '.join(missing)} is not in force "
            f"(the options in force are {','.join(sorted(mounted.options))})"
        )


def _in_force(option: str, shown: Collection[str]) -> bool:
    if option in shown or option in _IN_FORCE_UNSAID:
        return not (option in ("atime", "relatime") and "noatime" in shown)
    return option == "barrier=0" and "nobarrier" in shown
