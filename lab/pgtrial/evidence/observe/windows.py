"""Reads the counters of Windows hosts from the raw performance counters, with one command of PowerShell for each
reading."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

from pgtrial.evidence.observe.system import Snapshot, System, known
from pgtrial.machines.windows import (
    Reply,
    WindowsHost,
    drive_of,
    number,
    parse_reply,
    part,
    parts_in,
    reply_script,
    rows,
    whole,
)
from pgtrial.model.resources import filled, resource

_PER_S = 1e7
"""The number of time units per second in raw counters and in the times of processes: they are in units of 100 ns
(PERF_100NSEC_TIMER; Win32_Process.KernelModeTime)."""

_MOST_OF_HOST = 0.01
"""The largest share of the host's CPUs that readings may use. The start of PowerShell alone takes some tenths of a
second."""

_PARTS = parts_in(resource("look.ps1", __package__))
_DISK = resource("disk.ps1", __package__)
_TRAFFIC = {
    "read_bytes": "DiskReadBytesPersec",
    "reads": "DiskReadsPersec",
    "written_bytes": "DiskWriteBytesPersec",
    "writes": "DiskWritesPersec",
}
_TIMES = {"user_s": "User", "system_s": "Privileged", "idle_s": "Idle", "irq_s": "Interrupt", "softirq_s": "DPC"}
_MODIFIED = "ModifiedPageListBytes"
_CACHED = ("StandbyCacheNormalPriorityBytes", "StandbyCacheReserveBytes", "StandbyCacheCoreBytes", _MODIFIED)
"""The performance counters of Windows whose sum is the memory that caches files, as the Task Manager shows it."""


class Windows(System):
    """Reads a Windows host through PowerShell. `session` is the number of the server process there that serves the
    lab's session."""

    limits_itself = True
    counts_ended = False

    def __init__(self, host: WindowsHost, data_directory: Path | None, session: int | None = None):
        self._host = host
        self._session = session
        drive = drive_of(data_directory)
        disk = {} if drive is None else parts_in(filled(_DISK, drive=drive))
        self._script = reply_script(_PARTS | disk)
        self._next = float("-inf")
        self._last: dict[tuple[int, object], float] = {}
        """The CPU seconds of the server's processes at the last reading, by process id and start time, since Windows
        reuses process ids."""
        self._ended_s = 0.0

    def look(self) -> Snapshot:
        """Returns the host's counters, with one round trip; an empty snapshot if too little time has passed since the
        last reading.

        Raises HostTrouble if the host is not reachable or refuses access.
        """
        if time.monotonic() < self._next:
            return Snapshot()
        values = parse_reply(self._host.powershell(self._script))
        # the CPU time of the PowerShell process, without the work of Windows services for it
        took_s = (number(values.get("own")) or 0.0) / _PER_S
        self._next = time.monotonic() + took_s / (_MOST_OF_HOST * max(1, len(rows(values, "cpu"))))
        carried = [
            count for row in rows(values, "network") if (count := number(row.get("BytesTotalPersec"))) is not None
        ]
        counters = {
            "cpu": _cpu(values),
            "processes": self._server_cpu(values),
            "device": _numbers(part(values, "disk"), _TRAFFIC),
            "network": {"bytes": sum(carried)} if carried else {},
        }
        return Snapshot(
            known(counters),
            known({"memory": _memory(part(values, "memory"))}),
            look_cpu_s=took_s,
            session_cpu_s=None if self._session is None else _own_s(values, self._session),
        )

    def _server_cpu(self, values: Reply) -> dict[str, float]:
        """Returns server_cpu_s, including processes that have ended since the first reading.

        The result is empty if the server process of the lab's session is not found on the host.
        """
        processes = rows(values, "processes")
        parents = {whole(process.get("ProcessId")): whole(process.get("ParentProcessId")) for process in processes}
        postmaster = parents.get(self._session)
        if self._session is None or postmaster is None:
            return {}
        now = {
            (number, process.get("Created")): _cpu_s(process)
            for process in processes
            if (number := whole(process.get("ProcessId"))) is not None and postmaster in (number, parents[number])
        }
        self._ended_s += sum(seconds for process, seconds in self._last.items() if process not in now)
        self._last = now
        return {"server_cpu_s": self._ended_s + sum(now.values())}


def _cpu(values: Reply) -> dict[str, float]:
    """Returns the seconds that all CPUs together spent in each mode; empty unless each CPU reports all modes.

    Windows includes interrupts and deferred procedure calls in the privileged time; here they are separate modes, as on
    Linux.
    """
    names = {mode: f"Percent{name}Time" for mode, name in _TIMES.items()}
    processors = [_numbers(row, names) for row in rows(values, "cpu")]
    if not processors or any(len(times) < len(names) for times in processors):
        return {}
    for times in processors:
        times["system_s"] = max(0.0, times["system_s"] - times["irq_s"] - times["softirq_s"])
    whole_s = {mode: sum(times[mode] for times in processors) / _PER_S for mode in names}
    return whole_s | _numbers(part(values, "system"), {"context_switches": "ContextSwitchesPersec"})


def _memory(values: Reply) -> dict[str, float]:
    memory = _numbers(values, {"available_bytes": "AvailableBytes", "dirty_bytes": _MODIFIED})
    cached = _numbers(values, {name: name for name in _CACHED})
    return memory | ({"cached_bytes": sum(cached.values())} if len(cached) == len(_CACHED) else {})


def _numbers(reply: Reply, names: Mapping[str, str]) -> dict[str, float]:
    """Returns the numbers of a reply under pgtrial's names. `names` maps these to the keys of the reply; missing
    numbers are left out."""
    return {name: count for name, key in names.items() if (count := number(reply.get(key))) is not None}


def _own_s(values: Reply, session: int) -> float | None:
    return next((_cpu_s(row) for row in rows(values, "processes") if whole(row.get("ProcessId")) == session), None)


def _cpu_s(process: Reply) -> float:
    return sum(number(process.get(f"{mode}ModeTime")) or 0.0 for mode in ("Kernel", "User")) / _PER_S
