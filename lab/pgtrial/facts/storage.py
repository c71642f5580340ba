"""The storage of the data directory (and of WAL, if elsewhere): file system, mount options, device."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import psutil

from pgtrial.facts import block
from pgtrial.facts.collect import Subject, collector
from pgtrial.facts.filesystem import parameters_of
from pgtrial.host.mounts import Mounted, mount_of

_SYS = Path("/sys")


@collector("storage")
def storage(subject: Subject) -> dict[str, Any]:
    """Of the data directory; with `wal_` in front when pg_wal is a link to another file system."""
    if not subject.here or subject.data_directory is None:
        return {}
    found = describe(subject.data_directory)
    wal = Path(subject.data_directory) / "pg_wal"
    try:
        linked = wal.is_symlink()
    except OSError:  # the data directory of another user
        return found
    return {**found, **{f"wal_{name}": value for name, value in describe(wal.resolve()).items()}} if linked else found


def describe(directory: Path) -> dict[str, Any]:
    """File system, mount options and block device under a path; unknown values are None."""
    mount = mount_of(directory)
    if mount is None:
        return _portable(directory)
    point = str(mount.target)
    return {
        "filesystem": mount.filesystem,
        "mount_point": point,
        "mount_options": ",".join(sorted(mount.options)),
        "source": mount.source,
        "filesystem_parameters": parameters_of(mount.filesystem, point, mount.source),
        **_device(mount),
    }


def _device(mount: Mounted) -> dict[str, Any]:
    """The disk's own facts, and the stack of devices that it may be."""
    disk = block.disk_of(_SYS, mount.device, mount.source)
    return {**block.queue_facts(disk), **block.stack_facts(disk, _SYS, _number_under)}


def _number_under(file: Path) -> str | None:
    mount = mount_of(file)
    return None if mount is None else mount.device


def _portable(directory: Path) -> dict[str, Any]:
    """Where there is no mountinfo (BSD, macOS)."""
    path = os.path.realpath(directory)
    holding = [part for part in psutil.disk_partitions(all=True) if Path(path).is_relative_to(part.mountpoint)]
    if not holding:
        return {"filesystem": None, "mount_options": None}
    best = max(holding, key=lambda part: len(part.mountpoint))
    return {
        "filesystem": best.fstype,
        "mount_point": best.mountpoint,
        "mount_options": ",".join(sorted(best.opts.split(","))),
        "source": best.device,
        "filesystem_parameters": parameters_of(best.fstype, best.mountpoint, best.device),
    }
