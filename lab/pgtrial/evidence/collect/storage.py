"""The storage of the data directory (and of WAL, if elsewhere): file system, mount options, device."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pgtrial.evidence.collect import block
from pgtrial.evidence.collect.files import Files
from pgtrial.evidence.collect.filesystem import MOUNTINFO, parameters_of, volume_of
from pgtrial.evidence.collect.subject import Subject, collector
from pgtrial.machines.mounts import Mounted

_SYS = Path("/sys")


@collector("storage", host=True, files=[MOUNTINFO, *block.FILES])
def storage(subject: Subject) -> dict[str, Any]:
    """Of the data directory; with `wal_` in front when pg_wal is a link to another file system."""
    files, directory = subject.host, subject.data_directory
    if directory is None:
        return {}
    found = describe(files, directory)
    wal = wal_elsewhere(files, directory)
    return found if wal is None else {**found, **{f"wal_{name}": value for name, value in describe(files, wal).items()}}


def wal_elsewhere(files: Files, data_directory: Path) -> Path | None:
    """Where WAL is, if pg_wal is a link; None also for a data directory of others, into which we cannot look."""
    wal = files.resolve(data_directory / "pg_wal")
    return wal if wal != files.resolve(data_directory) / "pg_wal" else None


def describe(files: Files, directory: Path) -> dict[str, Any]:
    """File system, mount options and block device under a path; unknown values are None."""
    volume = volume_of(files, directory)
    if volume is None:
        return {"filesystem": None, "mount_options": None}
    point = str(volume.target)
    return {
        "filesystem": volume.filesystem,
        "mount_point": point,
        "mount_options": ",".join(sorted(volume.options)),
        "source": volume.source,
        "filesystem_parameters": parameters_of(files, volume.filesystem, point, volume.source),
        **_device(files, volume),
    }


def _device(files: Files, volume: Mounted) -> dict[str, Any]:
    """The disk's own facts, and the stack of devices that it may be; none where the system has no /sys."""
    if not volume.device:
        return {}

    def number_under(file: Path) -> str | None:
        under = volume_of(files, file)
        return None if under is None else under.device

    disk = block.disk_of(files, _SYS, volume.device, volume.source)
    return {**block.queue_facts(files, disk), **block.stack_facts(files, disk, _SYS, number_under)}
