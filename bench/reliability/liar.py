"""A server that lies: a TCP port that leads to a real server and does one thing wrong, at one of its messages."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Self

_HEAD = 5
_CHUNK = 65536
_GARBAGE = 300
_ERROR = b"E\0\0\0\x13SERROR\0C22012\0\0"
_READY = b"Z\0\0\0\x05I"


class Closed(Exception):
    """The connection ends here, after these bytes."""

    def __init__(self, rest: bytes = b"") -> None:
        super().__init__()
        self.rest = rest


class Stalled(Exception):
    """Raised by an attack that sends nothing more and keeps the connection open."""


Fault = Callable[[bytes, Random], bytes]
"""A function that returns the bytes to send in place of a message. It raises Closed and Stalled."""


def _with_length(message: bytes, length: int) -> bytes:
    return message[:1] + (length % (1 << 32)).to_bytes(4, "big") + message[_HEAD:]


def _longer(message: bytes, chance: Random) -> bytes:
    return _with_length(message, len(message) - 1 + chance.randint(1, 2000))


def _shorter(message: bytes, chance: Random) -> bytes:
    return _with_length(message, chance.randrange(len(message) - 1))


def _flipped(message: bytes, chance: Random) -> bytes:
    changed = bytearray(message)
    at = chance.randrange(_HEAD, len(message)) if len(message) > _HEAD else 0
    changed[at] ^= 1 << chance.randrange(8)
    return bytes(changed)


def _cut(message: bytes, chance: Random) -> bytes:
    raise Closed(message[: chance.randrange(len(message))])


def _closed(message: bytes, chance: Random) -> bytes:
    raise Closed


def _stalled(message: bytes, chance: Random) -> bytes:
    raise Stalled


FAULTS: dict[str, Fault] = {
    "garbage instead of it": lambda message, chance: chance.randbytes(_GARBAGE),
    "garbage before it": lambda message, chance: chance.randbytes(chance.randint(1, 9)) + message,
    "another kind": lambda message, chance: bytes([chance.randrange(256)]) + message[1:],
    "too long a length": _longer,
    "too short a length": _shorter,
    "a length of a gigabyte": lambda message, chance: _with_length(message, 0x3FFFFFFF),
    "a negative length": lambda message, chance: _with_length(message, -chance.randint(1, 1 << 31)),
    "a bit flipped": _flipped,
    "another body": lambda message, chance: message[:_HEAD] + chance.randbytes(len(message) - _HEAD),
    "sent twice": lambda message, chance: message + message,
    "left out": lambda message, chance: b"",
    "an error before it": lambda message, chance: _ERROR + message,
    "an end before it": lambda message, chance: _READY + message,
    "cut off": _cut,
    "closed before it": _closed,
    "silence": _stalled,
}


class Liar:
    """Leads to a server's socket; at the server's message with number `at`, over all connections, it lies once."""

    def __init__(self, server: Path, fault: Fault | None, at: int, chance: Random) -> None:
        self.messages = 0
        """The number of messages that the server has sent."""
        self._server = server
        self._fault = fault
        self._at = at
        self._chance = chance
        self._counting = threading.Lock()
        self._ended = threading.Event()
        self._ends: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *raised: object) -> None:
        self._ended.set()
        for end in [self._listener, *self._ends]:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while not self._ended.is_set():
                client, _ = self._listener.accept()
                server = socket.socket(socket.AF_UNIX)
                server.connect(str(self._server))
                self._ends += [client, server]
                threading.Thread(target=_forward, args=(client, server), daemon=True).start()
                threading.Thread(target=self._lie, args=(server, client), daemon=True).start()

    def _lie(self, server: socket.socket, client: socket.socket) -> None:
        """Forward the server's messages, one by one."""
        pending = b""
        with suppress(OSError):
            while data := server.recv(_CHUNK):
                pending += data
                out = b""
                while len(pending) >= _HEAD and len(pending) > (size := int.from_bytes(pending[1:_HEAD], "big")):
                    message, pending = pending[: size + 1], pending[size + 1 :]
                    try:
                        out += self._passed_on(message)
                    except Closed as closed:
                        client.sendall(out + closed.rest)
                        return _end(server, client)
                    except Stalled:
                        client.sendall(out)
                        self._ended.wait()
                        return None
                client.sendall(out)
        return _end(server, client)

    def _passed_on(self, message: bytes) -> bytes:
        with self._counting:
            number = self.messages
            self.messages += 1
        return self._fault(message, self._chance) if self._fault and number == self._at else message


def _forward(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(_CHUNK):
            sink.sendall(data)
    _end(source, sink)


def _end(*ends: socket.socket) -> None:
    for end in ends:
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
