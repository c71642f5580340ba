"""The storage of the data directory (and of WAL, if elsewhere): mount, device, and what a file system says of itself.

File systems are asked by their own tools; what those do not say is unknown.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pgtrial.evidence.collect import block
from pgtrial.evidence.collect.files import NAMES, Files, parse_fields
from pgtrial.evidence.collect.subject import Subject, collector
from pgtrial.machines.volumes import Mounted, mount_of

MOUNTINFO = "/proc/self/mountinfo"
_SYS = Path("/sys")
_EXT_MOMENTARY = ("needs_recovery", "orphan_present")
Parameters = dict[str, str]


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


def parameters_of(files: Files, kind: str | None, mount_point: str | None, source: str | None) -> Parameters | None:
    """The file system's own parameters; None where its kind has none or its tool is silent."""
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
    """`dumpe2fs -h`: what mkfs and tune2fs decided; no counts, no dates, and no marks of a mounted file system."""
    fields = parse_fields(text)
    found = {name: fields[label] for label, name in NAMES["ext"].items() if label in fields}
    if "features" in found:
        found["features"] = " ".join(word for word in found["features"].split() if word not in _EXT_MOMENTARY)
    return found


def parse_xfs_info(text: str) -> Parameters:
    """`xfs_info`: the lines are sections (`data     =`) of name=value; a line that begins with = goes on with one."""
    found: Parameters = {}
    section = ""
    for line in text.splitlines():
        head = re.match(r"(\S+)\s*=", line)
        section = head[1] if head else section
        for name, value in re.findall(r"([a-z][\w-]*)=(\S+?)(?:,|\s|$)", line):
            found.setdefault(f"{section}.{name}", value)
    return {name: found[name] for name in NAMES["xfs"] if name in found}


def parse_btrfs_df(text: str) -> Parameters:
    """`btrfs filesystem df`: the profile of each kind of block group, without sizes (`Data, single: total=...`)."""
    return {kind.lower(): profile for kind, profile in re.findall(r"^(\w+), (\w+):", text, flags=re.MULTILINE)}


def parse_zfs_get(text: str) -> Parameters:
    """`zfs get -H -p -o property,value`: tab-separated; a property that this version lacks has the value -."""
    pairs = (line.split("\t") for line in text.splitlines())
    return {pair[0]: pair[1] for pair in pairs if len(pair) == 2 and pair[1] != "-"}


def _parse(text: str | None, parse: Callable[[str], Parameters]) -> Parameters | None:
    return None if text is None else parse(text) or None


def volume_of(files: Files, path: Path) -> Mounted | None:
    """The mount that holds a path."""
    return mount_of(files.resolve(path), files.read(MOUNTINFO) or files.output("mount") or "")
