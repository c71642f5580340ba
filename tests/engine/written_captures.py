"""Captures written byte by byte, by the description of their format alone: engine/capture/src/format."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

MAGIC = b"pgtcapt1"
LONGEST_CHUNK = 2048
BEGIN_US = 1_795_270_323_000_000
"""The time at which the captures begin, microseconds since 1970."""

_DURATION, _CODE, _FAILED, _ROWS, _PARAMETERS = 1, 2, 4, 8, 16


@dataclass(frozen=True)
class Sent:
    """A statement: when it started, in seconds since the capture's begin, and its text, with `$1` for its values.

    Those of a simple statement are literals as they are written.
    """

    at: float
    text: str
    values: Sequence[str | None] = ()
    protocol: str = "simple"
    sqlstate: str | None = None
    rows: int | None = None


@dataclass(frozen=True)
class Recorded:
    """A session; `times` how often it was there, each at the same time."""

    statements: Sequence[Sent]
    times: int = 1
    start: float | None = None
    database: str | None = None


@dataclass
class _Files:
    sessions: bytearray = field(default_factory=lambda: bytearray(MAGIC))
    index: list[tuple[int, bytes]] = field(default_factory=list)
    templates: dict[tuple[str, str, int], int] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)


def write_capture(directory: Path, recorded: Sequence[Recorded], **about: Any) -> Path:
    """Write a capture into a new directory; `about` replaces what capture.json has."""
    directory.mkdir()
    files = _Files()
    ends = [_write_session(files, session) for session in recorded]
    index = b"".join(_varint(len(entry)) + entry for _, entry in sorted(files.index, key=lambda one: one[0]))
    templates = "".join(files.lines).encode()
    begins = [_us(_start(session)) for session in recorded]
    statements = [said for session in recorded for said in session.statements for _ in range(session.times)]
    whole = {
        "format": 1,
        "made_at": "2026-11-23T08:00:00Z",
        "made_by": "the tests",
        "sources": [],
        "server_version": None,
        "anonymized": False,
        "begin_us": min(begins, default=0),
        "span_us": max(ends, default=0) - min(begins, default=0),
        "sessions": sum(session.times for session in recorded),
        "statements": len(statements),
        "failed": sum(said.sqlstate is not None for said in statements),
        "templates": len(files.lines),
        "commonest": [],
        "left_out": [],
        "files": {
            "templates": _checked(templates),
            "index": _checked(index),
            "sessions_bytes": len(files.sessions),
        },
    }
    (directory / "sessions.bin").write_bytes(files.sessions)
    (directory / "sessions.idx").write_bytes(index)
    (directory / "templates.jsonl").write_bytes(templates)
    (directory / "capture.json").write_text(json.dumps(whole | about))
    return directory


def _write_session(files: _Files, session: Recorded) -> int:
    """Writes a session as often as `session.times` says and returns the time of its last statement."""
    chunks = _chunks([(said, _template(files, said)) for said in session.statements])
    end = max((_us(said.at) for said in session.statements), default=_us(_start(session)))
    for _ in range(session.times):
        number = len(files.index)
        place = first = len(files.sessions)
        for count, body in enumerate(chunks):
            following = place + 24 + len(body) if count + 1 < len(chunks) else 0
            owner = _words(number, count, len(body))
            files.sessions += following.to_bytes(8, "little") + owner + _words(zlib.crc32(owner + body)) + body
            place = following
        numbers = (number, _us(_start(session)), end, len(session.statements), first if chunks else 0)
        database = b"\0" if session.database is None else b"\1" + _counted(session.database.encode())
        entry = b"".join(map(_varint, numbers)) + b"\0" + database + b"\0"
        files.index.append((_us(_start(session)), entry))
    return end


def _chunks(statements: Sequence[tuple[Sent, int]]) -> list[bytes]:
    chunks: list[bytearray] = []
    before = 0
    for said, template in statements:
        if not chunks or len(chunks[-1]) >= LONGEST_CHUNK:
            chunks.append(bytearray())
            before = 0
        chunks[-1] += _statement(said, template, before)
        before = _us(said.at)
    return [bytes(chunk) for chunk in chunks]


def _statement(said: Sent, template: int, before: int) -> bytes:
    flags = (_CODE | _FAILED) * (said.sqlstate is not None) | _ROWS * (said.rows is not None)
    after = _us(said.at) - before
    out = bytes([flags | _PARAMETERS * bool(said.values)]) + _varint(template) + _varint(after << 1 ^ after >> 63)
    out += (said.sqlstate or "").encode()
    if said.rows is not None:
        out += _varint(said.rows)
    if said.values:
        out += _varint(len(said.values))
        for value in said.values:
            out += b"\0" if value is None else _varint(len(value.encode()) + 1) + value.encode()
    return out


def _template(files: _Files, said: Sent) -> int:
    key = (said.protocol, said.text, len(said.values))
    if key not in files.templates:
        number = files.templates[key] = len(files.lines)
        template = {"id": number, "protocol": said.protocol, "parameters": len(said.values), "text": said.text}
        if said.protocol == "simple" and said.values:
            template["places"] = [
                len(said.text[: found.start()].encode()) for found in re.finditer(r"\$\d+", said.text)
            ]
        files.lines.append(json.dumps(template) + "\n")
    return files.templates[key]


def _start(session: Recorded) -> float:
    return session.statements[0].at if session.start is None else session.start


def _us(at: float) -> int:
    return BEGIN_US + round(at * 1e6)


def _checked(content: bytes) -> dict[str, int]:
    return {"bytes": len(content), "crc32": zlib.crc32(content)}


def _words(*numbers: int) -> bytes:
    return b"".join(number.to_bytes(4, "little") for number in numbers)


def _counted(content: bytes) -> bytes:
    return _varint(len(content)) + content


def _varint(number: int) -> bytes:
    """Returns a number in LEB128."""
    groups = [number >> shift & 0x7F for shift in range(0, max(number.bit_length(), 1), 7)]
    return bytes([group | 0x80 for group in groups[:-1]] + groups[-1:])
