"""Measures and describes the network between the lab and the server: path, device, MTU, encryption, round trip,
bandwidth, and the difference of the clocks."""

from __future__ import annotations

import ipaddress
import socket
import time
from statistics import median
from typing import Any

import psutil

from pgtrial.evidence.collect.subject import Subject, collector, own_addresses, peer_address
from pgtrial.loads.target import Session

_ROW = 8192
_FIRST_MB = 1
_MOST_MB = 512
_SECONDS = 0.5
"""The planned duration, in seconds, of the transfer that measures the bandwidth. Its size is chosen by the rate of a
small transfer that runs before it."""


@collector("probes", server=True, measures=True)
def bandwidth(subject: Subject) -> dict[str, Any]:
    """Returns the fact `bandwidth_mb_s`: millions of bytes per second from the server to the lab; no fact if both are
    on one machine."""
    if subject.here:
        return {}
    return {"bandwidth_mb_s": subject.measured(streamed_mb_s)}


def streamed_mb_s(connection: Session) -> float:
    """Measures the rate, in MB per second, at which the server sends rows of 8 kB by COPY. Raises psycopg.Error if the
    server rejects the COPY or the connection is lost.

    The result is a lower bound of the network's bandwidth, because COPY and possibly encryption take time on both
    sides.
    """
    rate = _stream(connection, _FIRST_MB)
    return round(_stream(connection, min(_MOST_MB, max(_FIRST_MB, int(rate * _SECONDS)))), 1)


def _stream(connection: Session, megabytes: int) -> float:
    rows = megabytes * 1_000_000 // _ROW
    begin, received = time.perf_counter(), 0
    with connection.cursor() as cursor:
        query = f"COPY (SELECT repeat('x', {_ROW - 1}) FROM generate_series(1, {rows})) TO STDOUT"
        with cursor.copy(query.encode()) as copy:
            for data in copy:
                received += len(data)
    return received / 1e6 / (time.perf_counter() - begin)


_CLOCK_READINGS = 20
_CLOCK = "SELECT extract(epoch FROM clock_timestamp())"


@collector("probes", server=True, measures=True)
def clock(subject: Subject) -> dict[str, Any]:
    """Returns the facts about the clock of a remote server: its offset in microseconds, which is positive if the clock
    is ahead of the lab's, and the possible error."""
    if subject.here:
        return {}
    offset, error = subject.measured(clock_offset) or (None, None)
    return {"clock_offset_us": offset, "clock_offset_error_us": error}


def clock_offset(connection: Session) -> tuple[int, int]:
    """Returns the offset of the server's clock and the largest possible error, in microseconds, from the shortest of
    several round trips.

    The server reads its clock at some time between request and answer. Compared with the middle between the two, the
    error is at most half of the round trip (RFC 5905, section 8). Raises psycopg.Error if a query fails.
    """
    tries = []
    for _ in range(_CLOCK_READINGS):
        # the order matters: a delay of the lab between the two calls increases the error, but not the offset
        begin, sent = time.perf_counter(), time.time()
        row = connection.execute(_CLOCK, prepare=False).fetchone()
        half = (time.perf_counter() - begin) / 2
        if row is not None:
            tries.append((half * 1e6, (float(row[0]) - sent - half) * 1e6))
    error, offset = min(tries)
    return round(offset), round(error)


_ROUND_TRIPS = 50
_TLS = "SELECT ssl, version, cipher FROM pg_stat_ssl WHERE pid = pg_backend_pid()"


@collector("network", server=True)
def network(subject: Subject) -> dict[str, Any]:
    """Returns the facts about the lab's own connection to the server: its path, network device, MTU and encryption.
    Connections of an engine on this machine take the same path."""
    address = peer_address(subject.session)
    interface = None if address is None else _interface(address, subject.session.info.port)
    stats = psutil.net_if_stats().get(interface or "")
    return {
        "path": _path(address, here=subject.here),
        "interface": interface,
        "mtu": None if stats is None else stats.mtu,
        "tls": _tls(subject),
    }


def _path(address: str | None, *, here: bool) -> str:
    if address is None:
        return "unix socket"
    if ipaddress.ip_address(address).is_loopback:
        return "loopback" if here else "loopback, leading elsewhere"
    # a container or a namespace of this machine has an address of its own
    return "own address" if here and address in own_addresses() else "network"


def _interface(address: str, port: int) -> str | None:
    """Returns the network device through which packets to an address leave: the device that has the address from which
    the system would send."""
    devices = own_addresses()
    if address in devices:  # packets to any own address go through the loopback device
        return next((name for known, name in devices.items() if ipaddress.ip_address(known).is_loopback), None)
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((address, port))  # connecting a datagram socket only chooses the route, and sends nothing
            return devices.get(probe.getsockname()[0])
    except OSError:
        return None


def _tls(subject: Subject) -> str | None:
    rows = subject.rows(_TLS)
    if not rows:
        return None
    encrypted, version, cipher = rows[0]
    return f"{version} {cipher}" if encrypted else "none"


@collector("probes", server=True, measures=True)
def round_trip(subject: Subject) -> dict[str, Any]:
    """Returns the facts about the time of a SELECT 1, in microseconds. It includes the lab's own work, and is thus an
    upper bound of the network's round trip."""
    times = subject.measured(lambda connection: round_trips(connection, _ROUND_TRIPS))
    return {
        "round_trip_min_us": round(min(times), 1) if times else None,
        "round_trip_median_us": round(median(times), 1) if times else None,
    }


_TIMES = 20


def round_trips(connection: Session, count: int) -> list[float]:
    """Runs SELECT 1 `count` times, and returns the time of each in microseconds, which includes the lab's own work.
    Raises psycopg.Error if a query fails."""
    times = []
    for _ in range(count):
        begin = time.perf_counter()
        connection.execute("SELECT 1", prepare=False).fetchone()
        times.append((time.perf_counter() - begin) * 1e6)
    return times


def median_round_trip(connection: Session) -> float:
    """Returns the median of 20 round trips in microseconds. Raises psycopg.Error if a query fails."""
    return round(median(round_trips(connection, _TIMES)), 1)
