"""What is mounted where, and with which options: as Linux says it (`proc(5)`, /proc/self/mountinfo), else mount(8)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from pgtrial.machines.machine import HostError, Machine

_MOUNTINFO = Path("/proc/self/mountinfo")
_OF_MOUNT = re.compile(r"(.+) on (.+) \((\w+)(?:, (.*))?\)")
_OPTIONS = {"read-only": "ro", "asynchronous": "async", "synchronous": "sync"}
"""Words of mount(8) for what the others call as in fstab(5)."""


@dataclass(frozen=True)
class Mounted:
    """One mount. `options` are those of the mount, then those of the filesystem; `device` is major:minor, on Linux."""

    target: Path
    filesystem: str
    source: str
    options: tuple[str, ...]
    device: str


def mountinfo(machine: Machine) -> str:
    """The system's list; empty where nothing tells."""
    try:
        return machine.read_text(_MOUNTINFO)
    except OSError:
        pass
    try:
        return machine.tool(["mount"])
    except HostError:
        return ""


def mounts(text: str) -> list[Mounted]:
    """All mounts in the order of the system's list."""
    return [found for line in text.splitlines() if (found := _parse(line) or _parse_words(line)) is not None]


def mounted_at(target: Path, text: str) -> Mounted | None:
    """The mount at exactly this directory, a path without links; the last one hides those before it."""
    return next((mount for mount in reversed(mounts(text)) if mount.target == target), None)


def mount_of(path: Path, text: str) -> Mounted | None:
    """The mount that holds a path without links: of those at or above it the longest, of equals the last mounted."""
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
    """Of FreeBSD, DragonFly and macOS: `/dev/ada0p2 on / (ufs, local, noatime)`."""
    found = _OF_MOUNT.fullmatch(line)
    if found is None:
        return None
    options = [_OPTIONS.get(word, word) for word in (found[4] or "").split(", ") if word]
    return Mounted(Path(found[2]), found[3], found[1], (*options, *(() if "ro" in options else ("rw",))), "")


def _unescaped(text: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), text)
