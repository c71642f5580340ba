"""The time of a round trip to the server, on a session of the lab's own."""

from __future__ import annotations

import time
from statistics import median
from typing import Any

import psycopg

Session = psycopg.Connection[tuple[Any, ...]]

_TIMES = 20


def round_trips(session: Session, count: int) -> list[float]:
    """Microseconds of so many SELECT 1, the lab's own work included. Raises psycopg.Error."""
    times = []
    for _ in range(count):
        begin = time.perf_counter()
        session.execute("SELECT 1", prepare=False).fetchone()
        times.append((time.perf_counter() - begin) * 1e6)
    return times


def median_round_trip(session: Session) -> float:
    """Median of 20, microseconds. Raises psycopg.Error."""
    return round(median(round_trips(session, _TIMES)), 1)
