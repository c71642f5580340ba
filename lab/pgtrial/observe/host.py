"""What the host's kernel counts while a trial is measured: CPU time by whom, and stalls; Linux only."""

from __future__ import annotations

import os
import time
from pathlib import Path

import psutil

from pgtrial.observe.counters import Counters

_TICKS_PER_S = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100


def read_host(data_directory: Path | None) -> Counters:
    """The view `host` in seconds, none where there is no /proc/stat: elapsed_s, cpu_s (of all CPUs together),
    cpu_busy_s, cpu_steal_s, memory_stall_s (all processes waited for memory), lab_cpu_s, and, for a server of the
    lab's own, server_cpu_s.
    """
    cpu = _cpu(Path("/proc/stat"))
    if cpu is None:
        return {}
    found = {"elapsed_s": time.monotonic(), **cpu}
    stalled = _stalled(Path("/proc/pressure/memory"))
    if stalled is not None:
        found["memory_stall_s"] = stalled
    own = psutil.Process().cpu_times()
    found["lab_cpu_s"] = own.user + own.system
    server = _server_cpu(data_directory) if data_directory is not None else None
    if server is not None:
        found["server_cpu_s"] = server
    return {"host": found}


def _cpu(stat: Path) -> dict[str, float] | None:
    """The first line of /proc/stat (proc(5)): user nice system idle iowait irq softirq steal, in ticks; the times of
    guests, which follow, are part of user and nice."""
    try:
        words = stat.read_text().split("\n", 1)[0].split()
        user, nice, system, idle, iowait, irq, softirq, steal = (int(word) / _TICKS_PER_S for word in words[1:9])
    except (OSError, ValueError):
        return None
    busy = user + nice + system + irq + softirq
    return {"cpu_s": busy + idle + iowait + steal, "cpu_busy_s": busy, "cpu_steal_s": steal}


def _stalled(pressure: Path) -> float | None:
    """The total of the line `full` of a pressure file, there in microseconds (the kernel's accounting/psi.rst)."""
    try:
        for line in pressure.read_text().splitlines():
            if line.startswith("full"):
                return int(line.rpartition("total=")[2]) / 1e6
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
