"""Block devices as Linux shows them in /sys: the disk's queue, and the stack of RAID, volumes and loops over disks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from pgtrial.evidence.collect.files import NAMES, Files, read_facts

FILES = (
    "/sys/dev/block/*",
    *(
        f"/sys/class/block/*{part}"
        for part in (
            *("", "/queue", "/dm", "/loop", "/slaves/*", "/size", "/device/model", "/device/firmware_rev"),
            *("/device/rev", "/device/queue_depth", "/loop/backing_file", "/dm/uuid", "/md/level", "/md/raid_disks"),
            *("/queue/rotational", "/queue/scheduler", "/queue/write_cache", "/queue/nr_requests"),
            *("/queue/read_ahead_kb", "/queue/discard_max_bytes", "/queue/*_block_size"),
        )
    ),
)
"""What is read of a machine's block devices."""

_DEEPEST = 8
"""A stack has fewer levels; a loop file on itself would have no end."""

_MAPPERS = {"LVM": "LVM", "CRYPT": "encrypted", "mpath": "multipath", "CACHE": "cache", "VDO": "VDO"}
"""What the first part of a device mapper's uuid says (`LVM-...`, `CRYPT-LUKS2-...`)."""

Holder = Callable[[Path], str | None]
"""The number major:minor of the device that holds a file, or None."""


def disk_of(files: Files, sys: Path, device: str, source: str) -> Path | None:
    """The directory of the disk under a mount: by its number, else by its source (file systems of many devices).

    A partition stands for its disk.
    """
    link = sys / "dev/block" / device
    if not files.exists(link) and source.startswith("/dev/"):
        link = sys / "class/block" / files.resolve(source).name
    return _disk(files, sys, link) if files.exists(link) else None


def _disk(files: Files, sys: Path, link: Path) -> Path | None:
    """The disk of a device or partition, by the name that /sys/class/block has for it."""
    place = files.resolve(link)
    homes = [sys / "class/block" / name for name in (place.name, place.parent.name)]
    return next((home for home in homes if files.exists(home / "queue")), None)


def queue_facts(files: Files, disk: Path | None) -> dict[str, Any]:
    """Of one disk: model, kind, cache, scheduler, queue; all None if there is no such disk."""
    if disk is None:
        return dict.fromkeys(["device", *NAMES["disk"]])
    found = {"device": disk.name, **read_facts(files, NAMES["disk"], disk)}
    return found | {"device_firmware": found["device_firmware"] or files.read(disk / "device/rev")}


def stack_facts(files: Files, disk: Path | None, sys: Path, holder: Holder) -> dict[str, Any]:
    """The levels from the device of the file system down to the disks, and the caches of these disks.

    `stack` is ["disk"] for a plain disk, ["LVM", "RAID raid1 of 2", "disk", "disk"] for a volume on mirrored disks.
    """
    if disk is None:
        return {"stack": None, "raid": None, "disk_write_caches": None}
    levels = _levels(files, disk, sys, holder, 0)
    raids = [files.read(level / "md/level") for level in levels]
    bottoms = [level for level in levels if not _below(files, level, sys, holder)]
    caches = [files.read(bottom / "queue/write_cache") for bottom in bottoms]
    return {
        "stack": [_named(files, level) for level in levels],
        "raid": next((raid for raid in raids if raid is not None), "none"),
        "disk_write_caches": sorted({cache for cache in caches if cache is not None}) if all(caches) else None,
    }


def _levels(files: Files, disk: Path, sys: Path, holder: Holder, depth: int) -> list[Path]:
    if depth >= _DEEPEST:
        return [disk]
    below = [
        level for part in _below(files, disk, sys, holder) for level in _levels(files, part, sys, holder, depth + 1)
    ]
    return [disk, *below]


def _below(files: Files, disk: Path, sys: Path, holder: Holder) -> list[Path]:
    """The disks on which a device lies; none for a disk itself."""
    slaves = files.glob(disk / "slaves/*")
    if slaves:
        return [below for path in slaves if (below := _disk(files, sys, path)) is not None]
    backing = files.read(disk / "loop/backing_file")
    number_below = holder(Path(backing)) if backing is not None else None
    under = disk_of(files, sys, number_below, "") if number_below is not None else None
    return [under] if under is not None else []


def _named(files: Files, disk: Path) -> str:
    """What a level is; names of loop devices and volumes are left out, for they say nothing about speed."""
    raid = files.read(disk / "md/level")
    if raid is not None:
        return f"RAID {raid} of {files.read(disk / 'md/raid_disks') or '?'}"
    uuid = files.read(disk / "dm/uuid")
    if files.exists(disk / "dm"):
        return _MAPPERS.get((uuid or "").partition("-")[0], "device mapper")
    return "loop" if files.exists(disk / "loop") or disk.name.startswith("loop") else "disk"
