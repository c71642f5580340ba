"""What the kernel of the server's host counts while a trial is measured: CPU time by whom, stalls, traffic."""

from __future__ import annotations

import time
from pathlib import Path

import psutil

from pgtrial.evidence.collect.place import shown_directory
from pgtrial.evidence.observe import kernel
from pgtrial.evidence.observe.counters import Counters, Session
from pgtrial.evidence.observe.host_sampler import HostLook, LocalLook, is_linux
from pgtrial.evidence.observe.remote_sampler import RemoteLook
from pgtrial.evidence.observe.windows_sampler import WindowsLook
from pgtrial.machines.machine import LOCAL, HostTrouble
from pgtrial.machines.windows import AnyMachine, WindowsHost


def host_look(machine: AnyMachine, data_directory: Path | None, session: Session | None = None) -> HostLook:
    """Looks at the host of a server: of its data directory, by default as the `session` of the lab is told it."""
    if data_directory is None and session is not None and machine is not LOCAL:
        data_directory = shown_directory(session)
    process = None if session is None else session.info.backend_pid
    if is_linux(machine):
        return LocalLook(data_directory, process)
    if isinstance(machine, WindowsHost):
        return WindowsLook(machine, data_directory, process)
    return RemoteLook(machine, data_directory, process)


def read_host(
    machine: AnyMachine | None, data_directory: Path | None, session: Session | None = None, *, network: bool = False
) -> Counters:
    """The view `host` in seconds, none where nothing is told: elapsed_s, cpu_s (of all CPUs together), cpu_busy_s,
    cpu_steal_s, memory_stall_s (all processes waited for memory), context_switches, and, for a server of the lab's own
    or one that the lab's `session` leads to, server_cpu_s and the traffic of its data's device; lab_cpu_s where the lab
    is on that host as well. With `network`, the bytes that all interfaces carried, where the load goes over one. Where
    the server's host cannot be looked into (None), it is about the lab's.
    """
    looking = host_look(machine or LOCAL, data_directory, session if machine is not None else None)
    try:
        seen = looking.look().counters
    except HostTrouble:  # a host that cannot be asked now has told nothing; the trial goes on
        return {}
    cpu = kernel.whole_cpu(seen.get("cpu", {}))
    if not cpu:
        return {}
    found = {"elapsed_s": time.monotonic(), **cpu}
    if looking.counts_ended:  # the clients' processes end with the load
        found |= seen.get("processes", {})
    if "memory_full_s" in seen.get("pressure", {}):
        found["memory_stall_s"] = seen["pressure"]["memory_full_s"]
    if looking.here:
        own = psutil.Process().cpu_times()
        found["lab_cpu_s"] = own.user + own.system
    found |= {f"device_{name}": value for name, value in seen.get("device", {}).items()}
    if network:
        found |= {f"network_{name}": value for name, value in seen.get("network", {}).items()}
    return {"host": found}
