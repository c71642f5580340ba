"""What the host's kernel counts while a trial is measured: CPU time by whom, stalls, traffic; Linux only."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Literal

import psutil

from pgtrial.observe.counters import Counters

TICKS_PER_S = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100

_SECTOR = 512
"""Bytes of a sector in a block device's statistics, whatever the device's own (the kernel's block/stat.rst)."""


def read_host(data_directory: Path | None, *, network: bool = False) -> Counters:
    """The view `host` in seconds, none where there is no /proc/stat: elapsed_s, cpu_s (of all CPUs together),
    cpu_busy_s, cpu_steal_s, memory_stall_s (all processes waited for memory), lab_cpu_s, context_switches, and, for a
    server of the lab's own, server_cpu_s and the traffic of its data's device. With `network`, the bytes that all
    interfaces carried, where the load goes over one.
    """
    cpu = cpu_times(Path("/proc/stat"))
    if cpu is None:
        return {}
    found = {"elapsed_s": time.monotonic(), **cpu}
    stall_s = stalled(Path("/proc/pressure/memory"), "full")
    if stall_s is not None:
        found["memory_stall_s"] = stall_s
    own = psutil.Process().cpu_times()
    found["lab_cpu_s"] = own.user + own.system
    server = _server_cpu(data_directory) if data_directory is not None else None
    if server is not None:
        found["server_cpu_s"] = server
    if data_directory is not None:
        found |= {f"device_{name}": value for name, value in device_traffic(data_directory).items()}
    if network:
        found |= {f"network_{name}": value for name, value in network_bytes().items()}
    return {"host": found}


def device_traffic(directory: Path) -> dict[str, float]:
    """read_bytes, reads, written_bytes, writes of the block device below a directory; empty where it has none.

    Volumes of several devices (btrfs, zfs) and file systems without one (overlay, tmpfs) are such.
    """
    try:
        device = os.stat(directory).st_dev
        words = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}/stat").read_text().split()
        reads, sectors_read, writes, sectors_written = (int(words[place]) for place in (0, 2, 4, 6))
    except (OSError, ValueError, IndexError):
        return {}
    return {
        "read_bytes": float(sectors_read * _SECTOR),
        "reads": float(reads),
        "written_bytes": float(sectors_written * _SECTOR),
        "writes": float(writes),
    }


def network_bytes() -> dict[str, float]:
    """bytes: of all interfaces, each packet once; what the loopback interface sends it receives as well."""
    total = 0.0
    for name, counted in psutil.net_io_counters(pernic=True).items():
        total += counted.bytes_sent if name == "lo" else counted.bytes_sent + counted.bytes_recv
    return {"bytes": total}


def cpu_times(stat: Path) -> dict[str, float] | None:
    """cpu_s, cpu_busy_s, cpu_steal_s of the first line of /proc/stat (proc(5)), and context_switches. None where it is
    not so.

    The line has user nice system idle iowait irq softirq steal, in ticks; the times of guests, which follow, are part
    of user and nice.
    """
    try:
        lines = stat.read_text().splitlines()
        words = lines[0].split()
        user, nice, system, idle, iowait, irq, softirq, steal = (int(word) / TICKS_PER_S for word in words[1:9])
        switches = next(float(line.split()[1]) for line in lines if line.startswith("ctxt "))
    except (OSError, ValueError, IndexError, StopIteration):
        return None
    busy = user + nice + system + irq + softirq
    whole = busy + idle + iowait + steal
    return {"cpu_s": whole, "cpu_busy_s": busy, "cpu_steal_s": steal, "context_switches": switches}


def stalled(pressure: Path, line: Literal["some", "full"]) -> float | None:
    """Seconds in total for which some, or all, processes waited: of a pressure file, there in microseconds (the
    kernel's accounting/psi.rst). None where there is none."""
    try:
        for told in pressure.read_text().splitlines():
            if told.startswith(line):
                return int(told.rpartition("total=")[2]) / 1e6
    except (OSError, ValueError):
        return None
    return None


def _server_cpu(data_directory: Path) -> float | None:
    """CPU time of the postmaster, of its processes, and of those that have ended."""
    try:
        postmaster = psutil.Process(int((data_directory / "postmaster.pid").read_text().split("\n", 1)[0]))
        times = postmaster.cpu_times()
        total = float(times.user + times.system + times.children_user + times.children_system)
        children = postmaster.children()
    except (OSError, ValueError, psutil.Error):
        return None
    for child in children:
        try:
            own = child.cpu_times()
        except psutil.Error:  # ended since; the postmaster has its time at the next reading
            continue
        total += own.user + own.system
    return total
