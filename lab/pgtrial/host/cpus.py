"""Which CPUs a process may run on. An affinity ends with its process: nothing is left to be undone."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager

_PART = re.compile(r"(\d+)(?:-(\d+))?")


def parse_cpus(text: str) -> frozenset[int]:
    """CPU numbers of a list such as `0-3,6`. Raises ValueError for what is none, or names a CPU that is not usable."""
    chosen: set[int] = set()
    for part in text.split(","):
        found = _PART.fullmatch(part.strip())
        if found is None:
            raise ValueError(f"{text!r} is no list of CPUs; write for example 0-3,6")
        first = int(found[1])
        chosen.update(range(first, int(found[2] or first) + 1))
    if missing := sorted(chosen - usable_cpus()):
        raise ValueError(f"of the CPUs {text} these are not usable here: {', '.join(map(str, missing))}")
    return frozenset(chosen)


def usable_cpus() -> frozenset[int]:
    """The CPUs that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return frozenset(os.sched_getaffinity(0))
    return frozenset(range(os.cpu_count() or 1))


@contextmanager
def running_on(cpus: str | None) -> Iterator[None]:
    """Processes started inside may run on these CPUs only; None: on those of this process. Raises ValueError."""
    if cpus is None:
        yield
        return
    if not hasattr(os, "sched_setaffinity"):
        raise ValueError("this system does not let a process choose its CPUs; leave cpus out")
    former = os.sched_getaffinity(0)
    os.sched_setaffinity(0, parse_cpus(cpus))
    try:
        yield
    finally:
        os.sched_setaffinity(0, former)
