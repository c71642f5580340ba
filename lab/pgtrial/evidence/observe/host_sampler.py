"""Looks at the host of a server, and what its kernel counts now; this machine's files are read one by one."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from glob import glob
from pathlib import Path
from typing import Protocol

from pgtrial.evidence.observe import kernel
from pgtrial.evidence.observe.kernel import Values
from pgtrial.machines.machine import LOCAL
from pgtrial.machines.windows import AnyMachine

TICKS_PER_S = float(os.sysconf("SC_CLK_TCK")) if hasattr(os, "sysconf") else 100.0
PRESSURES = ("cpu", "memory", "io")


@dataclass(frozen=True)
class Seen:
    """What one look saw. Sources of counters, which only grow: cpu, processes, device, network, pressure; of gauges:
    memory. What the host does not tell is not in it."""

    counters: Values = field(default_factory=dict)
    gauges: Values = field(default_factory=dict)


class HostLook(Protocol):
    """Looks again and again."""

    here: bool
    """Whether it is the machine that the lab runs on."""

    unknown: str | None
    """A system of which nothing is known to be read."""

    paced: bool
    """Whether it keeps its own cost low by seeing nothing now and then; else looks are made more rarely by who asks."""

    counts_ended: bool
    """Whether the CPU time of the server's processes holds that of all which have ended."""

    def look(self) -> Seen:
        """One look. Raises HostTrouble."""
        ...

    def taken_s(self) -> float | None:
        """CPU seconds that looking has taken of the host, so far as is known, those of the lab's session included."""
        ...


class LocalLook:
    """At the Linux kernel under the lab itself."""

    here = True
    unknown: str | None = None
    paced = False
    counts_ended = True

    def __init__(self, data_directory: Path | None, session: int | None = None):
        self._data = data_directory
        self._session = session
        self._postmaster = None if data_directory is None else _postmaster(data_directory)

    def look(self) -> Seen:
        counters = {
            "cpu": kernel.cpu(read("/proc/stat"), TICKS_PER_S),
            "processes": self._server(),
            "device": {} if self._data is None else kernel.traffic(read(f"/sys/dev/block/{_device(self._data)}/stat")),
            "network": kernel.network(read("/proc/net/dev")),
            "pressure": kernel.pressure({name: read(f"/proc/pressure/{name}") for name in PRESSURES}),
        }
        return Seen(known(counters), known({"memory": kernel.memory(read("/proc/meminfo"))}))

    def taken_s(self) -> float | None:
        """CPU seconds of the lab's session; the lab counts its own."""
        if self._session is None:
            return None
        home = f"/proc/{self._session}"
        return kernel.precise_cpu(read(f"{home}/schedstat"), read(f"{home}/stat"), TICKS_PER_S)

    def _server(self) -> dict[str, float]:
        if self._postmaster is None:
            return {}
        seconds = kernel.group_cpu(self._postmaster, map(read, _stats(self._postmaster)), TICKS_PER_S)
        return {} if seconds is None else {"server_cpu_s": seconds}


def known(values: Values) -> Values:
    """The sources that tell anything."""
    return {source: named for source, named in values.items() if named}


def client_cpu(engine: int) -> float | None:
    """CPU seconds of the engine, a process of this machine."""
    return kernel.process_cpu(read(f"/proc/{engine}/stat"), TICKS_PER_S)


def read(path: str) -> str:
    """A file of this machine's kernel; empty where there is none, or its process is gone."""
    try:
        with open(path, "rb", buffering=0) as file:
            return (file.readall() or b"").decode(errors="replace")
    except OSError:
        return ""


def is_linux(machine: AnyMachine) -> bool:
    """Whether it is this machine, with a kernel that shows itself in /proc."""
    return machine is LOCAL and os.path.exists("/proc/stat")


def _stats(parent: int) -> list[str]:
    """The files about a process and its children, or about all where the kernel lists no children."""
    listed = f"/proc/{parent}/task/{parent}/children"
    if not os.path.exists(listed):
        return glob("/proc/[0-9]*/stat")
    return [f"/proc/{number}/stat" for number in (parent, *read(listed).split())]


def _postmaster(data_directory: Path) -> int | None:
    first = read(str(data_directory / "postmaster.pid")).split("\n", 1)[0]
    return int(first) if first.isdigit() else None


def _device(directory: Path) -> str:
    """major:minor of the device below a directory; of volumes of several devices (btrfs, zfs) and file systems without
    one (overlay, tmpfs) the kernel has no statistics."""
    try:
        number = os.stat(directory).st_dev
    except OSError:
        return "none"
    return f"{os.major(number)}:{os.minor(number)}"
