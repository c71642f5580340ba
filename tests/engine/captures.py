"""Captures, read by the description of their format alone: engine/capture/src/format."""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_MAGIC = b"pgtcapt1"
_HEADER = 24
_DURATION, _CODE, _FAILED, _ROWS, _PARAMETERS = 1, 2, 4, 8, 16


@dataclass(frozen=True)
class Statement:
    """A captured statement: its text as the client sent it, and its bound parameters, if it had any."""

    protocol: str
    text: str
    parameters: tuple[str | None, ...]
    start_us: int
    """The time at which the statement began, microseconds since the begin of the capture."""
    duration_us: int | None
    failure: str | None
    """An SQLSTATE, or `unstated`."""

    @property
    def sent(self) -> tuple[str, str, tuple[str | None, ...]]:
        """The statement as the client sent it: protocol, text and parameters."""
        return self.protocol, self.text, self.parameters


@dataclass(frozen=True)
class Session:
    """A session with its statements in order."""

    user: str | None
    database: str | None
    application: str | None
    start_us: int
    end_us: int
    statements: tuple[Statement, ...]


@dataclass(frozen=True)
class Capture:
    """A capture as it was read back: all its sessions and its description."""

    about: dict[str, Any]
    templates: list[dict[str, Any]]
    sessions: list[Session]

    def of(self, application: str) -> Session:
        """Returns the only session that had this application_name."""
        (session,) = [session for session in self.sessions if session.application == application]
        return session

    def left_out(self) -> dict[str, int]:
        """Returns the number of statements that the capture left out, by the reason."""
        return {entry["reason"]: entry["count"] for entry in self.about["left_out"]}


def read(directory: Path) -> Capture:
    """Read a capture, and check its checksums."""
    about = json.loads((directory / "capture.json").read_text())
    for name, file in (("templates", "templates.jsonl"), ("index", "sessions.idx")):
        content = (directory / file).read_bytes()
        assert about["files"][name] == {"bytes": len(content), "crc32": zlib.crc32(content)}
    templates = [json.loads(line) for line in (directory / "templates.jsonl").read_text().splitlines()]
    chunks = (directory / "sessions.bin").read_bytes()
    assert chunks.startswith(_MAGIC)
    index = _Bytes((directory / "sessions.idx").read_bytes())
    sessions = []
    while index.left():
        sessions.append(_session(_Bytes(index.take(index.number())), about["begin_us"], templates, chunks))
    assert len(sessions) == about["sessions"]
    assert sum(len(session.statements) for session in sessions) == about["statements"]
    return Capture(about, templates, sessions)


class _Bytes:
    """Bytes that are read from front to back."""

    def __init__(self, content: bytes) -> None:
        self.content, self.at = content, 0

    def left(self) -> int:
        return len(self.content) - self.at

    def take(self, count: int) -> bytes:
        assert count <= self.left()
        self.at += count
        return self.content[self.at - count : self.at]

    def number(self) -> int:
        number = shift = 0
        while True:
            (byte,) = self.take(1)
            number |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return number

    def signed(self) -> int:
        number = self.number()
        return number >> 1 ^ -(number & 1)

    def name(self) -> str | None:
        (known,) = self.take(1)
        return self.take(self.number()).decode() if known else None

    def parameter(self) -> str | None:
        length = self.number()
        return self.take(length - 1).decode() if length else None


def _session(entry: _Bytes, begin: int, templates: list[dict[str, Any]], chunks: bytes) -> Session:
    number, start, end, count, place = (entry.number() for _ in range(5))
    user, database, application = (entry.name() for _ in range(3))
    statements: list[Statement] = []
    ordinal = 0
    while place:
        after, owner, found, length, checksum = (
            int.from_bytes(chunks[place + at : place + at + size], "little")
            for at, size in ((0, 8), (8, 4), (12, 4), (16, 4), (20, 4))
        )
        body = chunks[place + _HEADER : place + _HEADER + length]
        assert (owner, found, checksum) == (number, ordinal, zlib.crc32(chunks[place + 8 : place + 20] + body))
        statements += _statements(_Bytes(body), begin, templates)
        place, ordinal = after, ordinal + 1
    assert len(statements) == count
    return Session(user, database, application, start - begin, end - begin, tuple(statements))


def _statements(body: _Bytes, begin: int, templates: list[dict[str, Any]]) -> list[Statement]:
    statements, start = [], 0
    while body.left():
        (flags,) = body.take(1)
        template = templates[body.number()]
        start += body.signed()
        duration = body.number() if flags & _DURATION else None
        failure = body.take(5).decode() if flags & _CODE else "unstated" if flags & _FAILED else None
        if flags & _ROWS:
            body.number()
        values = [body.parameter() for _ in range(body.number())] if flags & _PARAMETERS else []
        assert len(values) == template["parameters"]
        text, bound = _joined(template, values)
        statements.append(Statement(template["protocol"], text, bound, start - begin, duration, failure))
    return statements


def _joined(template: dict[str, Any], values: list[str | None]) -> tuple[str, tuple[str | None, ...]]:
    """Returns a statement's text with its literals put in, and the values of its bound parameters."""
    places = template.get("places", [])
    if not places:
        return template["text"], tuple(values)
    text, joined, done = template["text"].encode(), b"", 0
    for number, (place, value) in enumerate(zip(places, values, strict=True), template.get("first", 1)):
        placeholder = b"$%d" % number
        assert text[place:].startswith(placeholder)
        joined += text[done:place] + (value or "").encode()
        done = place + len(placeholder)
    return (joined + text[done:]).decode(), ()
