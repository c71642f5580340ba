"""A port in front of a server's socket that keeps what each client sends."""

from __future__ import annotations

import socket
import struct
import threading
from pathlib import Path

ADDRESS = "127.0.0.1"


class Recorder:
    """Listens on a port of the loopback address, and passes everything on to a server.

    The server is at a port of that address, or at the file of a Unix socket.
    """

    def __init__(self, server: int | Path) -> None:
        self.sent: list[bytearray] = []
        """The bytes that each client has sent, by the number of its connection in the order of connecting."""
        self._clients: list[threading.Thread] = []
        self._server = server
        self._listener = socket.create_server((ADDRESS, 0))
        self.port: int = self._listener.getsockname()[1]

    def __enter__(self) -> Recorder:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def messages(self, number: int) -> str:
        """Returns the types of the messages that connection `number` sent after its start-up message, up to its end."""
        self._clients[number].join()
        sent = bytes(self.sent[number])
        at, kinds = struct.unpack_from("!I", sent)[0], []
        while at < len(sent):
            kinds.append(chr(sent[at]))
            at += 1 + struct.unpack_from("!I", sent, at + 1)[0]
        return "".join(kinds)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = self._connect()
            sent = bytearray()
            self.sent.append(sent)
            self._clients.append(threading.Thread(target=_pass, args=(client, server, sent), daemon=True))
            self._clients[-1].start()
            threading.Thread(target=_pass, args=(server, client, bytearray()), daemon=True).start()

    def _connect(self) -> socket.socket:
        if isinstance(self._server, int):
            return socket.create_connection((ADDRESS, self._server))
        server = socket.socket(socket.AF_UNIX)
        server.connect(str(self._server))
        return server


def _pass(source: socket.socket, sink: socket.socket, kept: bytearray) -> None:
    try:
        while data := source.recv(65536):
            kept.extend(data)
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        sink.close()
