"""From readings of counters to what moved per second."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from pgtrial.store.tables import OBSERVED_SCHEMA

Values = Mapping[str, Mapping[str, float]]
"""Source -> name -> value."""


@dataclass(frozen=True)
class Reading:
    """Counters, which only grow, and gauges, which do not, at a moment in seconds."""

    moment: float
    counters: Values
    gauges: Values = field(default_factory=dict)


def per_second(readings: Sequence[Reading]) -> pl.DataFrame:
    """Columns of OBSERVED_SCHEMA; the readings' times count from the measured part, in ascending order.

    What a counter gained between two readings is divided by the time between them and belongs to the second that holds
    the middle of that time. A counter that was reset in between is left out there; one that never moved, everywhere.
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
