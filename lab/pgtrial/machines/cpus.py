"""Determines which CPUs and NUMA nodes a process may use, and restricts new processes to some CPUs. A CPU affinity ends
with its process, so nothing has to be undone."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pgtrial.machines.machine import LOCAL, HostError, Machine
from pgtrial.model.quoting import quoted

_PART = re.compile(r"(\d+)(?:-(\d+))?")
_STATUS = Path("/proc/self/status")
_MEMORY = re.compile(r"^Mems_allowed_list:\s*(\S+)$", re.MULTILINE)
_ONLINE = Path("/sys/devices/system/cpu/online")
_ALLOWED = re.compile(r"^Cpus_allowed_list:\s*(\S+)$", re.MULTILINE)


def parse_numbers(text: str, usable: frozenset[int], what: str = "CPUs") -> frozenset[int]:
    """Returns the numbers of CPUs or NUMA nodes in a list such as `0-3,6`.

    Raises ValueError if the text is not such a list, or has a number that is not in `usable`. `what` names the numbers
    in the error message.
    """
    chosen = listed_numbers(text, what)
    if missing := sorted(chosen - usable):
        raise ValueError(
            f"of the {what} {text} these are not usable here: {', '.join(map(str, missing))}; leave them out"
        )
    return chosen


def usable_cpus(machine: Machine) -> frozenset[int]:
    """Returns the CPUs on which the lab's processes may run. These are all CPUs if the system has no limit that can be
    read. Raises HostError."""
    texts = machine.read_many([_STATUS, _ONLINE])
    if allowed := _ALLOWED.search(texts.get(_STATUS, "")):
        # Cpus_allowed_list also has CPUs that are offline, for example half of them if SMT is off
        return listed_numbers(allowed[1]) & listed_numbers(texts.get(_ONLINE, allowed[1]))
    return frozenset(range(int(machine.tool(["sysctl", "-n", "hw.ncpu"]))))


def usable_nodes(machine: Machine) -> frozenset[int]:
    """Returns the NUMA nodes whose memory the lab's processes may use. Raises HostError if the system does not report
    them."""
    allowed = _MEMORY.search(machine.read_many([_STATUS]).get(_STATUS, ""))
    if allowed is None:
        raise HostError(
            "this system does not report which NUMA nodes may be used (/proc/self/status has no Mems_allowed_list)"
        )
    return listed_numbers(allowed[1])


@contextmanager
def running_on(cpus: str | None) -> Iterator[None]:
    """Restricts the processes that are started on this machine within the context to these CPUs. With None, they may
    use the same CPUs as the lab. Raises ValueError if the CPUs cannot be used."""
    if cpus is None:
        yield
        return
    if not hasattr(os, "sched_setaffinity"):
        raise ValueError("on this system a process cannot be bound to CPUs; leave cpus out")
    former = os.sched_getaffinity(0)
    os.sched_setaffinity(0, parse_numbers(cpus, usable_cpus(LOCAL)))
    try:
        yield
    finally:
        os.sched_setaffinity(0, former)


def listed_numbers(text: str, what: str = "CPUs") -> frozenset[int]:
    """Returns the numbers in a list such as `0-3,6`, without checking whether a machine has such CPUs. Raises
    ValueError if the text is not such a list; `what` names the numbers in the error message."""
    numbers: set[int] = set()
    for part in text.split(","):
        match = _PART.fullmatch(part.strip())
        if match is None:
            raise ValueError(f"{quoted(text)} is no list of {what}; write for example 0-3,6")
        first = int(match[1])
        numbers.update(range(first, int(match[2] or first) + 1))
    return frozenset(numbers)
