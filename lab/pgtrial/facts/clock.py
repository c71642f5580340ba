"""How far the clock of the server's host is from the lab's, as far as a round trip tells."""

from __future__ import annotations

import time
from typing import Any

import psycopg

from pgtrial.facts.collect import Subject, collector
from pgtrial.facts.place import Connection

_TIMES = 20
_CLOCK = "SELECT extract(epoch FROM clock_timestamp())"


@collector("probes")
def clock(subject: Subject) -> dict[str, Any]:
    """Of a server elsewhere, microseconds; `clock_offset_us` is positive where its clock is ahead of the lab's."""
    if not subject.measure or subject.connection is None or subject.here:
        return {}
    try:
        offset, error = clock_offset(subject.connection)
    except psycopg.Error:
        return {"clock_offset_us": None, "clock_offset_error_us": None}
    return {"clock_offset_us": round(offset), "clock_offset_error_us": round(error)}


def clock_offset(connection: Connection) -> tuple[float, float]:
    """The offset and its largest error, microseconds, by the shortest of some round trips. Raises psycopg.Error.

    The host reads its clock between the request and its answer: against the middle of the two it is off by half the
    round trip at most (RFC 5905, section 8).
    """
    tries = []
    for _ in range(_TIMES):
        # in this order: whatever holds the lab up between the two is in the error, and not in the offset
        begin, sent = time.perf_counter(), time.time()
        row = connection.execute(_CLOCK, prepare=False).fetchone()
        half = (time.perf_counter() - begin) / 2
        if row is not None:
            tries.append((half * 1e6, (float(row[0]) - sent - half) * 1e6))
    error, offset = min(tries)
    return offset, error
