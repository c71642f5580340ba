"""How much the way from a server elsewhere carries to the lab: a stream of rows over an ordinary connection."""

from __future__ import annotations

import time
from typing import Any

import psycopg

from pgtrial.facts.collect import Subject, collector
from pgtrial.facts.place import Connection

_ROW = 8192
_FIRST_MB = 1
_MOST_MB = 512
_SECONDS = 0.5
"""How long the second stream is to take, by the first one's rate."""


@collector("probes")
def bandwidth(subject: Subject) -> dict[str, Any]:
    """MB (a million bytes) a second from the server to the lab; nothing for a server on the lab's own machine."""
    if not subject.measure or subject.connection is None or subject.here:
        return {}
    try:
        measured = streamed_mb_s(subject.connection)
    except psycopg.Error:
        return {"bandwidth_mb_s": None}
    return {"bandwidth_mb_s": round(measured, 1)}


def streamed_mb_s(connection: Connection) -> float:
    """By a COPY of rows of 8 kB, which costs both sides some work and the way its encryption: a lower bound of what the
    network carries. Raises psycopg.Error."""
    rate = _stream(connection, _FIRST_MB)
    return _stream(connection, min(_MOST_MB, max(_FIRST_MB, int(rate * _SECONDS))))


def _stream(connection: Connection, megabytes: int) -> float:
    rows = megabytes * 1_000_000 // _ROW
    begin, received = time.perf_counter(), 0
    with connection.cursor() as cursor:
        query = f"COPY (SELECT repeat('x', {_ROW - 1}) FROM generate_series(1, {rows})) TO STDOUT"
        with cursor.copy(query.encode()) as copy:
            for data in copy:
                received += len(data)
    return received / 1e6 / (time.perf_counter() - begin)
