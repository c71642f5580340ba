"""A server that answers as a test wants: for what no real server says."""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Callable

from tests.engine.guarded import ADDRESS

READY = b"Z\0\0\0\5I"


def message(kind: bytes, body: bytes = b"") -> bytes:
    return kind + struct.pack("!I", len(body) + 4) + body


def description(*names: str) -> bytes:
    columns = b"".join(
        name.encode() + b"\0" + struct.pack("!IHIHIH", 0, 0, 25, 0xFFFF, 0xFFFFFFFF, 0) for name in names
    )
    return message(b"T", struct.pack("!H", len(names)) + columns)


def row(*values: bytes) -> bytes:
    return message(
        b"D", struct.pack("!H", len(values)) + b"".join(struct.pack("!I", len(value)) + value for value in values)
    )


def complete(tag: str = "SELECT 1") -> bytes:
    return message(b"C", tag.encode() + b"\0")


USUAL = description("a") + row(b"1") + complete()
"""The messages that answer a SELECT of one row and one column."""


class FakeServer:
    """A server that listens on `port` of the loopback address and sends prepared answers.

    `reply` returns the answer to an execution, up to ReadyForQuery; `parsed` returns the answer to Parse. After an
    error the server ignores the client's messages up to Sync. `version` is the server version that it reports, and
    `greets_after_s` the time in seconds that a client waits until its session begins.
    """

    def __init__(
        self,
        reply: Callable[[], bytes],
        parsed: Callable[[], bytes] = lambda: message(b"1"),
        version: str = "18.6",
        *,
        greets_after_s: float = 0,
    ) -> None:
        self._reply, self._parsed = reply, parsed
        self._version = version.encode()
        self._greets_after_s = greets_after_s
        self._listener = socket.create_server((ADDRESS, 0))
        self.port = self._listener.getsockname()[1]

    def __enter__(self) -> FakeServer:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, client.makefile("rb") as stream:
            try:
                stream.read(struct.unpack("!I", stream.read(4))[0] - 4)
                time.sleep(self._greets_after_s)
                parameters = b"".join(
                    message(b"S", name + b"\0" + text + b"\0")
                    for name, text in ((b"server_version", self._version), (b"client_encoding", b"UTF8"))
                )
                client.sendall(message(b"R", bytes(4)) + parameters + message(b"K", bytes(8)) + READY)
                answer = b""
                passes = False
                while kind := stream.read(1):
                    body = stream.read(struct.unpack("!I", stream.read(4))[0] - 4)
                    if passes and kind not in b"QSX":
                        continue
                    answer += (part := self._answer(kind, body))
                    passes = part.startswith(b"E") and kind != b"Q"
                    if kind in b"QS":
                        client.sendall(answer)
                        answer = b""
            except (OSError, struct.error):  # the program hangs up as it likes
                return

    def _answer(self, kind: bytes, body: bytes) -> bytes:
        match kind:
            case b"P":
                return self._parsed()
            case b"B":
                return message(b"2")
            case b"Q" | b"E":
                return self._reply() + (READY if kind == b"Q" else b"")
            case b"S":
                return READY
            case b"X":
                raise OSError("the client has ended the session")
        return b""
