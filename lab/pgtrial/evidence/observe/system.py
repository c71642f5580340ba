"""Defines the counters and gauges that are read from a host on any operating system, and computes rates per second from
consecutive readings of them."""

from __future__ import annotations

import abc
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from pgtrial.store.tables import OBSERVED_SCHEMA

Values = dict[str, dict[str, float]]
"""Values by their source, such as cpu, and their name."""

CPU_MODES = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
_NOT_BUSY = ("idle", "iowait", "steal")


@dataclass(frozen=True)
class Snapshot:
    """The counters and gauges that were read from a host at one moment. Those that the host does not report are absent.

    Counters only grow; their sources are cpu, processes, device, network and pressure. Gauges may also fall; their
    source is memory.
    """

    counters: Values = field(default_factory=dict)
    gauges: Values = field(default_factory=dict)
    look_cpu_s: float = 0.0
    """The CPU time, in seconds, that this reading took on the host; 0 if the lab's own process did the reading."""
    session_cpu_s: float | None = None
    """The CPU time, in seconds since its start, of the server process that serves the lab's session; None if it is not
    known."""
    on_labs_machine: bool = False
    unsupported: str | None = None
    """The name of the host's operating system, if pgtrial cannot observe it."""


class System(abc.ABC):
    """The interface for reading the counters of a host, with a class for each operating system."""

    limits_itself = False
    """True if this class limits the cost of reading itself: a call that comes too early returns an empty snapshot
    without reading. If it is false, the caller must limit how often it reads."""

    counts_ended = True
    """True if the CPU time of the server's processes includes processes that ended before the first reading. False if
    it includes only those that ended later."""

    @abc.abstractmethod
    def look(self) -> Snapshot:
        """Reads the host once, and returns the result. Raises HostTrouble if the host is not reachable or refuses
        access."""


def known(values: Values) -> Values:
    """Returns the values without those sources (such as cpu) for which no value is known."""
    return {source: named for source, named in values.items() if named}


def whole_cpu(modes: Mapping[str, float]) -> dict[str, float]:
    """Returns the totals of the CPU modes: cpu_s, cpu_busy_s and, if they are known, cpu_steal_s and context_switches;
    empty if no mode is known."""
    seconds = {mode: modes[f"{mode}_s"] for mode in CPU_MODES if f"{mode}_s" in modes}
    if not seconds:
        return {}
    busy = sum(time for mode, time in seconds.items() if mode not in _NOT_BUSY)
    as_they_are = {"cpu_steal_s": "steal_s", "context_switches": "context_switches"}
    totals = {"cpu_s": sum(seconds.values()), "cpu_busy_s": busy}
    return totals | {name: modes[mode] for name, mode in as_they_are.items() if mode in modes}


@dataclass(frozen=True)
class Reading:
    """Counters, which only grow, and gauges, which may also fall, with the moment in seconds at which they were
    read."""

    moment: float
    counters: Values
    gauges: Values = field(default_factory=dict)


def per_second(readings: Sequence[Reading]) -> pl.DataFrame:
    """Returns the rates and gauges in each second, in the columns of OBSERVED_SCHEMA.

    The moments of the readings are relative to the begin of the measured phase, and in ascending order. The increase of
    a counter between two readings is divided by the time between them, and is assigned to the second that contains the
    middle of this time. If a counter was reset between two readings, there is no rate for this time. Counters and
    gauges that are always 0 are left out.
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
            # a reading lacks the host's counters if reading the host so often would be too costly
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
