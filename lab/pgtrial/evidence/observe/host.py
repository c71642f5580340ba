"""Reads the counters of a server's host (CPU, memory, disk, network): repeatedly during a trial, and at the begin and
end of the trial's measured phase."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path

import psutil

from pgtrial.evidence.collect.subject import shown_directory
from pgtrial.evidence.observe.linux import LocalLinux
from pgtrial.evidence.observe.shell import Shell
from pgtrial.evidence.observe.system import Snapshot, System, known, whole_cpu
from pgtrial.evidence.observe.views import Counters
from pgtrial.evidence.observe.windows import Windows
from pgtrial.loads.target import Session
from pgtrial.machines.machine import LOCAL, HostTrouble
from pgtrial.machines.windows import AnyMachine, WindowsHost

WHOLE_HOST = "whole host"
"""The key of the counters of a whole host that several servers of the study use at the same time."""


class HostSampler:
    """Reads the counters of a server's host, on any operating system that pgtrial can observe.

    If `data_directory` is None, a server on another machine is asked for it in the lab's `session`. `alone` is false if
    the study loads other servers on the same host at the same time. The counters of the whole host would then include
    these servers, so only the CPU time of the server's own processes is counted.
    """

    def __init__(
        self, machine: AnyMachine, data_directory: Path | None, session: Session | None = None, *, alone: bool = True
    ):
        self._alone = alone
        if data_directory is None and session is not None and machine is not LOCAL:
            data_directory = shown_directory(session)
        process = None if session is None else session.info.backend_pid
        self.system: System
        if machine is LOCAL and os.path.exists("/proc/stat"):
            self.system = LocalLinux(data_directory, process)
        elif isinstance(machine, WindowsHost):
            self.system = Windows(machine, data_directory, process)
        else:
            self.system = Shell(machine, data_directory, process)
        self._looks_s = 0.0
        self._session_s = 0.0

    def look(self) -> Snapshot:
        """Reads the host once, and returns the result. Raises HostTrouble if the host is not reachable or refuses
        access."""
        snapshot = self.system.look()
        self._looks_s += snapshot.look_cpu_s
        self._session_s = snapshot.session_cpu_s or self._session_s
        if self._alone:
            return snapshot
        of_server = {source: values for source, values in snapshot.counters.items() if source == "processes"}
        return replace(snapshot, counters=of_server, gauges={})

    def cpu_taken_s(self) -> float:
        """Returns the CPU seconds that observing has cost the host up to the last reading: for reading the host's
        counters, and for the server process that serves the lab's session."""
        return self._looks_s + self._session_s


def read_host(
    machine: AnyMachine | None,
    data_directory: Path | None,
    session: Session | None = None,
    *,
    network: bool = False,
    alone: bool = True,
) -> Counters:
    """Returns the counters of the host, under the key `host`; an empty result if the host reports none.

    The counters are elapsed_s, cpu_s (the CPU time of all modes and CPUs together), cpu_busy_s, cpu_steal_s,
    memory_stall_s (the time in which all processes waited for memory) and context_switches. If the server's processes
    and its device are known, there are server_cpu_s and the traffic of the device that holds the data; lab_cpu_s if the
    lab runs on that host; and with `network`, for a load over a network, the bytes of all interfaces. If the server's
    host cannot be observed (`machine` is None), these are the counters of the lab's host.

    If the server is not `alone`, because loads of other arms take turns with its own, there are only elapsed_s and
    server_cpu_s under `host`. The counters of CPU time and memory that belong to all arms together, with elapsed_s, are
    then under WHOLE_HOST.
    """
    sampler = HostSampler(machine or LOCAL, data_directory, session if machine is not None else None)
    try:
        snapshot = sampler.look()
    except HostTrouble:  # the trial goes on without these counters
        return {}
    counters, host = snapshot.counters, _whole_host(snapshot)
    processes = counters.get("processes", {})
    if not alone:
        if not sampler.system.counts_ended:  # the work of processes that served the load would count as that of others
            host.pop("cpu_busy_s", None)
        of_server = {"elapsed_s": time.monotonic(), **processes} if processes else {}
        return known({"host": of_server, WHOLE_HOST: host})
    if not host:
        return {}
    if sampler.system.counts_ended:  # otherwise the processes that served the load would be missing
        host |= processes
    for source in ("device", "network") if network else ("device",):
        host |= {f"{source}_{name}": value for name, value in counters.get(source, {}).items()}
    return {"host": host}


def _whole_host(snapshot: Snapshot) -> dict[str, float]:
    """Returns the counters of CPU time and memory of the whole host, with the moment; empty if the host reports no CPU
    time."""
    cpu = whole_cpu(snapshot.counters.get("cpu", {}))
    if not cpu:
        return {}
    host = {"elapsed_s": time.monotonic(), **cpu}
    pressure = snapshot.counters.get("pressure", {})
    if "memory_full_s" in pressure:
        host["memory_stall_s"] = pressure["memory_full_s"]
    if snapshot.on_labs_machine:
        lab = psutil.Process().cpu_times()
        host["lab_cpu_s"] = lab.user + lab.system
    return host
