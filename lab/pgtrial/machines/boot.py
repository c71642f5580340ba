"""Which start of its kernel a machine is in."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from pathlib import Path

from pgtrial.machines.machine import TOOLS, Machine
from pgtrial.model.resources import filled, resource

BOOT_ID = "/proc/sys/kernel/random/boot_id"
"""Another one for each start of a Linux kernel (random(4)), the same in all its containers."""

ASK_START = filled(resource("start.sh", __package__), tools=TOOLS, boot_id=BOOT_ID)
"""Has a shell tell which start it is: by a name that each start has for itself on Linux, newer FreeBSD (its bytes are
printed by -x alone) and macOS; elsewhere by kern.boottime and the time, which a step of the clock changes alike."""

_SINCE = re.compile(r"\{ sec = (\d+),")
"""FreeBSD, DragonFly: `{ sec = 1778631299, usec = 929665 } Wed May 13 02:14:59 2026`."""


def boot_id(machine: Machine) -> str | None:
    """What is different after each start of the machine, where a file tells it."""
    try:
        return machine.read_text(Path(BOOT_ID)).strip()
    except OSError:
        return None


@dataclass(frozen=True)
class Start:
    """One start of a machine as it told at a moment of the lab's clock: by its name, or by how long ago it was."""

    name: str
    age_s: int | None = None
    seen_s: float = 0.0

    def is_same(self, later: Start) -> bool:
        """Whether the machine has not been started anew between this and what it told later.

        An age grows by the time that has passed; after another start it is less than that time. The limit is half of
        the first age above that time, for clocks that run unlike.
        """
        if self.age_s is None or later.age_s is None:
            return self.name == later.name
        return later.age_s >= later.seen_s - self.seen_s + self.age_s / 2


def parse_start(told: str, seen_s: float) -> Start | None:
    """What ASK_START printed; None where the system tells nothing."""
    name, _, now = " ".join(told.split()).partition(" now ")
    if (since := _SINCE.match(name)) is not None:
        return Start(name, int(now) - int(since[1]), seen_s)
    return Start(name) if name else None


def now_s() -> float:
    """The lab's clock for ages: it goes on while the machine sleeps, where the system has such a one."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))
