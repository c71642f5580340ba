"""Reads the counters of Linux from the files in /proc and /sys: of this machine's kernel directly, and from the texts
of another machine's files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from glob import glob
from pathlib import Path

from pgtrial.evidence.observe.system import CPU_MODES, Snapshot, System, known
from pgtrial.machines.machine import read_of_others

TICKS_PER_S = float(os.sysconf("SC_CLK_TCK"))
_PRESSURES = {name: f"/proc/pressure/{name}" for name in ("cpu", "memory", "io")}
FILES = ("/proc/stat", "/proc/meminfo", "/proc/net/dev", *_PRESSURES.values())
"""The files of the kernel whose counters are read on every Linux host. The files of the server's processes and of its
disk are read in addition."""

_MEMORY = {"MemAvailable": "available_bytes", "Cached": "cached_bytes", "Dirty": "dirty_bytes"}
_TRAFFIC = {"read_bytes": (2, 512), "reads": (0, 1), "written_bytes": (6, 512), "writes": (4, 1)}
"""For each counter of a block device, the position of its field in the device's file stat, and its unit. A sector in
this file has 512 bytes, whatever the sector size of the device (block/stat.rst in the kernel's documentation)."""


class LocalLinux(System):
    """Reads the Linux kernel of the lab's own machine. `session` is the number of the server process that serves the
    lab's session."""

    def __init__(self, data_directory: Path | None, session: int | None = None):
        self._data = data_directory
        self._session = session

    def look(self) -> Snapshot:
        """Reads the files of the kernel one by one. The CPU time for this is part of the lab process's own time, which
        the lab counts as its own cost anyway, so it is not reported in the snapshot."""
        postmaster = None if self._data is None else _postmaster(self._data)
        device = "none" if self._data is None else _device(self._data)
        paths = [*FILES, device_file(device)]
        if self._session is not None:
            paths += session_files(self._session)
        if postmaster is not None:
            paths += _process_files(postmaster)
        texts = {path: read(path) for path in paths}
        return linux_snapshot(texts, TICKS_PER_S, device, postmaster, self._session, on_labs_machine=True)


def linux_snapshot(
    texts: Mapping[str, str],
    ticks_per_s: float,
    device: str,
    postmaster: int | None,
    session: int | None,
    *,
    look_cpu_s: float = 0.0,
    on_labs_machine: bool,
) -> Snapshot:
    """Returns the counters of a host from the texts of its files, by path. `device` is the device number, major:minor,
    of the disk with the data. `postmaster` and `session` are the numbers of the server's first process and of the
    process that serves the lab's session."""

    def text(path: str) -> str:
        return texts.get(path, "")

    processes = [stat for path, stat in texts.items() if path.endswith("/stat") and path.split("/")[2].isdigit()]
    server_s = None if postmaster is None else group_cpu(postmaster, processes, ticks_per_s)
    counters = {
        "cpu": cpu(text("/proc/stat"), ticks_per_s),
        "processes": {} if server_s is None else {"server_cpu_s": server_s},
        "device": traffic(text(device_file(device))),
        "network": network(text("/proc/net/dev")),
        "pressure": pressure(texts),
    }
    schedstat, of_session = map(text, session_files(session or 0))
    return Snapshot(
        known(counters),
        known({"memory": memory(text("/proc/meminfo"))}),
        look_cpu_s=look_cpu_s,
        session_cpu_s=precise_cpu(schedstat, of_session, ticks_per_s),
        on_labs_machine=on_labs_machine,
    )


def device_file(device: str) -> str:
    """Returns the path of the file with the statistics of a block device, for its device number major:minor."""
    return f"/sys/dev/block/{device}/stat"


def session_files(process: int) -> tuple[str, str]:
    """Returns the paths of the files with the CPU time of a process that has one thread."""
    return f"/proc/{process}/schedstat", f"/proc/{process}/stat"


def client_cpu(engine: int) -> float | None:
    """Returns the CPU seconds that the engine, a process on this machine, has used so far."""
    return process_cpu(read(f"/proc/{engine}/stat"), TICKS_PER_S)


def read(path: str) -> str:
    """Returns the text of a file in this machine's /proc or /sys; empty if the file does not exist or its process has
    ended."""
    try:
        with open(path, "rb", buffering=0) as file:
            return (file.readall() or b"").decode(errors="replace")
    except OSError:
        return ""


def _process_files(parent: int) -> list[str]:
    """Returns the paths of the stat files of a process and its children; of all processes if the kernel does not list
    the children."""
    listed = f"/proc/{parent}/task/{parent}/children"
    if not os.path.exists(listed):
        return glob("/proc/[0-9]*/stat")
    return [f"/proc/{number}/stat" for number in (parent, *read(listed).split())]


def server_memory(data_directory: Path) -> float | None:
    """Returns the memory of a server's processes in bytes, in which shared memory counts once (PSS); None if it is not
    known."""
    postmaster = _postmaster(data_directory)
    if postmaster is None:
        return None
    directories = [path.removesuffix("stat") for path in _process_files(postmaster)]
    sizes = [proportional(read(f"{directory}smaps_rollup")) for directory in directories]
    known = [size for size in sizes if size is not None]
    return sum(known) if known else None


def proportional(smaps_rollup: str) -> float | None:
    """Returns the memory of a process in bytes from the text of its smaps_rollup (PSS: each page is divided by the
    number of processes that map it); None if the process has ended."""
    for line in smaps_rollup.splitlines():
        name, _, rest = line.partition(":")
        if name == "Pss":
            return int(rest.split()[0]) * 1024.0
    return None


def _postmaster(data_directory: Path) -> int | None:
    with suppress(OSError):
        first = read_of_others(data_directory / "postmaster.pid").split("\n", 1)[0]
        return int(first) if first.isdigit() else None
    return None


def _device(directory: Path) -> str:
    """Returns the device number, major:minor, of the device that holds a directory. For file systems on several devices
    (btrfs, ZFS) and without a device (overlay, tmpfs), the kernel has no statistics under this number."""
    try:
        number = os.stat(directory).st_dev
    except OSError:
        return "none"
    return f"{os.major(number)}:{os.minor(number)}"


def cpu(stat: str, ticks_per_s: float) -> dict[str, float]:
    """Returns the seconds that all CPUs together spent in each mode, and the number of context switches, from the text
    of /proc/stat (proc(5)).

    The fields for guests, which follow those of the modes, are not read, since user and nice include them.
    """
    counters: dict[str, float] = {}
    for line in stat.splitlines():
        word, _, rest = line.partition(" ")
        if word == "cpu":
            ticks = zip(CPU_MODES, rest.split(), strict=False)
            counters |= {f"{mode}_s": int(count) / ticks_per_s for mode, count in ticks}
        elif word == "ctxt":
            counters["context_switches"] = float(rest)
    return counters


def memory(meminfo: str) -> dict[str, float]:
    """Returns the bytes of memory that are available, that cache files, and that wait to be written to disk, from the
    text of /proc/meminfo."""
    lines = (line.split() for line in meminfo.splitlines())
    return {_MEMORY[name]: int(words[0]) * 1024.0 for line, *words in lines if (name := line.rstrip(":")) in _MEMORY}


def pressure(texts: Mapping[str, str]) -> dict[str, float]:
    """Returns the seconds in which some or all processes waited for a resource, as `cpu_some_s`, `io_full_s` and so on.

    `texts` has the texts of the files in /proc/pressure, by path. The files count microseconds (accounting/psi.rst in
    the kernel's documentation).
    """
    stalls = {}
    for resource, path in _PRESSURES.items():
        for line in texts.get(path, "").splitlines():
            who, _, rest = line.partition(" ")
            total = rest.rpartition("total=")[2]
            if total.isdigit():
                stalls[f"{resource}_{who}_s"] = int(total) / 1e6
    return stalls


def traffic(stat: str) -> dict[str, float]:
    """Returns read_bytes, reads, written_bytes and writes of a block device from the text of its file stat in /sys;
    empty if there is no such file."""
    words = stat.split()
    if len(words) < 7:
        return {}
    return {name: float(int(words[index]) * unit) for name, (index, unit) in _TRAFFIC.items()}


def network(dev: str) -> dict[str, float]:
    """Returns the bytes that all network interfaces together have sent and received, from the text of /proc/net/dev.
    For the loopback interface only the sent bytes count, since it receives the same bytes."""
    carried = []
    for line in dev.splitlines():
        name, parted, rest = line.partition(":")
        words = rest.split()
        if parted and len(words) >= 9:
            received, sent = int(words[0]), int(words[8])
            carried.append(sent if name.strip() == "lo" else received + sent)
    return {"bytes": float(sum(carried))} if carried else {}


def process_cpu(stat: str, ticks_per_s: float, *, with_ended: bool = False) -> float | None:
    """Returns the CPU seconds of a process, in user and system mode, from the text of its /proc/PID/stat (proc(5)).
    With `with_ended`, they include those of its children that have ended."""
    words = stat.rpartition(")")[2].split()
    if len(words) < 15:
        return None
    return sum(map(int, words[11 : 15 if with_ended else 13])) / ticks_per_s


def group_cpu(postmaster: int, stats: Iterable[str], ticks_per_s: float) -> float | None:
    """Returns the CPU seconds of a server: of the postmaster, of its child processes, and of child processes that have
    ended.

    `stats` has the texts of /proc/PID/stat of at least these processes. Returns None if that of the postmaster is
    missing.
    """
    of_postmaster, children = None, 0.0
    for stat in stats:
        number, _, rest = stat.partition(" ")
        words = rest.rpartition(")")[2].split()
        if number == str(postmaster):
            of_postmaster = process_cpu(stat, ticks_per_s, with_ended=True)
        elif len(words) > 1 and words[1] == str(postmaster):
            children += process_cpu(stat, ticks_per_s) or 0.0
    return None if of_postmaster is None else of_postmaster + children


def precise_cpu(schedstat: str, stat: str, ticks_per_s: float) -> float | None:
    """Returns the CPU seconds of a process with one thread: from the text of its schedstat, which counts nanoseconds,
    or else from that of its stat."""
    words = schedstat.split()
    if words and words[0].isdigit() and int(words[0]):
        return int(words[0]) / 1e9
    return process_cpu(stat, ticks_per_s)
