"""What the server's control groups allow it, versions 1 and 2; a limit that is not set is "unlimited"."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from pgtrial.evidence.collect.files import Files
from pgtrial.evidence.collect.subject import Subject, collector

UNLIMITED = "unlimited"

_NO_LIMIT_V1 = 2**60
"""Version 1 writes "no limit" as the largest multiple of the page size, near 2^63."""

_THROTTLES_V1 = ("read_bps_device", "write_bps_device", "read_iops_device", "write_iops_device")
_FILES = (
    *("memory.max", "memory.high", "memory.limit_in_bytes", "memory.swap.max", "cpu.max", "cpu.cfs_*_us"),
    *("cpuset.cpus", "cpuset.cpus.effective", "cpuset.effective_cpus", "io.max", "blkio.throttle.*_device"),
)
_Limit = float | str | None
_Value = TypeVar("_Value")


@collector("limits", host=True)
def limits(subject: Subject) -> dict[str, Any]:
    """Of the server where there is one, else, on this machine, of the lab itself."""
    files, process = subject.host, subject.server_process
    if process is None and not files.local:
        return {}
    groups = files.read(f"/proc/{process or 'self'}/cgroup")
    return {} if groups is None else limits_of(files, groups, Path("/sys/fs/cgroup"))


def limits_of(files: Files, groups: str, root: Path) -> dict[str, Any]:
    """From the lines of /proc/PID/cgroup (cgroups(7)) and the tree mounted at `root`.

    memory_mb, swap_mb: MB; cpus: a number of CPUs; cpuset: a list as the kernel writes it; io: the kernel's lines.
    """
    places = _places(files, groups, root)
    read = files.read
    return {
        "memory_mb": _least(places("memory"), lambda group: _memory(files, group)),
        "swap_mb": _least(places("memory"), lambda group: _bytes(read(group / "memory.swap.max"))),
        "cpus": _least(places("cpu"), lambda group: _cpus(files, group)),
        "cpuset": _first(places("cpuset"), lambda group: _cpuset(files, group)),
        "io": _io(files, places("blkio")),
    }


def _places(files: Files, groups: str, root: Path) -> Callable[[str], list[Path]]:
    """Version 1's name of a controller -> the group's directory and those above it, the innermost first.

    A controller without a line of its own is version 2's.
    """
    paths: dict[str, str] = {}
    for line in groups.splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        paths.update(dict.fromkeys(controllers.split(",") if controllers else [""], path))

    tops = {controller: root / controller for controller in paths if controller}
    ends = {top / paths[controller].lstrip("/") for controller, top in tops.items()}
    ends |= {top / paths[""].lstrip("/") for top in (root, root / "unified") if "" in paths}
    at_hand = {group for end in ends for group in (end, *end.parents) if group.is_relative_to(root)}
    files.fetch(root / "unified", *sorted(ends), *(f"{group}/{part}" for group in sorted(at_hand) for part in _FILES))

    def places(controller: str) -> list[Path]:
        if controller in paths:
            top, path = tops[controller], paths[controller]
        elif "" in paths:
            top, path = (root / "unified" if files.exists(root / "unified") else root), paths[""]
        else:
            return []
        # without a namespace of its own a container sees a path that is not below its mount
        inner = top / path.lstrip("/") if files.exists(top / path.lstrip("/")) else top
        return [group for group in (inner, *inner.parents) if group == top or top in group.parents]

    return places


def _memory(files: Files, group: Path) -> _Limit:
    limits = [_bytes(files.read(group / name)) for name in ("memory.max", "memory.high", "memory.limit_in_bytes")]
    return _smallest(limits)


def _bytes(text: str | None) -> _Limit:
    """MB."""
    if text is None:
        return None
    if text == "max" or (text.isdigit() and int(text) >= _NO_LIMIT_V1):
        return UNLIMITED
    return int(text) // 2**20 if text.isdigit() else None


def _cpus(files: Files, group: Path) -> _Limit:
    read = files.read
    whole = read(group / "cpu.max")
    quota, period = whole.split() if whole else (read(group / "cpu.cfs_quota_us"), read(group / "cpu.cfs_period_us"))
    if quota is None or period is None:
        return None
    return UNLIMITED if quota in ("max", "-1") else round(int(quota) / int(period), 3)


def _cpuset(files: Files, group: Path) -> str | None:
    names = ("cpuset.cpus.effective", "cpuset.effective_cpus", "cpuset.cpus")
    return next((found for name in names if (found := files.read(group / name)) is not None), None)


def _io(files: Files, groups: list[Path]) -> list[str] | str | None:
    """The limits of the innermost group that has any."""
    known = None
    for group in groups:
        lines = [*_lines(files, group / "io.max"), *_throttled(files, group)]
        if lines:
            return lines
        if any(files.exists(group / name) for name in ("io.max", "blkio.throttle.read_bps_device")):
            known = UNLIMITED
    return known


def _throttled(files: Files, group: Path) -> Iterator[str]:
    for name in _THROTTLES_V1:
        for line in _lines(files, group / f"blkio.throttle.{name}"):
            yield f"{name} {line}"


def _lines(files: Files, path: Path) -> list[str]:
    return (files.read(path) or "").splitlines()


def _least(groups: list[Path], value: Callable[[Path], _Limit]) -> _Limit:
    return _smallest([value(group) for group in groups])


def _smallest(limits: list[_Limit]) -> _Limit:
    numbers = [limit for limit in limits if isinstance(limit, int | float)]
    return min(numbers) if numbers else UNLIMITED if UNLIMITED in limits else None


def _first(groups: list[Path], value: Callable[[Path], _Value | None]) -> _Value | None:
    return next((found for group in groups if (found := value(group)) is not None), None)
