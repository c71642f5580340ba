"""The server itself: sockets on the loopback addresses, a token, and uvicorn in a thread."""

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
"""The time in which answers in progress may finish when the server ends, seconds."""

_NO_V6 = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT, errno.EPROTONOSUPPORT)


@dataclass(frozen=True)
class Serving:
    """A server that answers."""

    address: str
    """The address with the token: everybody who knows it sees the pages."""
    thread: threading.Thread


@contextmanager
def serving(paths: Sequence[Path], port: int | None = None) -> Iterator[Serving]:
    """Serves the studies and histories at these paths within the context, at a port or, if it is None, at a free one.
    Raises PgtrialError if the port is in use."""
    token = secrets.token_urlsafe(24)
    places = ", ".join(map(str, paths))
    with ExitStack() as stack:
        sockets = _listening(port)
        for listener in sockets:
            stack.callback(listener.close)
        number = sockets[0].getsockname()[1]
        catalogue = Catalogue([path for path in paths if not is_branch(path)])
        site = Site(catalogue, Histories(paths), f"/{token}", places, lambda: server.should_exit)
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
    """Sockets at one port of the loopback addresses; IPv6 where there is any. Raises PgtrialError."""
    for _ in range(_TRIES):
        try:
            return _bound(port or 0)
        except OSError as error:
            reason = str(error.strerror).partition(" (while ")[0]  # Python adds the address
            if port is not None:
                raise PgtrialError(
                    f"port {port} cannot be used: {reason}; name another with --port, or leave it out"
                ) from error
            # free with IPv4, and taken with IPv6
            if error.errno != errno.EADDRINUSE:
                raise PgtrialError(f"no port of {_V4} can be used: {reason}") from error
    raise PgtrialError(f"no port is free at {_V4} and {_V6}; name one with --port")


def _bound(port: int) -> list[socket.socket]:
    four = socket.create_server((_V4, port))
    try:
        return [four, socket.create_server((_V6, four.getsockname()[1]), family=socket.AF_INET6)]
    except OSError as error:
        if error.errno in _NO_V6:
            return [four]
        four.close()
        raise
