"""Which CPUs a process may run on. An affinity ends with its process: nothing is left to be undone."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pgtrial.machines.machine import LOCAL, Machine

_PART = re.compile(r"(\d+)(?:-(\d+))?")
_STATUS = Path("/proc/self/status")
_ONLINE = Path("/sys/devices/system/cpu/online")
_ALLOWED = re.compile(r"^Cpus_allowed_list:\s*(\S+)$", re.MULTILINE)


def parse_cpus(text: str, usable: frozenset[int]) -> frozenset[int]:
    """CPU numbers of a list such as `0-3,6`. Raises ValueError for what is none, or names a CPU that is not usable."""
    chosen = cpu_numbers(text)
    if missing := sorted(chosen - usable):
        raise ValueError(f"of the CPUs {text} these are not usable here: {', '.join(map(str, missing))}")
    return chosen


def usable_cpus(machine: Machine) -> frozenset[int]:
    """The CPUs that a process of ours on the machine may run on; all, where the system does not tell. HostError."""
    found = machine.read_many([_STATUS, _ONLINE])
    if told := _ALLOWED.search(found.get(_STATUS, "")):
        # Linux allows CPUs that are off too, as half of them are where SMT is off
        return cpu_numbers(told[1]) & cpu_numbers(found.get(_ONLINE, told[1]))
    return frozenset(range(int(machine.tool(["sysctl", "-n", "hw.ncpu"]))))


@contextmanager
def running_on(cpus: str | None) -> Iterator[None]:
    """What is started inside, on this machine, may run on these CPUs only; None: on those of the lab. ValueError."""
    if cpus is None:
        yield
        return
    if not hasattr(os, "sched_setaffinity"):
        raise ValueError("this system does not let a process choose its CPUs; leave cpus out")
    former = os.sched_getaffinity(0)
    os.sched_setaffinity(0, parse_cpus(cpus, usable_cpus(LOCAL)))
    try:
        yield
    finally:
        os.sched_setaffinity(0, former)


def cpu_numbers(text: str) -> frozenset[int]:
    """CPU numbers of a list such as `0-3,6`, of whatever machine. Raises ValueError for what is none."""
    numbers: set[int] = set()
    for part in text.split(","):
        found = _PART.fullmatch(part.strip())
        if found is None:
            raise ValueError(f"{text!r} is no list of CPUs; write for example 0-3,6")
        first = int(found[1])
        numbers.update(range(first, int(found[2] or first) + 1))
    return frozenset(numbers)
