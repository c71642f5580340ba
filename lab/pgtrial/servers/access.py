"""Determines how clients reach a server over TCP: the server's address as the clients see it, the clients' addresses as
the server sees them, the port and the password."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import ip_network
from typing import TYPE_CHECKING

from psycopg import pq

from pgtrial.model.errors import ArmError

if TYPE_CHECKING:
    from pgtrial.machines.ssh.machine import RemoteMachine

LOOPBACK = "127.0.0.1"

HBA = (
    "# written by pgtrial: the private socket directory is the lock\nlocal all all trust\nlocal replication all trust\n"
)
"""The pg_hba.conf of a server that clients reach only by a Unix socket in a private directory."""


@dataclass(frozen=True)
class Access:
    """The addresses for connections over TCP: the address that clients use, the address on which the server listens,
    and the clients' addresses as the server sees them."""

    address: str
    port: int
    """The TCP port. With 0, pgtrial chooses a free port at each start of the server."""
    listen: str
    clients: tuple[str, ...]

    @property
    def hba(self) -> str:
        """The content of pg_hba.conf that admits connections by the private socket, and these clients with a
        password."""
        return HBA + "".join(f"host all all {ip_network(client)} scram-sha-256\n" for client in self.clients)


LOOPBACK_ACCESS = Access(LOOPBACK, 0, LOOPBACK, (LOOPBACK,))


def access_to(machine: RemoteMachine, address: str | None, port: int) -> Access:
    """Returns the addresses by which clients on this machine, such as the lab, reach a server on another host. Raises
    ArmError.

    Without an `address`, clients use the host name of the ssh connection, and the server listens on the address at
    which the ssh connection arrives.
    """
    lab, arrives_at = machine.seen
    used = address or machine.connection.where.host
    source, numeric = _from_here(used, port)
    listen = arrives_at if address is None and arrives_at else numeric if _has(machine, numeric) else "*"
    clients = dict.fromkeys(client for client in (source, lab) if client)
    return Access(used, port, listen, tuple(clients))


def _from_here(host: str, port: int) -> tuple[str, str]:
    """Returns the address that this machine would use as the source of packets to a host, and the host's address. Sends
    nothing. Raises ArmError."""
    try:
        family, _, _, _, there = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect(there)
            return str(probe.getsockname()[0]).partition("%")[0], str(there[0]).partition("%")[0]
    except socket.gaierror:
        raise ArmError(
            f"no address is known for {host}, by which clients should reach the server; set address"
        ) from None
    except OSError as error:
        raise ArmError(
            f"there is no network route from this machine to {host} ({error.strerror}); set address"
        ) from None


def _has(machine: RemoteMachine, address: str) -> bool:
    """True if one of the host's own network interfaces has this address. False if the address belongs to a NAT device
    in front of the host."""
    shown = machine.looked(["sh", "-c", "ip -o addr 2>/dev/null || ifconfig -a"]).stdout
    return address in shown.replace("/", " ").split()


def verifier(password: str) -> str:
    """Returns the SCRAM-SHA-256 verifier of a password with a random salt, in the form that pg_authid stores."""
    # libpq computes the verifier on any connection object, even on one that is not connected
    return pq.PGconn.connect_start(b"host=/").encrypt_password(password.encode(), b"", b"scram-sha-256").decode()


@contextmanager
def reserved_port() -> Iterator[int]:
    """Reserves a free TCP port of the loopback address within the context, so that the system gives it to no other
    program.

    PostgreSQL can listen on this port nevertheless. Both sockets set SO_REUSEADDR, and Linux then permits one socket to
    listen on a port that the other socket has only bound. On other systems the port is released before the context
    begins.
    """
    with socket.socket() as reserved:
        if sys.platform == "linux":
            reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        reserved.bind((LOOPBACK, 0))
        port: int = reserved.getsockname()[1]
        if sys.platform != "linux":
            reserved.close()
        yield port
