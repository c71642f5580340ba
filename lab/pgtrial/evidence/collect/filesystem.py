"""What is mounted on a machine, and what a file system says about itself through its own tools; else unknown."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from pgtrial.evidence.collect.files import Files, parse_fields
from pgtrial.evidence.collect.names import NAMES
from pgtrial.machines.mounts import Mounted, mount_of

_EXT_MOMENTARY = ("needs_recovery", "orphan_present")
Parameters = dict[str, str]


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


MOUNTINFO = "/proc/self/mountinfo"


def volume_of(files: Files, path: Path) -> Mounted | None:
    """The mount that holds a path."""
    return mount_of(files.resolve(path), files.read(MOUNTINFO) or files.output("mount") or "")
