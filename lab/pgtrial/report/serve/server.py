"""Starts the web server: opens sockets on the loopback addresses, creates the token, and runs uvicorn in a thread."""

from __future__ import annotations

import errno
import secrets
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import uvicorn

from pgtrial.model.errors import PgtrialError
from pgtrial.report.serve.app import Site
from pgtrial.report.serve.catalogue import Catalogue
from pgtrial.report.serve.gate import Gate
from pgtrial.report.serve.histories import Histories, is_branch

_V4, _V6 = "127.0.0.1", "::1"
_TRIES = 20
_GRACE_S = 30
"""The time in seconds for which the server, when it ends, waits for answers in progress."""

_NO_V6 = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT, errno.EPROTONOSUPPORT)


@dataclass(frozen=True)
class Serving:
    """A running web server."""

    address: str
    """The address with the token. Everybody who knows it can see the pages."""
    thread: threading.Thread


@contextmanager
def serving(paths: Sequence[Path], port: int | None = None) -> Iterator[Serving]:
    """Serves the studies and histories at these paths for the time of the context, at the given port or, if `port` is
    None, at a free port. Raises PgtrialError if the port is in use."""
    token = secrets.token_urlsafe(24)
    folders = ", ".join(map(str, paths))
    with ExitStack() as stack:
        sockets = _listening(port)
        for listener in sockets:
            stack.callback(listener.close)
        number = sockets[0].getsockname()[1]
        catalogue = Catalogue([path for path in paths if not is_branch(path)])
        site = Site(catalogue, Histories(paths), f"/{token}", folders, lambda: server.should_exit)
        server = uvicorn.Server(
            uvicorn.Config(
                Gate(site.app(), token, number),
                http="h11",
                ws="none",
                lifespan="off",
                loop="asyncio",
                log_config=None,
                log_level="critical",
                access_log=False,
                proxy_headers=False,
                server_header=False,
                timeout_graceful_shutdown=_GRACE_S,
            )
        )
        thread = threading.Thread(target=server.run, kwargs={"sockets": sockets}, daemon=True)
        thread.start()
        try:
            yield Serving(f"http://{_V4}:{number}/{token}/", thread)
        finally:
            server.should_exit = True
            thread.join()


def _listening(port: int | None) -> list[socket.socket]:
    """Returns sockets that listen at one port of the loopback addresses, with IPv6 if this machine has it. Raises
    PgtrialError."""
    for _ in range(_TRIES):
        try:
            return _bound(port or 0)
        except OSError as error:
            # without the address, which Python adds to the message
            reason = str(error.strerror).partition(" (while ")[0]
            if port is not None:
                raise PgtrialError(
                    f"port {port} cannot be used: {reason}; name another port with --port, or leave --port out"
                ) from error
            # a port may be free with IPv4 and in use with IPv6; then the next one is tried
            if error.errno != errno.EADDRINUSE:
                raise PgtrialError(
                    f"pgtrial serve cannot listen at {_V4}: {reason}; check that this machine has a loopback interface "
                    "with this address"
                ) from error
    raise PgtrialError(f"no port is free at both {_V4} and {_V6}; name a port with --port")


def _bound(port: int) -> list[socket.socket]:
    four = socket.create_server((_V4, port))
    try:
        return [four, socket.create_server((_V6, four.getsockname()[1]), family=socket.AF_INET6)]
    except OSError as error:
        if error.errno in _NO_V6:
            return [four]
        four.close()
        raise
