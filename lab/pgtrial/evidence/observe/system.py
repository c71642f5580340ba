"""What a look at a host returns, whichever operating system it runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

Values = dict[str, dict[str, float]]
"""Source -> name -> value."""

CPU_MODES = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
_IDLE = ("idle", "iowait")


@dataclass(frozen=True)
class Snapshot:
    """What one look at a host found; what the host does not report is absent.

    Sources of counters, which only grow: cpu, processes, device, network, pressure; of gauges: memory.
    """

    counters: Values = field(default_factory=dict)
    gauges: Values = field(default_factory=dict)
    look_cpu_s: float = 0.0
    """CPU time that this look took of the host, where another process than the lab made it."""
    session_cpu_s: float | None = None
    """CPU time of the process that serves the lab's session, since its start."""
    on_labs_machine: bool = False
    unsupported: str | None = None
    """The name of a system that cannot be looked at."""


class System(Protocol):
    """How one operating system shows its numbers."""

    limits_itself: bool
    """Whether it limits its own cost by returning nothing now and then; otherwise the caller looks more rarely."""

    counts_ended: bool
    """Whether the CPU time of the server's processes includes all that ended before the first look."""

    def look(self) -> Snapshot:
        """The numbers now. Raises HostTrouble."""


def known(values: Values) -> Values:
    """The sources that have numbers."""
    return {source: named for source, named in values.items() if named}


def whole_cpu(modes: Mapping[str, float]) -> dict[str, float]:
    """cpu_s, cpu_busy_s, and what is known of cpu_steal_s and context_switches; nothing from nothing."""
    seconds = {mode: modes[f"{mode}_s"] for mode in CPU_MODES if f"{mode}_s" in modes}
    if not seconds:
        return {}
    stolen = seconds.get("steal", 0.0)
    whole = sum(seconds.values())
    idle = sum(seconds.get(mode, 0.0) for mode in _IDLE)
    found = {"cpu_s": whole, "cpu_busy_s": whole - idle - stolen}
    if "steal" in seconds:
        found["cpu_steal_s"] = stolen
    if "context_switches" in modes:
        found["context_switches"] = modes["context_switches"]
    return found
