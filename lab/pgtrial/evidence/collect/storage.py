"""Collects the facts of the storage of the data directory, and of the WAL if that is elsewhere: mount, block device,
and parameters of the file system.

The parameters come from the tools of ext, XFS, btrfs and ZFS; for other file systems they are unknown. The facts of
block devices are those that Linux shows in /sys: the queue of the disk, and the stack of RAID, volumes and loop devices
above the disks.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pgtrial.evidence.collect.files import NAMES, Files, parse_fields, read_facts
from pgtrial.evidence.collect.subject import Subject, collector
from pgtrial.machines.volumes import Mounted, mount_of

_MOUNTINFO = "/proc/self/mountinfo"
_SYS = Path("/sys")
_OF_BLOCK_DEVICES = (
    *("", "/queue", "/dm", "/loop", "/slaves/*", "/size", "/device/model", "/device/firmware_rev"),
    *("/device/rev", "/device/queue_depth", "/loop/backing_file", "/dm/uuid", "/md/level", "/md/raid_disks"),
    *("/queue/rotational", "/queue/scheduler", "/queue/write_cache", "/queue/nr_requests"),
    *("/queue/read_ahead_kb", "/queue/discard_max_bytes", "/queue/*_block_size"),
)
"""The files that are read for each block device, relative to its directory in /sys."""
_FILES = (_MOUNTINFO, "/sys/dev/block/*", *(f"/sys/class/block/*{file}" for file in _OF_BLOCK_DEVICES))
_EXT_MOMENTARY = ("needs_recovery", "orphan_present")
Parameters = dict[str, str]


@collector("storage", host=True, files=_FILES)
def storage(subject: Subject) -> dict[str, Any]:
    """Returns the facts of the storage of the data directory and, with the prefix `wal_`, of the storage of pg_wal if
    that is a link to another directory."""
    files, directory = subject.host, subject.data_directory
    if directory is None:
        return {}
    facts = describe(files, directory)
    wal = wal_elsewhere(files, directory)
    return facts if wal is None else {**facts, **{f"wal_{name}": value for name, value in describe(files, wal).items()}}


def wal_elsewhere(files: Files, data_directory: Path) -> Path | None:
    """Returns the directory to which pg_wal is a link; None if it is not a link, or if pgtrial has no access to the
    data directory."""
    wal = files.resolve(data_directory / "pg_wal")
    return wal if wal != files.resolve(data_directory) / "pg_wal" else None


def describe(files: Files, directory: Path) -> dict[str, Any]:
    """Returns the facts of the file system that contains a directory, with its mount options and block device. Unknown
    facts are None."""
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
    """Returns the facts of the disk, and of the stack of devices if it is not a plain disk; no facts if the system has
    no /sys."""
    if not volume.device:
        return {}

    def number_under(file: Path) -> str | None:
        under = volume_of(files, file)
        return None if under is None else under.device

    disk = disk_of(files, _SYS, volume.device, volume.source)
    return {**queue_facts(files, disk), **stack_facts(files, disk, _SYS, number_under)}


def parameters_of(files: Files, kind: str | None, mount_point: str | None, source: str | None) -> Parameters | None:
    """Returns the parameters of a file system; None if pgtrial knows no tool for its kind, or if the tool prints
    none."""
    if mount_point is None or source is None:
        return None
    match kind:
        case "ext2" | "ext3" | "ext4":
            return _parse(files.output("dumpe2fs", "-h", source), parse_dumpe2fs)
        case "xfs":
            return _parse(files.output("xfs_info", mount_point), parse_xfs_info)
        case "btrfs":
            return _parse(files.output("btrfs", "filesystem", "df", mount_point), parse_btrfs_df)
        case "zfs":
            wanted = ",".join(NAMES["zfs"])
            return _parse(files.output("zfs", "get", "-H", "-p", "-o", "property,value", wanted, source), parse_zfs_get)
    return None


def parse_dumpe2fs(text: str) -> Parameters:
    """Returns the parameters in the output of `dumpe2fs -h` that mkfs and tune2fs have set. Counts, dates and flags of
    the current mount are left out."""
    fields = parse_fields(text)
    parameters = {name: fields[label] for label, name in NAMES["ext"].items() if label in fields}
    if "features" in parameters:
        parameters["features"] = " ".join(word for word in parameters["features"].split() if word not in _EXT_MOMENTARY)
    return parameters


def parse_xfs_info(text: str) -> Parameters:
    """Returns the parameters in the output of `xfs_info`.

    A section begins with its name (`data =`), and has entries name=value; a line that begins with `=` continues a
    section.
    """
    parameters: Parameters = {}
    section = ""
    for line in text.splitlines():
        head = re.match(r"(\S+)\s*=", line)
        section = head[1] if head else section
        for name, value in re.findall(r"([a-z][\w-]*)=(\S+?)(?:,|\s|$)", line):
            parameters.setdefault(f"{section}.{name}", value)
    return {name: parameters[name] for name in NAMES["xfs"] if name in parameters}


def parse_btrfs_df(text: str) -> Parameters:
    """Returns the RAID profile of each type of block group in the output of `btrfs filesystem df`, whose lines are
    `Data, single: total=...`. Sizes are left out."""
    return {kind.lower(): profile for kind, profile in re.findall(r"^(\w+), (\w+):", text, flags=re.MULTILINE)}


def parse_zfs_get(text: str) -> Parameters:
    """Returns the properties in the tab-separated output of `zfs get -H -p -o property,value`.

    A property that this version of ZFS does not have is printed with the value `-`, and is left out.
    """
    pairs = (line.split("\t") for line in text.splitlines())
    return {pair[0]: pair[1] for pair in pairs if len(pair) == 2 and pair[1] != "-"}


def _parse(text: str | None, parse: Callable[[str], Parameters]) -> Parameters | None:
    return None if text is None else parse(text) or None


def volume_of(files: Files, path: Path) -> Mounted | None:
    """Returns the mount that contains a path; None if it is not known."""
    return mount_of(files.resolve(path), files.read(_MOUNTINFO) or files.output("mount") or "")


_DEEPEST = 8
"""The number of levels at which a stack of devices is cut off. Real stacks have fewer levels, but the stack of a loop
device whose file is on this device itself would be endless."""

_MAPPERS = {"LVM": "LVM", "CRYPT": "encrypted", "mpath": "multipath", "CACHE": "cache", "VDO": "VDO"}
"""The kind of a device-mapper device, by the beginning of its uuid (`LVM-...`, `CRYPT-LUKS2-...`)."""

Holder = Callable[[Path], str | None]
"""A function that returns the device number, major:minor, of the device that contains a file; None if it is not
known."""


def disk_of(files: Files, sys: Path, device: str, source: str) -> Path | None:
    """Returns the directory in /sys of the disk on which a file system is mounted. If the file system is on a
    partition, this is the disk with the partition.

    The disk is found by the mount's device number or, for file systems on several devices, by the mount's source.
    """
    link = sys / "dev/block" / device
    if not files.exists(link) and source.startswith("/dev/"):
        link = sys / "class/block" / files.resolve(source).name
    return _disk(files, sys, link) if files.exists(link) else None


def _disk(files: Files, sys: Path, link: Path) -> Path | None:
    """Returns the disk of a device or partition, as its directory in /sys/class/block."""
    resolved = files.resolve(link)
    homes = [sys / "class/block" / name for name in (resolved.name, resolved.parent.name)]
    return next((home for home in homes if files.exists(home / "queue")), None)


def queue_facts(files: Files, disk: Path | None) -> dict[str, Any]:
    """Returns the facts of one disk, such as its model, cache, scheduler and queue; all are None if there is no
    disk."""
    if disk is None:
        return dict.fromkeys(["device", *NAMES["disk"]])
    facts = {"device": disk.name, **read_facts(files, NAMES["disk"], disk)}
    return facts | {"device_firmware": facts["device_firmware"] or files.read(disk / "device/rev")}


def stack_facts(files: Files, disk: Path | None, sys: Path, holder: Holder) -> dict[str, Any]:
    """Returns the facts of the stack of devices, from the device of the file system down to the disks: its levels, the
    RAID level, and the write caches of the disks.

    For example, `stack` is ["disk"] for a plain disk, and ["LVM", "RAID raid1 of 2", "disk", "disk"] for a volume on
    two mirrored disks.
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
    parts = _below(files, disk, sys, holder) if depth < _DEEPEST else []
    return [disk, *(level for part in parts for level in _levels(files, part, sys, holder, depth + 1))]


def _below(files: Files, disk: Path, sys: Path, holder: Holder) -> list[Path]:
    """Returns the devices that are directly below a device in the stack; none for a disk."""
    backing = files.read(disk / "loop/backing_file")
    if backing is None:
        below = [_disk(files, sys, path) for path in files.glob(disk / "slaves/*")]
    else:
        device = holder(Path(backing))
        below = [] if device is None else [disk_of(files, sys, device, "")]
    return [part for part in below if part is not None]


def _named(files: Files, disk: Path) -> str:
    """Returns the kind of a device. The names of loop devices and volumes are left out, since they say nothing about
    speed."""
    raid = files.read(disk / "md/level")
    if raid is not None:
        return f"RAID {raid} of {files.read(disk / 'md/raid_disks') or '?'}"
    uuid = files.read(disk / "dm/uuid")
    if files.exists(disk / "dm"):
        return _MAPPERS.get((uuid or "").partition("-")[0], "device mapper")
    return "loop" if files.exists(disk / "loop") or disk.name.startswith("loop") else "disk"
