"""The way from the load to the server: kind, device, MTU, encryption, and the time of a round trip."""

from __future__ import annotations

import ipaddress
import socket
from statistics import median
from typing import Any

import psutil
import psycopg

from pgtrial.facts.collect import Subject, collector
from pgtrial.facts.place import Connection, own_addresses, peer_address
from pgtrial.observe.round_trip import round_trips

_ROUND_TRIPS = 50
_TLS = "SELECT ssl, version, cipher FROM pg_stat_ssl WHERE pid = pg_backend_pid()"


@collector("network")
def network(subject: Subject) -> dict[str, Any]:
    """Of the lab's own connection; the engine's goes the same way."""
    if subject.connection is None:
        return {}
    address = peer_address(subject.connection)
    interface = None if address is None else _interface(address, subject.connection.info.port)
    return {
        "path": _path(address, here=subject.here),
        "interface": interface,
        "mtu": None if interface is None else _mtu(interface),
        "tls": _tls(subject),
    }


@collector("probes")
def round_trip(subject: Subject) -> dict[str, Any]:
    """Microseconds of a SELECT 1, the lab's own work included: an upper bound of the network's share."""
    if not subject.measure or subject.connection is None:
        return {}
    times = _round_trips(subject.connection)
    return {
        "round_trip_min_us": round(min(times), 1) if times else None,
        "round_trip_median_us": round(median(times), 1) if times else None,
    }


def _path(address: str | None, *, here: bool) -> str:
    if address is None:
        return "unix socket"
    if ipaddress.ip_address(address).is_loopback:
        return "loopback" if here else "loopback, leading elsewhere"
    # a container or a namespace of this machine has an address of its own
    return "own address" if here and address in own_addresses() else "network"


def _interface(address: str, port: int) -> str | None:
    """The network device of the route: that of the address which the system would send from."""
    own = own_addresses()
    if address in own:  # whatever the address, the way leads through the loopback device
        return next((name for known, name in own.items() if ipaddress.ip_address(known).is_loopback), None)
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((address, port))  # of a datagram socket: chooses the route, sends nothing
            return own.get(probe.getsockname()[0])
    except OSError:
        return None


def _mtu(interface: str) -> int | None:
    stats = psutil.net_if_stats().get(interface)
    return stats.mtu if stats is not None else None


def _tls(subject: Subject) -> str | None:
    rows = subject.rows(_TLS)
    if not rows:
        return None
    encrypted, version, cipher = rows[0]
    return f"{version} {cipher}" if encrypted else "none"


def _round_trips(connection: Connection) -> list[float]:
    try:
        return round_trips(connection, _ROUND_TRIPS)
    except psycopg.Error:
        return []
