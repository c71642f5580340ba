"""What is mounted on a machine: as the system lists it, or, where nothing does on this one, as Python knows it."""

from __future__ import annotations

from pathlib import Path

import psutil

from pgtrial.facts.files import Files
from pgtrial.host.mounts import Mounted, mount_of

MOUNTINFO = "/proc/self/mountinfo"


def volume_of(files: Files, path: Path) -> Mounted | None:
    """The mount that holds a path."""
    path = files.resolve(path)
    told = files.read(MOUNTINFO) or files.output("mount")
    if told is None and files.local:
        holding = [volume for volume in _known_to_python() if path.is_relative_to(volume.target)]
        return max(holding, key=lambda volume: len(volume.target.parts), default=None)
    return mount_of(path, told or "")


def _known_to_python() -> list[Mounted]:
    return [
        Mounted(Path(part.mountpoint), part.fstype, part.device, tuple(part.opts.split(",")), "")
        for part in psutil.disk_partitions(all=True)
    ]
