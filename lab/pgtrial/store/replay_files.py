"""The files of a replay: a capture and a dump of the data. Where they are, what they are, and whether they changed.

They stay where they are. They may be large, and they hold the values of whoever was recorded, which a study's directory
and its bundle are not to pass on: these have digests alone.
"""

from __future__ import annotations

import hashlib
import json
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

from pgtrial.model.errors import StudyError
from pgtrial.model.records.replay import ReplayFiles
from pgtrial.model.study.replay import REPLAY
from pgtrial.model.study.servers import Given
from pgtrial.model.study.spec import StudySpec

BUNDLED = "@"
"""With which the name of a capture begins that comes with pgtrial, and that of its dump."""

_FORMAT = 1
"""The newest format of captures that this release reads."""

_ABOUT = "capture.json"
_CAPTURE = (_ABOUT, "templates.jsonl", "sessions.idx", "sessions.bin")
_BUNDLED_DUMP = "data.sql"

DumpKind = Literal["plain", "archive"]
"""SQL, which the lab runs itself; or what pg_restore reads: a custom or tar archive, or a directory."""

_ARCHIVES = ((0, b"PGDMP"), (257, b"ustar"))
"""Where the formats custom and tar say what they are."""
_CONTENTS = "toc.dat"
"""A file of the format directory."""


def with_replay(spec: StudySpec, folder: Path, source: str) -> StudySpec:
    """The spec with the places of its replay's files, named from `folder` on, and what they are. Raises StudyError."""
    if not spec.load.replays:
        return spec
    for arm in spec.arms:
        if isinstance(spec.resolved(arm), Given):
            raise StudyError(
                f"{source}: [arms.{arm}] a replay changes the data, and a given server has no fresh copy of them for "
                "each trial; name postgres in place of dsn"
            )
    if spec.fleet is not None:
        raise StudyError(f"{source}: [fleet] one engine replays all sessions, so a replay has no fleet; remove it")
    workload = _place(spec.load.workload[0].removeprefix(REPLAY), folder)
    data = _place(spec.load.replay.data or "", folder)
    replay = spec.load.replay.model_copy(update={"data": data, "files": _look(workload, data, source)})
    load = spec.load.model_copy(update={"workload": [f"{REPLAY}{workload}"], "replay": replay})
    return spec.model_copy(update={"load": load})


def check_unchanged(spec: StudySpec) -> None:
    """Raise StudyError if a file of the study's replay is no longer what it was when the study was planned."""
    planned, data = spec.load.replay.files, spec.load.replay.data
    if not spec.load.replays or planned is None or data is None:
        return
    workload = spec.load.workload[0].removeprefix(REPLAY)
    files = _look(workload, data, "[load]")
    for place, now, then in (
        (workload, files.capture_sha256, planned.capture_sha256),
        (data, files.data_sha256, planned.data_sha256),
    ):
        if now != then:
            raise StudyError(f"{place} has changed since the study was planned; restore it, or run a study of its own")


def capture_of(workload: str) -> Path:
    """The directory of a replay's capture."""
    return _path(workload.removeprefix(REPLAY), "capture")


def dump_at(data: str) -> Path:
    """The file or directory of a replay's dump."""
    return _path(data, _BUNDLED_DUMP)


def kind_of_dump(path: Path) -> DumpKind:
    """How a dump is restored. Raises StudyError for what is none."""
    if path.is_dir():
        if (path / "PG_VERSION").is_file():
            raise StudyError(
                f"{path} is a data directory, which only servers of one version can read; start a server on it and "
                "make a dump by pg_dump"
            )
        if not (path / _CONTENTS).is_file():
            raise StudyError(f"{path} is no dump: a directory of pg_dump has a file {_CONTENTS}")
        return "archive"
    with path.open("rb") as file:
        begin = file.read(512)
    if any(begin[place:].startswith(mark) for place, mark in _ARCHIVES):
        return "archive"
    if b"\0" in begin or begin.startswith(b"\x1f\x8b"):
        raise StudyError(f"{path} is no dump in a format of pg_dump; decompress it if it is compressed")
    return "plain"


def _place(named: str, folder: Path) -> str:
    """What a study file names, from the root on, so that the study goes on from any directory."""
    return named if named.startswith(BUNDLED) else str((folder / Path(named).expanduser()).absolute())


def _path(place: str, bundled: str) -> Path:
    if place.startswith(BUNDLED):
        return Path(str(files("pgtrial.store") / "captures" / place.removeprefix(BUNDLED) / bundled))
    return Path(place)


def _look(workload: str, data: str, source: str) -> ReplayFiles:
    capture, dump = capture_of(workload), dump_at(data)
    try:
        about = _about(capture)
        kind_of_dump(dump)
        parts = sorted(path for path in dump.rglob("*") if path.is_file()) if dump.is_dir() else [dump]
        return ReplayFiles(
            capture_sha256=_digest(capture, [capture / name for name in _CAPTURE]),
            data_sha256=_digest(dump, parts),
            data_bytes=sum(path.stat().st_size for path in parts),
            sessions=about["sessions"],
            statements=about["statements"],
            recorded_s=about["span_us"] / 1e6,
            server_version=about.get("server_version"),
        )
    except StudyError as error:
        raise StudyError(f"{source}: {error}") from None
    except OSError as error:
        raise StudyError(f"{source}: cannot read {error.filename}: {error.strerror or 'unreadable'}") from None


def _about(capture: Path) -> dict[str, Any]:
    """What capture.json says. Raises StudyError."""
    path = capture / _ABOUT
    if not path.is_file():
        raise StudyError(
            f"{capture} is no finished capture: it has no {_ABOUT}; `pgtrial capture` makes one of a server's logs"
        )
    try:
        about: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        newer, statements = about["format"] > _FORMAT, about["statements"]
    except (ValueError, KeyError, TypeError):
        raise StudyError(f"{path} is damaged; make the capture anew from its logs") from None
    if newer:
        raise StudyError(f"{capture} was made by a newer pgtrial (format {about['format']}); upgrade")
    if statements == 0:
        raise StudyError(f"the capture {capture} has no statements; make it from logs with statements")
    return about


def _digest(root: Path, parts: list[Path]) -> str:
    """SHA-256 of files and of their names below a directory."""
    whole = hashlib.sha256()
    for path in parts:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        whole.update(f"{path.relative_to(root).as_posix()} {digest}\n".encode())
    return whole.hexdigest()
