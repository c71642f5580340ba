"""Collects the CPUs and memory nodes to which a server that pgtrial started is bound, and the names of its environment
variables.

The keys `cpus`, `numa` and `environment` of an arm ask for a binding; these facts show whether the binding is in force.
"""

from __future__ import annotations

from typing import Any

from pgtrial.evidence.collect.files import Files
from pgtrial.evidence.collect.subject import Subject, collector

_ALL_CPUS = "/sys/devices/system/cpu/online"
_BINDING = "bind:"


@collector("cpu", host=True, server=True, files=[_ALL_CPUS])
def cpus(subject: Subject) -> dict[str, Any]:
    """Returns the fact `cpus`: the CPUs on which the server may run, in the notation of /proc, such as `0-3,8`; None if
    it may run on all CPUs."""
    if subject.server_process is None or not subject.ours:
        return {}
    allowed = subject.host.fields(f"/proc/{subject.server_process}/status").get("Cpus_allowed_list")
    return {"cpus": None if allowed == subject.host.read(_ALL_CPUS) else allowed}


@collector("server", host=True, server=True)
def binding(subject: Subject) -> dict[str, Any]:
    """Returns two facts: `numa`, the NUMA nodes to which the server's memory is bound (None if it is not bound), and
    `environment`, the names of the server's environment variables, without their values, which may be secrets.

    The variables are read from the postmaster, since other server processes overwrite theirs with the title that ps
    shows.
    """
    if subject.server_process is None or not subject.ours:
        return {}
    postmaster = subject.host.fields(f"/proc/{subject.server_process}/status").get("PPid")
    variables = subject.host.read(f"/proc/{postmaster}/environ")
    names = (
        None if variables is None else sorted({one.partition("=")[0] for one in variables.split("\0") if "=" in one})
    )
    return {"numa": _nodes(subject.host, subject.server_process), "environment": names}


def _nodes(files: Files, process: int) -> str | None:
    """Returns the NUMA nodes to which the memory of a process is bound: those of its first mapping in numa_maps(5).
    None if the memory is not bound."""
    words = (files.output("head", "-n", "1", f"/proc/{process}/numa_maps") or "").split()
    return next((word.removeprefix(_BINDING) for word in words if word.startswith(_BINDING)), None)
