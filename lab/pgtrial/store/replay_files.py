"""Finds the files of a replay, which are a capture (recorded sessions of a server) and a dump of the data, records
their digests, and checks whether they have changed.

The files are not copied into the study, which stores only their digests. They may be large, and contain values of the
recorded users, which must not be passed on with a study's directory or bundle.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from pgtrial.files.reading import read_text
from pgtrial.model import marks
from pgtrial.model.errors import StudyError
from pgtrial.model.records.replay import ReplayFiles
from pgtrial.model.study.connection_strings import names_server
from pgtrial.model.study.replay import REPLAY, is_replay
from pgtrial.model.study.servers import Given
from pgtrial.model.study.spec import StudySpec
from pgtrial.store.dumps import check_present, digest_of, from_root, kind_of_dump, parts_of_dump

BUNDLED = "@"
"""The prefix in the name of a capture (recorded sessions) that comes with pgtrial, and in the name of the dump that
belongs to it."""

_FORMAT = 1
"""The newest version of the format of captures (recorded sessions) that this release of pgtrial reads."""

_ABOUT = "capture.json"
_CAPTURE = (_ABOUT, "templates.jsonl", "sessions.idx", "sessions.bin")
_BUNDLED_DUMP = "data.sql"


def with_replay(spec: StudySpec, folder: Path, source: str) -> StudySpec:
    """Returns the spec with the absolute paths of the files of its replay, and with their digests. In the study file,
    the paths are relative to `folder`. Raises StudyError if a file is missing or damaged, or if a replay is not
    possible with the study's servers or data."""
    if not any(map(is_replay, spec.load.workload)):
        return spec
    for arm in spec.arms:
        if isinstance(spec.resolved(arm), Given):
            raise StudyError(
                f"{source}: {marks.at_arm(arm)}a replay changes the data, so it needs a fresh copy of them for each "
                "trial, which pgtrial cannot make on a server of yours; let pgtrial start a server (postgres=18 in "
                "place of the connection string)"
            )
    named = spec.load.replay.data or spec.load.data[0]
    if len(spec.load.data) > 1 or names_server(named):
        raise StudyError(
            f"{source}: {marks.key('load', 'data')}: a replay needs the data as they were when the capture began, in "
            "one dump; name this dump only"
        )
    workload = _stored_path(spec.load.workload[0].removeprefix(REPLAY), folder)
    data = _stored_path(named, folder)
    replay = spec.load.replay.model_copy(update={"data": data, "files": _look(workload, data, source)})
    load = spec.load.model_copy(update={"workload": [f"{REPLAY}{workload}"], "replay": replay, "data": []})
    return spec.model_copy(update={"load": load})


def check_unchanged(spec: StudySpec) -> None:
    """Raises StudyError if a file of the study's replay is missing or has changed since the study was planned."""
    planned, data = spec.load.replay.files, spec.load.replay.data
    if planned is None or data is None:
        return
    workload = spec.load.workload[0].removeprefix(REPLAY)
    check_present([capture_of(workload), dump_at(data)])
    files = _look(workload, data, marks.section("load"))
    for named_path, now, then in (
        (workload, files.capture_sha256, planned.capture_sha256),
        (data, files.data_sha256, planned.data_sha256),
    ):
        if now != then:
            raise StudyError(f"{named_path} has changed since the study was planned; restore it, or start a new study")


def capture_of(workload: str) -> Path:
    """Returns the directory of the capture (recorded sessions) that a replay's workload names."""
    return _path(workload.removeprefix(REPLAY), "capture")


def templates_in(capture: Path) -> dict[int, int | None]:
    """Returns the numbers of the statement templates (statements that differ only in values) of a capture, those with
    the most executions first, each with the number of its executions. The number is None for rare templates, for which
    the capture does not have it. Raises StudyError if the capture is missing or damaged."""
    about = _about(capture)
    try:
        counted = {int(usage["template"]): int(usage["statements"]) for usage in about["commonest"]}
        return {**counted, **{number: None for number in range(about["templates"]) if number not in counted}}
    except (KeyError, TypeError, ValueError):
        raise StudyError(f"{capture / _ABOUT} is damaged; make the capture again from the server's logs") from None


def left_out_of(capture: Path) -> list[str]:
    """Returns what a capture lacks, or what in it is doubtful, as phrases such as `3 statements with values that cannot
    be drawn`. Raises StudyError if the capture is missing or damaged."""
    return _doubts(_about(capture))


def dump_at(data: str) -> Path:
    """Returns the path of a replay's dump, which is a file or a directory."""
    return _path(data, _BUNDLED_DUMP)


def _stored_path(named: str, folder: Path) -> str:
    return named if named.startswith(BUNDLED) else from_root(named, folder)


def _path(named_path: str, bundled: str) -> Path:
    if named_path.startswith(BUNDLED):
        return Path(str(files("pgtrial.store") / "captures" / named_path.removeprefix(BUNDLED) / bundled))
    return Path(named_path)


def _look(workload: str, data: str, source: str) -> ReplayFiles:
    capture, dump = capture_of(workload), dump_at(data)
    try:
        about = _about(capture)
        kind_of_dump(dump)
        parts = parts_of_dump(dump)
        return ReplayFiles(
            capture_sha256=digest_of(capture, [capture / name for name in _CAPTURE]),
            data_sha256=digest_of(dump, parts),
            data_bytes=sum(path.stat().st_size for path in parts),
            sessions=about["sessions"],
            statements=about["statements"],
            recorded_s=about["span_us"] / 1e6,
            server_version=about.get("server_version"),
            doubts=_doubts(about),
        )
    except StudyError as error:
        raise StudyError(f"{source}: {error}") from None
    except OSError as error:
        raise StudyError(f"{source}: cannot read {error.filename}: {error.strerror or 'unreadable'}") from None


def _doubts(about: Mapping[str, Any]) -> list[str]:
    return [f"{entry['count']:,} {entry['why']}" for entry in about.get("left_out", [])]


def _about(capture: Path) -> dict[str, Any]:
    """Returns the content of capture.json, which describes a capture (recorded sessions). Raises StudyError if it is
    missing, damaged or of a newer format, or if the capture has no statements."""
    path = capture / _ABOUT
    if not path.is_file():
        raise StudyError(
            f"{capture} is not a complete capture: it has no {_ABOUT}; `pgtrial capture` makes a capture from a "
            "server's logs"
        )
    try:
        about: dict[str, Any] = json.loads(read_text(path))
        newer, statements = about["format"] > _FORMAT, about["statements"]
    except (ValueError, KeyError, TypeError):
        raise StudyError(f"{path} is damaged; make the capture again from the server's logs") from None
    if newer:
        raise StudyError(f"{capture} was made by a newer pgtrial (format {about['format']}); upgrade pgtrial")
    if statements == 0:
        raise StudyError(f"the capture {capture} has no statements; make a capture from logs that contain statements")
    return about
