"""Observes the host of a server: samples during a trial, and counters over its measured part."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path

import psutil

from pgtrial.evidence.collect.subject import shown_directory
from pgtrial.evidence.observe.linux import LocalLinux
from pgtrial.evidence.observe.shell import Shell
from pgtrial.evidence.observe.system import Snapshot, System, whole_cpu
from pgtrial.evidence.observe.views import Counters
from pgtrial.evidence.observe.windows import Windows
from pgtrial.loads.target import Session
from pgtrial.machines.machine import LOCAL, HostTrouble
from pgtrial.machines.windows import AnyMachine, WindowsHost


class HostSampler:
    """Reads the numbers of a server's host, whatever its operating system.

    `data_directory` is the server's; by default the server names it to the lab's `session`. If a server is not `alone`,
    others share the host's numbers with it, and only the server's own processes are counted.
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
        """Returns the numbers now. Raises HostTrouble."""
        snapshot = self.system.look()
        self._looks_s += snapshot.look_cpu_s
        self._session_s = snapshot.session_cpu_s or self._session_s
        if self._alone:
            return snapshot
        of_server = {source: values for source, values in snapshot.counters.items() if source == "processes"}
        return replace(snapshot, counters=of_server, gauges={})

    def cpu_taken_s(self) -> float:
        """Returns the CPU seconds that observing has cost the host so far: reading its numbers, and the server process
        of the lab's session up to the last reading."""
        return self._looks_s + self._session_s


def read_host(
    machine: AnyMachine | None,
    data_directory: Path | None,
    session: Session | None = None,
    *,
    network: bool = False,
    alone: bool = True,
) -> Counters:
    """Returns the counters of the view `host`; empty if the host reports nothing.

    The counters are elapsed_s, cpu_s (of all CPUs together), cpu_busy_s, cpu_steal_s, memory_stall_s (all processes
    waited for memory) and context_switches. For a server of the lab's own, or one that `session` leads to, there are
    server_cpu_s and the traffic of the data's device; lab_cpu_s if the lab runs on that host; and with `network`, for a
    load over a network, the bytes of all interfaces. If the server's host cannot be observed (`machine` is None), the
    lab's host is read. For a server that is not `alone` there are only elapsed_s and server_cpu_s.
    """
    sampler = HostSampler(machine or LOCAL, data_directory, session if machine is not None else None)
    try:
        snapshot = sampler.look()
    except HostTrouble:  # the trial goes on without the numbers
        return {}
    counters = snapshot.counters
    if not alone:
        processes = counters.get("processes")
        return {"host": {"elapsed_s": time.monotonic(), **processes}} if processes else {}
    cpu = whole_cpu(counters.get("cpu", {}))
    if not cpu:
        return {}
    host = {"elapsed_s": time.monotonic(), **cpu}
    if sampler.system.counts_ended:  # the clients' processes end with the load
        host |= counters.get("processes", {})
    if "memory_full_s" in counters.get("pressure", {}):
        host["memory_stall_s"] = counters["pressure"]["memory_full_s"]
    if snapshot.on_labs_machine:
        lab = psutil.Process().cpu_times()
        host["lab_cpu_s"] = lab.user + lab.system
    for source in ("device", "network") if network else ("device",):
        host |= {f"{source}_{name}": value for name, value in counters.get(source, {}).items()}
    return {"host": host}
