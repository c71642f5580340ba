"""Collects the resource limits of the server's control groups (cgroups, versions 1 and 2). A limit that is not set is
"unlimited"."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from pgtrial.evidence.collect.files import Files
from pgtrial.evidence.collect.subject import Subject, collector

UNLIMITED = "unlimited"

_NO_LIMIT_V1 = 2**60
"""The number of bytes from which a limit of version 1 means "unlimited". The kernel then shows the largest multiple of
the page size below 2^63."""

_MEMORY = ("memory.max", "memory.high", "memory.limit_in_bytes")
_CPUSET = ("cpuset.cpus.effective", "cpuset.effective_cpus", "cpuset.cpus")
_THROTTLES_V1 = ("read_bps_device", "write_bps_device", "read_iops_device", "write_iops_device")
_IO = {"io.max": "", **{f"blkio.throttle.{name}": f"{name} " for name in _THROTTLES_V1}}
"""The names of the files with limits for input and output. The values of the dictionary are put before each line of the
file in the fact `io`: version 1 has several files whose lines look the same, and the prefix says which limit a line
is."""
_FILES = (*_MEMORY, "memory.swap.max", "cpu.max", "cpu.cfs_*_us", *_CPUSET, *_IO)
_Limit = float | str | None


@collector("limits", host=True)
def limits(subject: Subject) -> dict[str, Any]:
    """Returns the limits of the server. Without a server, these are the limits of the lab itself, if the subject is the
    lab's machine."""
    files, process = subject.host, subject.server_process
    if process is None and not files.local:
        return {}
    groups = files.read(f"/proc/{process or 'self'}/cgroup")
    return {} if groups is None else limits_of(files, groups, Path("/sys/fs/cgroup"))


def limits_of(files: Files, groups: str, root: Path) -> dict[str, Any]:
    """Returns the limits of a process from the text of its /proc/PID/cgroup (cgroups(7)) and from the tree of control
    groups mounted at `root`.

    memory_mb and swap_mb are in MB, cpus is a number of CPUs, cpuset a list of CPUs in the kernel's notation, and io
    has the lines of the kernel's files.
    """
    groups_of = _groups_of(files, groups, root)
    read = files.read
    return {
        "memory_mb": _least(_bytes(read(group / name)) for group in groups_of("memory") for name in _MEMORY),
        "swap_mb": _least(_bytes(read(group / "memory.swap.max")) for group in groups_of("memory")),
        "cpus": _least(_cpus(files, group) for group in groups_of("cpu")),
        "cpuset": next(filter(None, (read(group / name) for group in groups_of("cpuset") for name in _CPUSET)), None),
        "io": _io(files, groups_of("blkio")),
    }


def _groups_of(files: Files, groups: str, root: Path) -> Callable[[str], list[Path]]:
    """Returns a function that finds the directories with the limits of a process. It takes the name that a controller,
    such as `memory`, has in version 1 of control groups, and returns the directories of the process's control group and
    of all groups above it, whose limits apply too.

    The innermost directory comes first. A controller that has no line of its own in `groups` is in the tree of version
    2.
    """
    paths: dict[str, str] = {}
    for line in groups.splitlines():
        _, controllers, path = line.split(":", 2)
        paths |= dict.fromkeys(controllers.split(","), path)

    tops = {controller: root / controller for controller in paths if controller}
    ends = {top / paths[controller].lstrip("/") for controller, top in tops.items()}
    ends |= {top / paths[""].lstrip("/") for top in (root, root / "unified") if "" in paths}
    at_hand = {group for end in ends for group in (end, *end.parents) if group.is_relative_to(root)}
    files.fetch(root / "unified", *sorted(ends), *(f"{group}/{part}" for group in sorted(at_hand) for part in _FILES))

    def groups_of(controller: str) -> list[Path]:
        if controller in paths:
            top, path = tops[controller], paths[controller]
        elif "" in paths:
            top, path = (root / "unified" if files.exists(root / "unified") else root), paths[""]
        else:
            return []
        # in a container without a cgroup namespace of its own, the path is that of the host and does not exist below
        # the mount
        inner = top / path.lstrip("/") if files.exists(top / path.lstrip("/")) else top
        return [group for group in (inner, *inner.parents) if group == top or top in group.parents]

    return groups_of


def _bytes(text: str | None) -> _Limit:
    """Returns a memory limit in MB from the kernel's text in bytes; None if there is no text."""
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


def _io(files: Files, groups: list[Path]) -> list[str] | str | None:
    """Returns the limits for input and output of the innermost group that has any."""
    known = None
    for group in groups:
        texts = {prefix: files.read(group / name) or "" for name, prefix in _IO.items()}
        lines = [prefix + line for prefix, text in texts.items() for line in text.splitlines()]
        if lines:
            return lines
        if any(files.exists(group / name) for name in ("io.max", "blkio.throttle.read_bps_device")):
            known = UNLIMITED
    return known


def _least(limits: Iterable[_Limit]) -> _Limit:
    known = [limit for limit in limits if limit is not None]
    return min((limit for limit in known if not isinstance(limit, str)), default=UNLIMITED if known else None)
