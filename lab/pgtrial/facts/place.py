"""Where a server is: on this machine or elsewhere, and which of the machine's processes it is."""

from __future__ import annotations

import ipaddress
import socket
from typing import Any

import psutil
import psycopg

from pgtrial.arm.connect import Target

Connection = psycopg.Connection[tuple[Any, ...]]


def runs_here(connection: Connection, target: Target) -> bool:
    """Whether the server runs on this machine, as far as that is certain.

    A Unix socket ends here. An address of this machine may be the near end of a tunnel or of a container's port: the
    server is here if the process that serves the connection is.
    """
    if target.host.startswith(("/", "@")):
        return True
    address = peer_address(connection)
    return address is not None and address in own_addresses() and backend_process(connection) is not None


def backend_process(connection: Connection) -> int | None:
    """The process that serves this connection, if this machine has it; None if it is elsewhere or hidden from us."""
    number = connection.info.backend_pid
    try:
        process = psutil.Process(number)
        return number if process.name().startswith(("postgres", "postmaster")) else None
    except psutil.Error:
        return None


def peer_address(connection: Connection) -> str | None:
    """The IP address that the connection leads to; None for a Unix socket."""
    try:
        return str(ipaddress.ip_address(connection.info.hostaddr))
    except ValueError:
        return None


def own_addresses() -> dict[str, str]:
    """This machine's IP addresses, each with the name of its interface."""
    return {
        entry.address.partition("%")[0]: name
        for name, entries in psutil.net_if_addrs().items()
        for entry in entries
        if entry.family in (socket.AF_INET, socket.AF_INET6)
    }
