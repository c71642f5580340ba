"""A free port of this machine, kept for a server until that one listens there."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager

LOOPBACK = "127.0.0.1"


@contextmanager
def reserved_port() -> Iterator[int]:
    """A TCP port of the loopback address that nobody listens on, and that the system gives to nobody else meanwhile.

    Of two that ask for SO_REUSEADDR, as PostgreSQL does, Linux lets one listen at a port that the other only has.
    """
    with socket.socket() as reserved:
        if sys.platform == "linux":
            reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        reserved.bind((LOOPBACK, 0))
        port: int = reserved.getsockname()[1]
        if sys.platform != "linux":
            reserved.close()
        yield port
