"""A network between a client and a server that a test can cut, silence, and lead elsewhere."""

from __future__ import annotations

import socket
import threading
from contextlib import ExitStack, suppress
from pathlib import Path

from pgtrial.servers.cluster import Cluster

_CHUNK = 65536


class Proxy:
    """A TCP port of the loopback address that leads to a cluster's private socket; a context manager."""

    def __init__(self, cluster: Cluster) -> None:
        self._server: Path | None = None
        self._ends: list[socket.socket] = []
        self._changes = threading.Lock()
        self._flows = threading.Event()
        self._kept_back = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.lead_to(cluster)

    def __enter__(self) -> Proxy:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *raised: object) -> None:
        with suppress(OSError):  # an accept that waits ends
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()

    def cut(self) -> None:
        """Closes all connections on both sides. New connections are closed at once."""
        with self._changes:
            self._server = None
            ends, self._ends = self._ends, []
        self._flows.set()
        for end in ends:
            with suppress(OSError):  # the other side was first
                end.shutdown(socket.SHUT_RDWR)

    def lead_to(self, cluster: Cluster) -> None:
        """Sets the server to which new connections lead from now on."""
        with self._changes:
            self._server = cluster.socket_directory / f".s.PGSQL.{cluster.port}"
        self._flows.set()

    def silence(self) -> None:
        """Stops forwarding, without closing the connections of either side."""
        self._flows.clear()

    @property
    def kept_back(self) -> int:
        """Returns the number of connections whose data is held back."""
        return self._kept_back

    def resume(self) -> None:
        """Forwards what was held back, and all that follows."""
        self._flows.set()

    def _accept(self) -> None:
        with suppress(OSError):  # closed
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        # a server that is not there: the client's connection ends
        with suppress(OSError), ExitStack() as stack:
            stack.enter_context(client)
            server = stack.enter_context(socket.socket(socket.AF_UNIX))
            with self._changes:
                if self._server is None:
                    return
                server.connect(str(self._server))
                self._ends += [client, server]
            back = threading.Thread(target=self._forward, args=(server, client))
            back.start()
            self._forward(client, server)
            back.join()

    def _forward(self, source: socket.socket, sink: socket.socket) -> None:
        """Forwards data until one side closes its connection, and then closes both."""
        with suppress(OSError):
            while data := source.recv(_CHUNK):
                self._wait_until_it_flows()
                sink.sendall(data)
        for end in (source, sink):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def _wait_until_it_flows(self) -> None:
        if self._flows.is_set():
            return
        with self._changes:
            self._kept_back += 1
        self._flows.wait()
        with self._changes:
            self._kept_back -= 1
