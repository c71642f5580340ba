"""The storage of the data directory (and of WAL, if elsewhere): file system, mount options, device."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from pgtrial.facts.collect import Subject, collector
from pgtrial.facts.files import chosen, read


@dataclass(frozen=True)
class Mount:
    """One line of /proc/self/mountinfo (proc(5)); `device` is major:minor."""

    device: str
    point: str
    options: str
    kind: str
    source: str
    super_options: str


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
    # extended options: those of the mount point, then those of the file system, each once
    options = list(dict.fromkeys(f"{mount.options},{mount.super_options}".split(",")))
    return {
        "filesystem": mount.kind,
        "mount_point": mount.point,
        "mount_options": ",".join(sorted(options)),
        "source": mount.source,
        **_device(mount.device),
    }


def mount_of(directory: Path, table: str | None = None) -> Mount | None:
    """The mount that holds a path: of those at or above it the longest, and of equals the last mounted."""
    text = read("/proc/self/mountinfo") if table is None else table
    path = os.path.realpath(directory)
    best: Mount | None = None
    for line in (text or "").splitlines():
        mount = _parse(line)
        if mount is not None and _holds(mount.point, path) and (best is None or len(mount.point) >= len(best.point)):
            best = mount
    return best


def _parse(line: str) -> Mount | None:
    left, separator, right = line.partition(" - ")
    before, after = left.split(), right.split()
    if not separator or len(before) < 6 or len(after) < 3:
        return None
    return Mount(before[2], _unescaped(before[4]), before[5], after[0], _unescaped(after[1]), after[2])


def _holds(point: str, path: str) -> bool:
    return path == point or path.startswith(point.rstrip("/") + "/")


def _unescaped(text: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), text)


def _device(number: str) -> dict[str, Any]:
    """The block device's queue: that of the whole disk when the number is a partition's."""
    home = Path(f"/sys/dev/block/{number}").resolve()
    if not (home / "queue").is_dir():
        home = home.parent
    queue = home / "queue"
    rotational = read(queue / "rotational")
    return {
        "device": home.name if queue.is_dir() else None,
        "device_model": read(home / "device/model"),
        "rotational": None if rotational is None else rotational == "1",
        "scheduler": chosen(queue / "scheduler"),
        "write_cache": read(queue / "write_cache"),
        "read_ahead_kb": read(queue / "read_ahead_kb"),
    }


def _portable(directory: Path) -> dict[str, Any]:
    """Where there is no mountinfo (BSD, macOS)."""
    path = os.path.realpath(directory)
    holding = [part for part in psutil.disk_partitions(all=True) if _holds(part.mountpoint, path)]
    if not holding:
        return {"filesystem": None, "mount_options": None}
    best = max(holding, key=lambda part: len(part.mountpoint))
    return {
        "filesystem": best.fstype,
        "mount_point": best.mountpoint,
        "mount_options": ",".join(sorted(best.opts.split(","))),
        "source": best.device,
    }
