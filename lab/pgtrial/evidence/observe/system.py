"""The numbers read from a host, on any operating system, and the rates per second between such readings."""

from __future__ import annotations

import abc
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from pgtrial.store.tables import OBSERVED_SCHEMA

Values = dict[str, dict[str, float]]
"""Values by source and name."""

CPU_MODES = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
_NOT_BUSY = ("idle", "iowait", "steal")


@dataclass(frozen=True)
class Snapshot:
    """The numbers that were read from a host at one moment. Numbers that the host does not report are absent.

    The sources of counters, which only grow, are cpu, processes, device, network and pressure; that of gauges is
    memory.
    """

    counters: Values = field(default_factory=dict)
    gauges: Values = field(default_factory=dict)
    look_cpu_s: float = 0.0
    """The CPU time that reading the numbers took on the host, seconds. It is 0 if the lab's own process read them."""
    session_cpu_s: float | None = None
    """The CPU time of the process that serves the lab's session, since its start, seconds."""
    on_labs_machine: bool = False
    unsupported: str | None = None
    """The name of the host's operating system, if pgtrial cannot observe it."""


class System(abc.ABC):
    """A reader of the numbers of a host, for one kind of operating system."""

    limits_itself = False
    """True if the reader limits its own cost by returning nothing now and then; otherwise the caller has to read less
    often."""

    counts_ended = True
    """True if the CPU time of the server's processes includes processes that ended before the first reading."""

    @abc.abstractmethod
    def look(self) -> Snapshot:
        """Returns the numbers now. Raises HostTrouble."""


def known(values: Values) -> Values:
    """Returns the sources that have numbers."""
    return {source: named for source, named in values.items() if named}


def whole_cpu(modes: Mapping[str, float]) -> dict[str, float]:
    """Returns cpu_s, cpu_busy_s and, if known, cpu_steal_s and context_switches; empty if no mode is known."""
    seconds = {mode: modes[f"{mode}_s"] for mode in CPU_MODES if f"{mode}_s" in modes}
    if not seconds:
        return {}
    busy = sum(time for mode, time in seconds.items() if mode not in _NOT_BUSY)
    as_they_are = {"cpu_steal_s": "steal_s", "context_switches": "context_switches"}
    totals = {"cpu_s": sum(seconds.values()), "cpu_busy_s": busy}
    return totals | {name: modes[mode] for name, mode in as_they_are.items() if mode in modes}


@dataclass(frozen=True)
class Reading:
    """The counters, which only grow, and the gauges, which do not, at a moment in seconds."""

    moment: float
    counters: Values
    gauges: Values = field(default_factory=dict)


def per_second(readings: Sequence[Reading]) -> pl.DataFrame:
    """Returns the rates and gauges of each second, in the columns of OBSERVED_SCHEMA.

    The times of the readings count from the measured part and ascend. The gain of a counter between two readings is
    divided by the time between them, and belongs to the second that holds the middle of that time. A counter that was
    reset between two readings has no rate there. Numbers that are always 0 are left out.
    """
    rows = [*_gains(readings), *_gauges(readings)]
    frame = pl.DataFrame(rows, schema=OBSERVED_SCHEMA, orient="row")
    moved = (pl.col("value") != 0).any().over("source", "name")
    keys = ["second", "source", "name"]
    return frame.filter(moved).group_by(keys).agg(pl.col("value").mean()).sort(keys)


_Row = tuple[int, str, str, float]


def _gains(readings: Sequence[Reading]) -> Iterator[_Row]:
    last: dict[str, Reading] = {}
    for now in readings:
        for source, values in now.counters.items():
            # a host that is costly to look at is not in every reading
            before = last.get(source, now)
            last[source] = now
            elapsed = now.moment - before.moment
            second = math.floor((before.moment + now.moment) / 2)
            known = before.counters[source]
            for name, value in values.items():
                if value >= known.get(name, math.inf) and elapsed > 0:
                    yield second, source, name, (value - known[name]) / elapsed


def _gauges(readings: Sequence[Reading]) -> Iterator[_Row]:
    for reading in readings:
        for source, values in reading.gauges.items():
            for name, value in values.items():
                yield math.floor(reading.moment), source, name, float(value)
