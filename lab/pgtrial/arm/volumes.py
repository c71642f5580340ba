"""An arm's volumes: made for one trial, verified, and destroyed after it."""

from __future__ import annotations

import os
import secrets
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from pgtrial.arm.workspace import Workspace
from pgtrial.errors import ArmError, StudyError
from pgtrial.host.change import HostError, run_tool
from pgtrial.host.journal import HostJournal
from pgtrial.host.mounts import Mounted, mount_of, mounted_at, mounts
from pgtrial.host.pools import Pool
from pgtrial.host.volumes import BackingFile, LoopDevice, Mount, MountPoint, PrivateDirectory, Signature
from pgtrial.study.storage import Storage, Volume

MAKERS = {
    # nothing is left for a background thread that would fill tables during the trial, and a file keeps its blocks
    "ext4": ["mkfs.ext4", "-q", "-F", "-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=0"],
    "xfs": ["mkfs.xfs", "-q", "-f", "-K"],
    "btrfs": ["mkfs.btrfs", "-q", "-f", "-K"],
}

_IN_FORCE_UNSAID = frozenset(
    {"defaults", "rw", "atime", "relatime", "async", "barrier", "barrier=1", "suid", "dev", "exec"}
)
"""Mount options that are the default, of which the kernel does not tell."""


@dataclass(frozen=True)
class Place:
    """Where the data directory of one trial goes, and its WAL if that is elsewhere; both are not made yet."""

    data: Path
    wal: Path | None = None


@dataclass
class Volumes:
    """The volumes of one arm. Loop volumes of all arms are in turn on the same blocks of the same file."""

    arm: str
    storage: Storage
    workspace: Workspace

    def check(self, needed_bytes: int) -> None:
        """Find out before the first trial whether the volumes can be had at each place. Raises StudyError, ArmError."""
        for place in range(len(self.storage.on)):
            for volume, key in self._volumes(place):
                self._check_volume(volume, key, needed_bytes)
            try:
                with self.made(place):
                    pass
            except ArmError as error:
                raise StudyError(f"arms.{self.arm}: {error}") from None

    @contextmanager
    def made(self, place: int | None = None) -> Iterator[Place]:
        """Fresh volumes, of a storage that lists places at this one; destroyed on the way out.

        Raises ArmError in words of the system's tools.
        """
        with ExitStack() as stack:
            try:
                roots = [self._make(stack, volume, key) for volume, key in self._volumes(place)]
            except HostError as error:
                raise ArmError(str(error)) from None
            yield Place(roots[0] / "data", roots[1] / "wal" if len(roots) > 1 else None)

    def _volumes(self, place: int | None) -> list[tuple[Volume, str]]:
        storage = self.storage.at(place)
        return [(storage, "storage"), *([(storage.wal, "storage.wal")] if storage.wal is not None else [])]

    def _check_volume(self, volume: Volume, key: str, needed_bytes: int) -> None:
        where = f"arms.{self.arm}: {key}"
        if volume.directory is None and os.geteuid() != 0:
            raise StudyError(
                f"{where} makes a filesystem, which only root may; run pgtrial as root, or name a directory"
            )
        if volume.directory is not None and not volume.directory.is_dir():
            raise StudyError(f"{where}: there is no directory {volume.directory}")
        if volume.device is not None:
            _check_device(volume.device, volume.overwrite, where)
        if key == "storage" and volume.device is None and volume.directory is None and volume.size < needed_bytes:
            raise StudyError(
                f"{where}: size = {volume.size / 1e9:.1f} GB does not hold the data, which needs about "
                f"{needed_bytes / 1e9:.1f} GB with its WAL; raise the size or lower the scale"
            )
        if volume.fs == "tmpfs" and volume.size > (available := psutil.virtual_memory().available):
            raise StudyError(
                f"{where}: a tmpfs of {volume.size / 1e9:.1f} GB does not fit the memory, of which "
                f"{available / 1e9:.1f} GB are available"
            )

    def _make(self, stack: ExitStack, volume: Volume, key: str) -> Path:
        """The root of one fresh volume, open to the servers' account."""
        journal = HostJournal(self.workspace.run)
        if volume.directory is not None:
            root = volume.directory / f"pgtrial-{os.getpid()}-{secrets.token_hex(3)}"
            stack.enter_context(journal.made(PrivateDirectory(path=root)))
            _verify(mount_of(root), volume)
            return root
        # one name for all arms and trials: the path is no difference between them
        target = self.workspace.run / f"volume-{key.replace('.', '-')}"
        if volume.fs == "zfs":
            self._make_pool(stack, journal, volume, target, key)
            return target
        stack.enter_context(journal.made(MountPoint(path=target)))
        source, options = self._source(stack, journal, volume, key)
        stack.enter_context(
            journal.made(
                Mount(filesystem=str(volume.fs), source=source, target=target, options=(*options, *volume.mount))
            )
        )
        _verify(mounted_at(target), volume)
        target.chmod(0o755)
        return target

    def _source(self, stack: ExitStack, journal: HostJournal, volume: Volume, key: str) -> tuple[str, list[str]]:
        """What is mounted, with options that the making needs."""
        if volume.fs == "tmpfs":
            return "pgtrial", [f"size={volume.size}"]
        device = self._device(stack, journal, volume, key)
        command = [*MAKERS[str(volume.fs)], *volume.mkfs, str(device)]
        if volume.device is not None:
            stack.enter_context(journal.made(Signature(device=device, make_command=tuple(command))))
        else:
            run_tool(command)
        return str(device), []

    def _device(self, stack: ExitStack, journal: HostJournal, volume: Volume, key: str) -> Path:
        if volume.device is not None:
            return volume.device
        file = self._backing_file(volume, key)
        loop = LoopDevice(file=file)
        stack.enter_context(journal.made(loop))
        device = loop.device()
        if device is None:
            raise HostError(f"the loop device over {file} is gone")
        return device

    def _backing_file(self, volume: Volume, key: str) -> Path:
        """The run's file of this role and size, made on first use and removed with the run."""
        path = self.workspace.run / f"{key}-{volume.size}{'' if volume.preallocate else '-sparse'}.img"
        if not path.exists():
            HostJournal(self.workspace.run).make(
                BackingFile(path=path, size=volume.size, preallocate=volume.preallocate)
            )
        return path

    def _make_pool(self, stack: ExitStack, journal: HostJournal, volume: Volume, target: Path, key: str) -> None:
        device = self._device(stack, journal, volume, key)
        name = f"pgtrial-{secrets.token_hex(4)}"
        stack.enter_context(journal.made(MountPoint(path=target)))
        pool = Pool(
            name=name, device=device, target=target, pool_options=tuple(volume.mkfs), properties=tuple(volume.mount)
        )
        stack.enter_context(journal.made(pool))
        pool.verify()


def _check_device(device: Path, overwrite: bool, where: str) -> None:
    if not device.is_block_device():
        raise StudyError(f"{where}: {device} is no block device")
    users = [str(mounted.target) for mounted in _mounts_of(device)]
    if users:
        raise StudyError(f"{where}: {device} is in use: mounted at {', '.join(users)}")
    try:
        found = run_tool(["wipefs", "--noheadings", "--output", "TYPE", device]).split()
    except HostError as error:
        raise StudyError(f"{where}: {error}") from None
    if found and not overwrite:
        raise StudyError(
            f"{where}: {device} holds {', '.join(found)}; to have it used all the same, write overwrite = true"
        )


def _mounts_of(device: Path) -> list[Mounted]:
    real = device.resolve()
    return [
        mounted for mounted in mounts() if mounted.source.startswith("/") and Path(mounted.source).resolve() == real
    ]


def _verify(mounted: Mounted | None, volume: Volume) -> None:
    """The filesystem and each option that was asked for are in force, or HostError says which is not."""
    if mounted is None:
        raise HostError("the volume is not mounted after mounting it")
    if volume.fs is not None and mounted.filesystem != volume.fs:
        raise HostError(f"{mounted.target} is {mounted.filesystem} and the study asks for {volume.fs}")
    missing = [option for option in volume.mount if not _in_force(option, mounted.options)]
    if missing:
        raise HostError(
            f"the kernel took the mount of {mounted.filesystem}, but {', '.join(missing)} is not in force "
            f"(it says {','.join(sorted(mounted.options))})"
        )


def _in_force(option: str, shown: Collection[str]) -> bool:
    if option in shown or option in _IN_FORCE_UNSAID:
        return not (option in ("atime", "relatime") and "noatime" in shown)
    return option == "barrier=0" and "nobarrier" in shown
