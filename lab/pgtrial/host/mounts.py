"""What is mounted where, and with which options, as the kernel says it (`proc(5)`, /proc/self/mountinfo)."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

_MOUNTINFO = Path("/proc/self/mountinfo")


@dataclass(frozen=True)
class Mounted:
    """One mount. `options` are those of the mount, then those of the filesystem; `device` is major:minor."""

    target: Path
    filesystem: str
    source: str
    options: tuple[str, ...]
    device: str


def mounts(text: str | None = None) -> list[Mounted]:
    """All mounts in the order of the kernel's list; none where there is no such list. `text` stands for it."""
    if text is None:
        try:
            text = _MOUNTINFO.read_text()
        except OSError:
            return []
    return [found for line in text.splitlines() if (found := _parse(line)) is not None]


def mounted_at(target: Path, text: str | None = None) -> Mounted | None:
    """The mount at exactly this directory; the last one hides those before it."""
    wanted = Path(os.path.realpath(target))
    return next((mount for mount in reversed(mounts(text)) if mount.target == wanted), None)


def mount_of(directory: Path, text: str | None = None) -> Mounted | None:
    """The mount that holds a path: of those at or above it the longest, and of equals the last mounted."""
    path = Path(os.path.realpath(directory))
    holding = [mount for mount in mounts(text) if path.is_relative_to(mount.target)]
    return max(reversed(holding), key=lambda mount: len(mount.target.parts), default=None)


def _parse(line: str) -> Mounted | None:
    before, separator, after = line.partition(" - ")
    fields, tail = before.split(" "), after.split(" ")
    if not separator or len(fields) < 6 or len(tail) < 3:
        return None
    options = tuple(dict.fromkeys([*fields[5].split(","), *tail[2].split(",")]))
    return Mounted(Path(_unescaped(fields[4])), tail[0], _unescaped(tail[1]), options, fields[2])


def _unescaped(text: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), text)
